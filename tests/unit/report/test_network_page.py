"""What the page says of the network: loads, plans and times are those of the run's files."""

from __future__ import annotations

import csv
import json
import re
import shutil
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from gradbed.experiments.study.command import run_system
from gradbed.experiments.study.report.drawings import LEVEL_WORDS, level
from gradbed.experiments.study.report.page import write_report
from gradbed.experiments.study.running.executors import RunOptions
from gradbed.experiments.tables.metric import engineering
from tests.unit.report.html_page import HtmlPage
from tests.unit.workload.runs import configuration

RATE_BPS = 10_000_000
FAULT = {"fault": "link-down", "at_ms": 5.0, "link": ["h4", "s1"]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a run of two phases in which a link fails that nobody uses."""
    place = tmp_path_factory.mktemp("run")
    values = {
        "clock": "virtual",
        "topology": {"kind": "star:4", "link": {"rate_mbps": RATE_BPS / 1e6}},
        "switches": {"placement": "server-tor"},
        "workload": {"workers": 2, "rounds": 3, "lanes": 32, "values": 640, "baselines": ["parameter-server"]},
        "faults": [FAULT],
    }
    assert run_system("aggregation", values, 1, RunOptions(place)) == 0
    return (place / "aggregation" / "latest").resolve()


@pytest.fixture(scope="module")
def page(folder: Path) -> HtmlPage:
    return HtmlPage.of(folder / "report.html")


def rows(folder: Path, name: str) -> list[Mapping[str, str]]:
    with (folder / f"{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_loads_are_bytes_over_rate_and_time(folder: Path) -> None:
    """What was carried after the phase was complete (last ACKs) is not in them."""
    ends_us = {row["phase"]: float(row["time_us"]) for row in rows(folder, "timeline") if row["what"] == "phase"}
    links = rows(folder, "links")
    assert set(ends_us) == {"parameter server", "in-network"} == {row["phase"] for row in links}
    for row in links:
        most = 8e6 * int(row["bytes"]) / (RATE_BPS * ends_us[row["phase"]])
        last = 8e6 * 3 * 1500 / (RATE_BPS * ends_us[row["phase"]])
        assert most - last <= float(row["load"]) <= most and 0 < float(row["load"]) < 1


def test_the_page_says_over_which_time_loads_are(folder: Path, page: HtmlPage) -> None:
    ends = [row for row in rows(folder, "timeline") if row["what"] == "phase"]
    assert len(ends) == 2
    for row in ends:
        (told_ms,) = re.findall(rf"{row['phase']}; loads from 0 s to ([\d.]+) ms", page.text)
        assert float(told_ms) == pytest.approx(float(row["time_us"]) / 1e3, rel=1e-3)
    assert "Simulated time" in page.text


def test_after_a_warm_up_loads_are_of_what_follows_it(tmp_path: Path) -> None:
    traffic = {"packets": None, "load": 0.5, "duration_ms": 60.0, "warm_up_ms": 20.0}
    of_all = {"topology": {"link": {"rate_mbps": RATE_BPS / 1e6}}, "traffic": traffic}
    faults = [{"fault": "link-down", "at_ms": 19.0, "link": ["h1", "s1"]}]
    values = configuration(tmp_path, **of_all, faults=faults).model_dump(mode="json")
    assert run_system("workload", values, 1, RunOptions(tmp_path)) == 0
    made = tmp_path / "workload" / "latest"
    ends_us = {row["name"]: float(row["time_us"]) for row in rows(made, "timeline") if row["what"] == "phase"}
    assert ends_us["measuring begins"] == 20_000
    text = HtmlPage.of(made / "report.html").text
    assert "; loads from 20 ms to " in text
    for row in rows(made, "links"):
        # What came before is among the bytes, and not in the load.
        has_gone = "h1" in (row["from"], row["to"])
        assert int(row["bytes"]) > 0 and (float(row["load"]) == 0) == has_gone
        assert f"{row['from']} to {row['to']}: {100 * float(row['load']):.1f} % of 10 Mbit/s" in text


def test_a_run_of_a_system_asks_with_its_configuration(page: HtmlPage) -> None:
    about = "Train with gradients summed in the switches, and compare with the server alone."
    asked = (
        "What comes of it on star:4 with 2 workers, link rate 10 Mbit/s, faults at_ms 5 link-down h4, s1, "
        "placement server-tor, programmable 1, and what else is not as by default?"
    )
    assert f"{about} {asked}" in page.text


def test_a_question_names_those_who_take_part_once(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "20200101-000000"
    shutil.copytree(folder, other)
    study = json.loads((other / "study.json").read_text())
    for trial in study["trials"]:
        trial["configuration"]["faults"] = []
        trial["configuration"]["switches"]["placement"] = "greedy"
    (other / "study.json").write_text(json.dumps(study))
    asked = "on star:4 with 2 workers, link rate 10 Mbit/s, programmable 1, rounds 3, lanes 32, and what else"
    assert asked in HtmlPage.of(write_report(other)).text


def test_only_what_was_chosen_differs_from_the_defaults(page: HtmlPage) -> None:
    """Not what the system's own defaults bring along: its baselines."""
    fields = page.table("Configuration that differs from the defaults").column("field")
    assert {"topology.kind", "workload.rounds", "switches.placement", "faults"} <= set(fields)
    assert not {"workload.baselines", "program.model", "switches.slots"} & set(fields)


def test_links_have_the_class_of_their_load(folder: Path, page: HtmlPage) -> None:
    limits = (0.001, 0.2, 0.4, 0.6, 0.8)
    directions = 2 * 4
    expected: Counter[str] = Counter()
    for phase in ("parameter server", "in-network"):
        loads = [float(row["load"]) for row in rows(folder, "links") if row["phase"] == phase]
        loads += [0.0] * (directions - len(loads))
        expected.update(f"load{sum(load >= limit for limit in limits)}" for load in loads)
    legend = [f"load{number}" for number in range(6)]
    drawn = Counter(each for each in page.classes if each.startswith("load"))
    drawn.subtract(legend)
    assert +drawn == expected and len(expected) > 1
    assert re.search(r"h1 to s1: [\d.]+ % of 10 Mbit/s, [\d,]+ packets", page.text)


@pytest.mark.parametrize(
    ("load", "words"),
    [
        (0.0, "idle"), (0.1, "below 20 %"), (0.2, "20 to 40 %"), (0.39, "20 to 40 %"), (0.41, "40 to 60 %"),
        (0.7, "60 to 80 %"), (0.8, "80 % and more"), (1.2, "80 % and more"),
    ],
)  # fmt: skip
def test_levels_are_what_the_legend_says(load: float, words: str) -> None:
    assert LEVEL_WORDS[level(load)] == words


def test_the_busiest_links_are_those_of_the_rows(folder: Path, page: HtmlPage) -> None:
    tables = [table for table in page.tables if table.caption.endswith("busiest links")]
    for phase, table in zip(("parameter server", "in-network"), tables, strict=True):
        of_phase = [row for row in rows(folder, "links") if row["phase"] == phase]
        shown = sorted(of_phase, key=lambda row: (-float(row["load"]), -int(row["bytes"])))
        assert table.column("link") == [f"{row['from']} to {row['to']}" for row in shown]
        assert table.column("load") == [f"{100 * float(row['load']):.1f} %" for row in shown]
        assert table.column("packets") == [f"{int(row['packets']):,}" for row in shown]


def test_the_plan_is_that_of_the_switches(folder: Path, page: HtmlPage) -> None:
    (path,) = folder.glob("trials/*/network.json")
    plans = json.loads(path.read_text())["plans"]
    assert [part["phases"] for part in plans] == [["parameter server"], ["in-network"]]
    last = plans[-1]["plan"]["switches"]["s1"]
    assert f"aggregation (P4): {len(last['entries'])} entries" in page.text
    for entry in last["entries"]:
        assert f"-> {entry['action']}(" in page.text
    assert f"trials/{path.parent.name}/network.json" in page.links


def test_faults_and_events_are_told_with_their_times(folder: Path, page: HtmlPage) -> None:
    assert page.text.count("link-down h4 s1: 5 ms") >= 2  # each phase has it
    (workers,) = {row["count"] for row in rows(folder, "timeline") if row["name"] == "round"}
    assert int(workers) == 2 * 3
    ends = [float(row["time_us"]) for row in rows(folder, "timeline") if row["name"] == "complete"]
    for end_us in ends:
        assert re.search(rf"complete: {end_us / 1e3:.4g} ms", page.text)


def test_bars_of_the_time_line_are_as_long_as_their_events(folder: Path, page: HtmlPage) -> None:
    drawn = re.findall(
        r'<rect class="event" x="([\d.]+)"[^>]* width="([\d.]+)"', (folder / "report.html").read_text()
    )
    axis_from, axis_to = 220, 690
    expected = []
    for phase in ("parameter server", "in-network"):
        of_phase = [row for row in rows(folder, "timeline") if row["phase"] == phase]
        scale = (axis_to - axis_from) / max(float(row["last_us"]) for row in of_phase)
        for row in of_phase:
            begin, end = (axis_from + scale * float(row[name]) for name in ("time_us", "last_us"))
            if row["what"] == "event" and end - begin > 1:
                expected.append((begin, end - begin))
                told = re.findall(rf"{row['name']}: {row['count']} from ([\d.]+ \S*s) to ([\d.]+ \S*s)", page.text)
                assert tuple(engineering(float(row[name]) / 1e6, "s") for name in ("time_us", "last_us")) in told
    assert len(expected) >= 2
    for told, wanted in zip(drawn, expected, strict=True):
        assert tuple(map(float, told)) == pytest.approx(wanted, abs=0.06)


def test_a_run_of_an_older_version_has_a_network_too(folder: Path, tmp_path: Path) -> None:
    old = tmp_path / "20200101-000000"
    shutil.copytree(folder, old)
    for path in old.glob("trials/*/network.json"):
        path.unlink()
    for path in old.glob("trials/*.json"):
        stored = json.loads(path.read_text())
        del stored["tables"]["timeline"]
        for row in stored["tables"]["links"]:
            del row["load"]
        path.write_text(json.dumps(stored))
    page = HtmlPage.of(write_report(old))
    assert "as a share of the busiest link" in page.text and "Time line" not in page.text
    first = next(table for table in page.tables if table.caption.endswith("busiest links"))
    sizes = sorted(int(row["bytes"]) for row in rows(folder, "links") if row["phase"] == "parameter server")
    assert first.column("of the busiest") == [f"{100 * size / sizes[-1]:.1f} %" for size in reversed(sizes)]


def test_a_figure_that_carries_a_script_does_not_bring_it_along(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "20200101-000000"
    shutil.copytree(folder, other)
    (other / "figure.svg").write_text(
        '<svg xmlns="http://www.w3.org/2000/svg" xmlns:x="http://www.w3.org/1999/xlink" viewBox="0 0 9 9">'
        '<script>alert(1)</script><g id="a" onclick="alert(2)"><path style="fill: #000000" d="M0 0"/>'
        '<use x:href="#a"/><use x:href="https://example.org/x.svg#b"/><image x:href="https://example.org/y.png"/>'
        '<rect style="fill: url(https://example.org/z)"/><rect clip-path="url(#a)"/></g></svg>'
    )
    text = write_report(other).read_text()
    page = HtmlPage(text)
    assert page.scripts == 0 and "alert" not in text and "example.org" not in text
    assert "fill: currentColor" in text and 'href="#f0-a"' in text and "url(#f0-a)" in text
