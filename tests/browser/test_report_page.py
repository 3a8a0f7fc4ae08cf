"""The pages of runs, as a browser shows them: in light and dark, on a telephone and a wide screen, and printed."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import pytest

from gradbed.experiments.study.command import run_study_file
from gradbed.experiments.study.running.executors import RunOptions
from tests.browser.browser import BROWSER, WHY_NOT, ask

pytestmark = [pytest.mark.thorough, pytest.mark.skipif(BROWSER is None, reason=WHY_NOT)]

STUDY = """
# How much longer is a round where links lose packets, and one fails?
name: small
title: Round time against loss
system: aggregation
clock: virtual
topology: {kind: "leaf-spine:2,2,2", link: {rate_mbps: 50}}
switches: {placement: greedy, programmable: 2}
workload: {kind: synthetic, workers: 3, rounds: 4, values: 7040, baselines: [parameter-server]}
faults: [{fault: link-down, at_ms: 5, link: [l1, s1]}]
sweep: {product: {topology.link.loss: [0, 0.01]}}
repetitions: 2
metrics: [round_time_s, resends, throughput_bps, byte_hops, accuracy]
figures: {loss: {x: topology.link.loss, y: round_time_s}}
"""

CONTRAST = """(page, window) => {
    const canvas = page.createElement('canvas').getContext('2d', {willReadFrequently: true});
    const rgba = colour => {
        canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
        return [...canvas.getImageData(0, 0, 1, 1).data];
    };
    const light = ([r, g, b]) => [r, g, b].map(c => c / 255).map(
        c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4
    ).reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
    const behind = element => {
        for (let at = element; at; at = at.parentElement) {
            const colour = rgba(window.getComputedStyle(at).backgroundColor);
            if (colour[3] === 255) return colour;
        }
        return [255, 255, 255, 255];
    };
    const ratio = (one, other) => {
        const [a, b] = [light(one), light(other)].sort((x, y) => y - x);
        return (a + 0.05) / (b + 0.05);
    };
    const found = [];
    for (const element of page.querySelectorAll('body *')) {
        const style = window.getComputedStyle(element);
        const isText = [...element.childNodes].some(node => node.nodeType === 3 && node.textContent.trim());
        if (isText && element.tagName !== 'title' && element.checkVisibility()) {
            const colour = element instanceof window.SVGElement ? style.fill : style.color;
            const name = element.tagName + '.' + (element.getAttribute('class') || '');
            found.push([name, 'text', ratio(rgba(colour), behind(element))]);
        } else if (/^load/.test(element.getAttribute('class') || '') && element.checkVisibility()) {
            found.push([element.getAttribute('class'), 'line', ratio(rgba(style.stroke), behind(element))]);
        }
    }
    return found;
}"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("report")
    (place / "small.yaml").write_text(STUDY.strip())
    assert run_study_file(place / "small.yaml", RunOptions(place / "results", jobs=1)) == 0
    return (place / "results" / "small" / "latest").resolve()


def pages(folder: Path) -> Mapping[str, Path]:
    return {"report": folder / "report.html", "index": folder.parent.parent / "index.html"}


@pytest.mark.parametrize("name", ["report", "index"])
@pytest.mark.parametrize("width_px", [360, 1400])
def test_nothing_is_wider_than_the_window(folder: Path, name: str, width_px: int) -> None:
    overflow, widest = ask(
        pages(folder)[name],
        """(page, window) => {
            for (const details of page.querySelectorAll('details')) details.open = true;
            const scrolls = element => element.closest('.scroll, pre');
            return [page.documentElement.scrollWidth - window.innerWidth,
                [...page.querySelectorAll('body *')].filter(element => !scrolls(element) &&
                    element.getBoundingClientRect().right > window.innerWidth + 1
                ).map(element => element.outerHTML.slice(0, 80))];
        }""",
        width_px=width_px,
    )
    assert (overflow <= 0, widest) == (True, [])


@pytest.mark.parametrize("name", ["report", "index"])
def test_nothing_is_asked_of_a_network_and_nothing_runs(folder: Path, name: str) -> None:
    asked, scripts = ask(
        pages(folder)[name],
        """(page, window) => [
            window.performance.getEntriesByType('resource').map(resource => resource.name), page.scripts.length]""",
    )
    assert scripts == 0
    assert all(urlparse(each).scheme == "file" for each in asked)
    if name == "report":
        assert asked == []


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("name", ["report", "index"])
def test_text_and_links_stand_out(folder: Path, name: str, dark: bool) -> None:
    """WCAG 2.1, 1.4.3 and 1.4.11: 4.5 for text, 3 for graphics."""
    found: list[tuple[str, str, float]] = ask(pages(folder)[name], CONTRAST, dark=dark)
    assert len(found) > 10
    weak = {(what, round(ratio, 2)) for what, kind, ratio in found if ratio < (4.5 if kind == "text" else 3.0)}
    assert weak == set()


def test_it_is_dark_where_that_is_asked_for(folder: Path) -> None:
    question = "(page, window) => window.getComputedStyle(page.body).backgroundColor"
    light, dark = (ask(folder / "report.html", question, dark=dark) for dark in (False, True))
    assert light != dark


@pytest.mark.parametrize("dark", [False, True])
def test_links_have_the_colour_that_the_legend_gives_their_load(folder: Path, dark: bool) -> None:
    told: dict[str, Any] = ask(
        folder / "report.html",
        """(page, window) => {
            const stroke = element => window.getComputedStyle(element).stroke;
            const legend = [...page.querySelectorAll('.legend li')].map(
                item => [item.textContent.trim(), stroke(item.querySelector('path'))]);
            const figures = [...page.querySelectorAll('figure')].filter(each => each.querySelector('svg.network'));
            const drawn = figures.map(each => [
                each.querySelector('figcaption').textContent,
                [...each.querySelectorAll('svg.network path')].map(
                    path => [path.querySelector('title').textContent, stroke(path)])]);
            return {legend, drawn};
        }""",
        dark=dark,
    )
    words, colours = zip(*told["legend"], strict=True)
    assert len(set(colours)) == len(words) == 6
    with (folder / "trials.csv").open(newline="") as file:
        first = {row["topology.link.loss"]: row["digest"] for row in csv.DictReader(file) if row["repetition"] == "0"}
    with (folder / "links.csv").open(newline="") as file:
        loads = {(r["digest"], r["phase"], r["from"], r["to"]): float(r["load"]) for r in csv.DictReader(file)}
    seen = set()
    assert len(told["drawn"]) == 4
    for caption, lines in told["drawn"]:
        place, phase = caption.partition(";")[0].split(": ")
        digest = first[place.split(",")[0].removeprefix("loss=")]
        for line, colour in lines:
            sender, _, receiver = line.split(":")[0].split()
            load = loads.get((digest, phase, sender, receiver), 0.0)
            level = sum(load >= limit for limit in (0.001, 0.2, 0.4, 0.6, 0.8))
            assert colour == colours[level], (caption, line)
            seen.add(level)
    assert len(seen) > 2


def test_links_lead_to_files(folder: Path) -> None:
    for path in pages(folder).values():
        links = ask(path, "page => [...page.querySelectorAll('a')].map(link => link.getAttribute('href'))")
        ids = set(ask(path, "page => [...page.querySelectorAll('[id]')].map(element => element.id)"))
        assert links
        for link in links:
            assert link.removeprefix("#") in ids if link.startswith("#") else (path.parent / unquote(link)).is_file()


def test_parts_fold_and_drawings_have_words(folder: Path) -> None:
    folded, nameless, empty = ask(
        folder / "report.html",
        """page => [
            [...page.querySelectorAll('#plan details')].map(each => each.querySelector('pre').checkVisibility()),
            [...page.querySelectorAll('svg:not([aria-hidden]), img')].filter(
                each => !(each.getAttribute('aria-label') || each.getAttribute('alt'))).length,
            [...page.querySelectorAll('svg')].filter(
                each => each.checkVisibility() && !each.getBoundingClientRect().height).length]""",
    )
    assert folded and not any(folded)
    assert (nameless, empty) == (0, 0)
