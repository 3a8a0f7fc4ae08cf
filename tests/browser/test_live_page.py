"""The page of the live view: a recording with its slider, and a run on the virtual clock with its controls."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gradbed.common.json_lines import own_program
from gradbed.experiments.live.observer import LiveObserver
from gradbed.experiments.live.packets import packets_of
from gradbed.experiments.live.recording import FILE, Recording, ReplaySource, with_places
from tests.browser.browser import BROWSER, IN_TIME_S, WHY_NOT, browser
from tests.browser.live_pages import opened, served, until
from tests.unit.experiments.live.fake_feed import FakeFeed
from tests.unit.experiments.live.test_observer import FAULTS, run

pytest.importorskip("playwright", reason="Playwright is not installed")
pytestmark = [pytest.mark.thorough, pytest.mark.skipif(BROWSER is None, reason=WHY_NOT)]

SCREENSHOTS = os.environ.get("GRADBED_SCREENSHOTS")
"""A folder into which docs/images/live.png and replay.png are written anew."""


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with browser() as found:
        yield found


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    """Of a small run with a fault, in steps so that it has frames, and with the packets of its first link."""
    folder = tmp_path_factory.mktemp("run")
    watch = {"command": "watch", "switch": "l1", "link": 0}
    steps = [{"command": "step", "step_us": 2000}] * 30
    feed = FakeFeed(watch, *steps, {"command": "run"})
    run(folder, LiveObserver(feed, paused=True), faults=FAULTS)
    found = Recording()
    for row in feed.rows:
        found.add({"begin": with_places, "captured": packets_of}.get(row["kind"], lambda row: row)(row))
    found.save(folder / FILE)
    return Recording.load(folder / FILE)


@pytest.fixture(scope="module")
def url(recording: Recording, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    file = tmp_path_factory.mktemp("served") / FILE
    recording.save(file)
    with served(ReplaySource([file])) as found:
        yield found


@pytest.fixture
def page(chromium: Any, url: str) -> Iterator[Any]:
    with opened(chromium, url) as found:
        until(found, "gradbed.store().ended")
        yield found


def number(recording: Recording, a: str, b: str) -> int:
    links = recording.of("begin")[0]["links"]
    return next(i for i, link in enumerate(links) if {link["a"], link["b"]} == {a, b})


def click_node(page: Any, name: str) -> None:
    """With the mouse, where the node is drawn."""
    at = page.evaluate(f"gradbed.graph.placeOf('{name}')")
    box = page.locator("#graph").bounding_box()
    page.mouse.click(box["x"] + at["x"], box["y"] + at["y"])


def test_a_click_on_a_switch_shows_what_it_holds(page: Any, recording: Recording) -> None:
    click_node(page, "l1")
    until(page, "document.querySelector('#detail h2')?.textContent.startsWith('l1: leaf switch')")
    plan = next(row["plan"] for row in recording.of("plan") if row["switch"] == "l1")
    text = page.inner_text("#detail")
    for table in {entry["table"] for entry in plan["entries"]}:
        assert f"{table} (" in text
    page.click("[data-tab=counters]")
    counted = [row for row in recording.of("switch") if row["switch"] == "l1"][-1]["counters"]
    shown = page.inner_text("#detail")
    assert all(name in shown for name in counted)
    page.click("[data-tab=registers]")
    assert "cells)" in page.inner_text("#detail")


def test_the_slider_shows_what_links_had_carried_by_then(page: Any, recording: Recording) -> None:
    link = number(recording, "h1", "l1")
    page.evaluate(f"gradbed.choose({{link: {link}}})")
    last_us = page.evaluate("gradbed.store().last_us")
    carried: dict[int, str] = {}
    for place in range(1001):
        state: dict[str, list[int]] = {}
        for row in recording.of("frame"):
            if row["t_us"] <= last_us * place / 1000:
                state |= row["links"]
        carried[place] = str(state.get(str(2 * link), [0])[0])
    # Early, late, and early again.
    first, last = (list(carried.values()).index(carried[place]) for place in (1, 1000))
    middle = next(place for place in carried if carried[place] not in (carried[first], carried[last]))
    for place in (middle, last, first, middle):
        page.locator("#time").fill(str(place))
        until(page, "document.querySelectorAll('#detail tbody tr').length >= 2")
        cells = page.locator("#detail tbody tr >> nth=0").locator("td").all_inner_texts()
        assert cells[3].replace(",", "") == carried[place]


def test_packets_have_headers_by_a_click(page: Any, recording: Recording) -> None:
    told = [packet for row in recording.of("packets") for packet in row["packets"]]
    page.locator("#time").fill("1000")
    page.evaluate("gradbed.choose({link: 0})")
    until(page, "document.querySelectorAll('#detail tr.clickable').length > 0")
    page.click("#detail tr.clickable >> nth=0")
    until(page, "document.querySelector('#packet h3')?.textContent.startsWith('packet of')")
    text = page.inner_text("#packet")
    frame = bytes.fromhex(told[-1]["frame"])
    assert ".".join(str(byte) for byte in frame[26:30]) in text
    assert "Gradient" in text
    assert "worker_bitmap" in text


def test_progress_curves_and_events_are_drawn(page: Any, recording: Recording) -> None:
    names = {row["name"] for row in recording.of("value")}
    until(page, f"document.querySelectorAll('#plots .uplot').length == {len(names)}")
    page.locator("#time").fill("1000")
    until(page, "document.querySelector('#events').textContent.includes('link-down l1 s1')")
    page.locator("#time").fill("0")
    until(page, "!document.querySelector('#events').textContent.includes('link-down')")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width_px", [1400, 700])
def test_nothing_is_wider_than_the_window(chromium: Any, url: str, scheme: str, width_px: int) -> None:
    viewport = {"width": width_px, "height": 900}
    with opened(chromium, url, color_scheme=scheme, viewport=viewport) as page:
        until(page, "gradbed.store().ended")
        page.evaluate("gradbed.choose({switch: 'l1'})")
        assert page.evaluate("document.documentElement.scrollWidth") <= width_px
        # Links and nodes are drawn: the picture is not of one colour.
        assert len(set(page.locator("#graph").screenshot())) > 100


@pytest.mark.nightly
def test_a_run_is_paused_stepped_and_slowed_down_and_its_page_stays(chromium: Any, tmp_path: Path) -> None:
    command = own_program("gradbed", "run", "aggregation", "--clock", "virtual", "--live-paused")
    with subprocess.Popen(
        [*command, "--rounds", "12", "--output", str(tmp_path)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        try:
            told = iter(process.stderr)
            url = next(found[0] for line in told if (found := re.search(r"http://\S+", line)))
            with opened(chromium, url) as page:
                _drive(page)
                _screenshot(page, "live.png")
                page.select_option("#speed", "")
                page.click("#run")
                until(page, "gradbed.store().ended")
                assert any("stays until its page is closed" in line for line in told)
                assert process.poll() is None
            # Nobody has it open any more.
            assert process.wait(IN_TIME_S) == 0
        finally:
            process.send_signal(signal.SIGINT)
    (file,) = tmp_path.glob(f"aggregation/latest/trials/*/{FILE}")
    assert len(Recording.load(file).of("frame")) > 20
    with served(ReplaySource([file])) as url, opened(chromium, url, color_scheme="dark") as page:
        until(page, "gradbed.store().ended")
        page.evaluate("gradbed.choose({switch: 'e1'})")
        page.locator("#time").fill("300")
        time.sleep(0.5)
        _screenshot(page, "replay.png")


def _drive(page: Any) -> None:
    until(page, "gradbed.store().clock?.paused")
    assert page.evaluate("gradbed.store().last_us") == 0
    link = page.evaluate("gradbed.store().begin.links.findIndex((l) => new Set([l.a, l.b]).has('h1'))")
    page.evaluate(f"gradbed.choose({{link: {link}}})")
    page.select_option("#speed", "0.01")
    page.click("#run")
    until(page, "document.querySelectorAll('#detail tr.clickable').length > 5")
    page.click("#pause")
    until(page, "gradbed.store().clock.paused")
    before_us = page.evaluate("gradbed.store().last_us")
    page.select_option("#step-us", "1000")
    page.click("#step")
    until(page, f"gradbed.store().last_us >= {before_us} + 1000")
    until(page, "document.getElementById('state').textContent === 'virtual clock, paused'")
    assert page.evaluate("gradbed.store().last_us") <= before_us + 1010
    page.click("#detail tr.clickable >> nth=0")
    until(page, "document.querySelector('#trace') !== null")
    from_host = page.inner_text("#trace") == "trace at e1"
    if from_host:
        page.click("#trace")
        until(page, "document.querySelector('#trace-text pre') !== null")
        assert "PARSER" in page.inner_text("#trace-text")


def _screenshot(page: Any, name: str) -> None:
    if SCREENSHOTS:
        page.screenshot(path=Path(SCREENSHOTS) / name)
