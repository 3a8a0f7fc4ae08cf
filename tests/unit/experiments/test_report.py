"""The table at the end of a run."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from experiments.systems.aggregation import report
from tests.unit.experiments.outcomes import BOTH, outcome


def text(outcomes: list) -> str:
    console = Console(file=io.StringIO(), width=140)
    console.print(report.table(outcomes))
    return console.file.getvalue()


def test_the_table_shows_measured_and_ideal_ratio() -> None:
    line = next(line for line in text(BOTH).splitlines() if "gradients into the server's link" in line)
    assert "160,000.0 B" in line
    assert "20,000.0 B" in line
    assert line.count("0.1250") == 2


def test_the_ratio_is_measured_not_assumed() -> None:
    worse = [BOTH[0], outcome("in-network", 96, 0.01)]
    assert report.ratio(worse) == pytest.approx(0.15)
    line = next(line for line in text(worse).splitlines() if "gradients into the server's link" in line)
    assert "0.1500" in line
    assert "0.1250" in line


def test_round_times_and_accuracy() -> None:
    lines = text(BOTH).splitlines()
    assert any("92.0 ms" in line and "11.5 ms" in line for line in lines)
    assert any("80.00 %" in line for line in lines)


def test_what_kept_switches_from_summing_is_shown_where_it_occurred() -> None:
    assert "met another" not in text(BOTH)
    troubled = [BOTH[0], replace(BOTH[1], events={"collision": 7, "contention": 3, "overflow": 0}, direct_copies=2)]
    shown = " ".join(text(troubled).split())
    assert "met another fragment of the job in the slot \u2502 0 \u2502 7" in shown
    assert "met another job in the slot \u2502 0 \u2502 3" in shown
    assert "gradients sent alone on request \u2502 0 \u2502 2" in shown
    assert "found all slots held" not in shown
    assert "would have left int32" not in shown


def test_every_job_is_compared_with_itself_alone() -> None:
    second = [outcome("parameter server", 320, 0.02, job=2), outcome("in-network", 80, 0.01, job=2)]
    both_jobs = [BOTH[0], second[0], BOTH[1], second[1]]
    assert report.by_job(both_jobs) == [BOTH, second]
    rows = report.summary_rows(both_jobs)
    assert [(row["job"], row["mode"], row["ratio"]) for row in rows] == [
        (1, "parameter server", 1.0),
        (1, "in-network", 0.125),
        (2, "parameter server", 1.0),
        (2, "in-network", 0.25),
    ]


def test_baselines_have_columns_but_no_server() -> None:
    ring = replace(outcome("ring", 0, 0.005), resends=3, byte_hops=4000)
    assert "bytes on all links" not in text(BOTH)
    with_links = [replace(each, byte_hops=links) for each, links in zip(BOTH, (8000, 2000), strict=True)]
    shown = text([*with_links, ring])
    lines = {
        line.split("\u2502")[1].strip(): line.split("\u2502")[2:] for line in shown.splitlines() if "\u2502" in line
    }
    into_server = [cell.strip() for cell in lines["gradients into the server's link, a round"]]
    assert into_server[:4] == ["160,000.0 B", "20,000.0 B", "-", "0.1250"]
    on_links = [cell.strip() for cell in lines["bytes on all links, a round"]]
    assert on_links[:4] == ["2,000 B", "500 B", "1,000 B", "0.2500"]
    assert [cell.strip() for cell in lines["gradient packets resent"]][2] == "3"
    row = report.summary_rows([*BOTH, ring])[2]
    assert (row["mode"], row["byte_hops"], row["ratio"], row["ideal_ratio"]) == ("ring", 4000, None, None)
    assert report.ratio([*BOTH, ring]) == pytest.approx(0.125)
