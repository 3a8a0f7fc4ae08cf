"""The page of `gradbed p4 coverage --html`, as a browser shows it."""

from __future__ import annotations

import contextlib
import io
import json
from typing import Any

import pytest

from gradbed.cli.p4.commands import app
from tests.browser.browser import BROWSER, WHY_NOT, ask
from tests.unit.insight.tracing import ORDER_COMMANDS, ORDERS

pytestmark = [pytest.mark.thorough, pytest.mark.skipif(BROWSER is None, reason=WHY_NOT)]

MARKUP = '// </td></table><script>document.title = "taken"</script> & "quoted" &amp; \'so\' <b>'


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What --json says of a workload that reaches a part of a program; "page" and "source" are files."""
    folder = tmp_path_factory.mktemp("coverage")
    source, script, page = folder / "orders.p4", folder / "orders.stf", folder / "page.html"
    source.write_text(f"{MARKUP}\n{ORDERS.read_text()}")
    script.write_text(f"{ORDER_COMMANDS}packet 0 0105\nexpect 1 0105\npacket 0 0500\nexpect 2 0500\n")
    arguments = ["coverage", str(source), "--stf", str(script), "--html", str(page), "--json"]
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        assert app(arguments, standalone_mode=False) == 0
    return {**json.loads(printed.getvalue()), "page": page, "source": source}


def test_it_needs_nothing_else_and_runs_nothing(report: dict[str, Any]) -> None:
    told = ask(
        report["page"],
        """(page, window) => [page.title, page.scripts.length,
            window.performance.getEntriesByType('resource').map(resource => resource.name)]""",
    )
    assert told == ["Coverage of orders.p4", 0, []]


def test_the_source_is_shown_as_it_is(report: dict[str, Any]) -> None:
    shown = ask(report["page"], "page => [...page.querySelectorAll('.source td:last-child')].map(c => c.textContent)")
    assert shown == report["source"].read_text().splitlines()


def test_lines_have_the_colour_of_their_state(report: dict[str, Any]) -> None:
    colours = ask(
        report["page"],
        """(page, window) => [...page.querySelectorAll('.source tr')].map(
            row => window.getComputedStyle(row).backgroundColor)""",
    )
    legend = ask(
        report["page"],
        """(page, window) => Object.fromEntries([...page.querySelectorAll('.key span')].map(
            span => [span.textContent, window.getComputedStyle(span).backgroundColor]))""",
    )
    assert len(set(legend.values())) == 3
    (lines,) = report["lines"].values()
    names = {"reached": "reached", "partly": "partly", "unreached": "not reached"}
    assert {line["state"] for line in lines.values()} == set(names)
    expected = ["rgba(0, 0, 0, 0)"] * len(colours)
    for number, line in lines.items():
        expected[int(number) - 1] = legend[names[line["state"]]]
    assert colours == expected


def test_partly_reached_lines_say_what_was_missed(report: dict[str, Any]) -> None:
    tips = ask(report["page"], "page => [...page.querySelectorAll('.source tr.partly')].map(row => row.title)")
    (lines,) = report["lines"].values()
    missed = ["; ".join(line["missed"]) for line in lines.values() if line["state"] == "partly"]
    assert tips == [f"not reached: {names}" for names in missed] and missed


def test_bars_are_as_long_as_the_shares(report: dict[str, Any]) -> None:
    shares = ask(
        report["page"],
        """page => Object.fromEntries([...page.querySelectorAll('.shares tr')].map(row => {
            const bar = row.querySelector('.bar'), width = part => part.getBoundingClientRect().width;
            return [row.querySelector('th').textContent, bar && 100 * width(bar.firstChild) / width(bar)];
        }))""",
    )
    wanted = {name: category["percent"] for name, category in report["categories"].items()}
    assert shares == pytest.approx(wanted, abs=0.6)
    assert any(share not in (None, 0, 100) for share in wanted.values())


def test_a_click_opens_the_items_of_a_category(report: dict[str, Any]) -> None:
    heights = ask(
        report["page"],
        """page => [...page.querySelectorAll('details')].map(details => {
            const list = details.querySelector('ul'), closed = list.checkVisibility();
            details.querySelector('summary').click();
            return [details.querySelector('summary').textContent, closed, list.checkVisibility(),
                    [...list.children].filter(item => item.className === 'reached').length, list.children.length];
        })""",
    )
    assert heights == [
        [f"{name}: {category['reached']} of {category['total']}", False, True, category["reached"], category["total"]]
        for name, category in report["categories"].items()
        if category["items"]
    ]


def test_only_the_source_scrolls_sideways_on_a_telephone(report: dict[str, Any]) -> None:
    overflow, scrolls = ask(
        report["page"],
        """(page, window) => [page.documentElement.scrollWidth - window.innerWidth,
            window.getComputedStyle(page.querySelector('.source')).overflowX]""",
        width_px=360,
    )
    assert overflow <= 0 and scrolls == "auto"


def test_it_follows_a_dark_colour_scheme(report: dict[str, Any]) -> None:
    colour = "(page, window) => window.getComputedStyle(page.body).color"
    assert ask(report["page"], colour) == "rgb(0, 0, 0)"
    assert ask(report["page"], colour, dark=True) == "rgb(255, 255, 255)"
