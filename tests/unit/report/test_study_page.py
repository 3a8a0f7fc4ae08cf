"""The page of a study, whatever became of that: of trials that are computed."""

from __future__ import annotations

import csv
import itertools
import json
import os
import re
import shutil
import statistics
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import unquote

import pytest

from gradbed.experiments.study import command
from gradbed.experiments.study.report.page import make_reports, write_report
from gradbed.experiments.study.running import runner
from tests.conftest import GradbedHere
from tests.unit.experiments.study import coin  # registers the system
from tests.unit.report.html_page import HtmlPage

STUDY = """
# Does a coin <b>know</b> its bias & "count"?
# It is thrown.
#
# This is no part of the question.
name: tosses
title: Heads & tails
system: coins
coins: {verdict: degraded, ends: ENDS}
sweep: {product: {coins.count: [20, 40]}}
repetitions: 3
metrics: [heads, throughput_bps]
goals: {many: {metric: heads, at_most: 15}}
figures: {heads: {x: coins.count, y: heads}}
"""
HALF_OF_3 = 4.302652729911275
"""Student's t for two degrees of freedom, 95 % (any table)."""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADBED_CALIBRATION", str(tmp_path / "none"))
    monkeypatch.setattr(runner, "open_executor", coin.in_this_process)
    monkeypatch.setattr(command, "os", SimpleNamespace(geteuid=lambda: 0))


def run(tmp_path: Path, gradbed_here: GradbedHere, text: str = STUDY, ends: str = '""') -> tuple[int, Path]:
    tmp_path.mkdir(exist_ok=True)
    (tmp_path / "study.yaml").write_text(text.strip().replace("ENDS", ends))
    said = gradbed_here("run", str(tmp_path / "study.yaml"), "--output", str(tmp_path / "results"))
    (folder,) = (path for path in (tmp_path / "results" / "tosses").iterdir() if not path.is_symlink())
    return said.status, folder


def trials(folder: Path) -> list[Mapping[str, str]]:
    with (folder / "trials.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_its_numbers_are_those_of_the_rows(tmp_path: Path, gradbed_here: GradbedHere) -> None:
    status, folder = run(tmp_path, gradbed_here)
    assert status == 1  # the goal is exceeded
    page = HtmlPage.of(folder / "report.html")
    table = page.table("Heads & tails")
    counts = {}
    for row in trials(folder):
        counts.setdefault(row["coins.count"], []).append(int(row["heads"]))
    assert table.column("count") == list(counts) == ["20", "40"]
    for cell, values in zip(table.column("heads"), counts.values(), strict=True):
        mean, half = map(float, re.fullmatch(r"([\d.]+) ± ([\d.]+)\*?", cell).groups())
        assert mean == pytest.approx(statistics.fmean(values), abs=0.05)
        assert half == pytest.approx(HALF_OF_3 * statistics.stdev(values) / 3**0.5, rel=0.05)
    assert table.column("throughput") == ["5 Mbit/s", "5 Mbit/s"]
    goals = page.table("goals")
    means = [statistics.fmean(values) for values in counts.values()]
    assert [float(cell) for cell in goals.column("measured")] == pytest.approx(means, abs=5e-4)
    assert goals.column("verdict") == ["met" if mean <= 15 else "exceeded" for mean in means] == ["met", "exceeded"]
    assert "goal many, count=40" in page.text and coin.CoinSystem.report.assurance not in page.text


def test_it_asks_what_the_file_asks_and_says_how_far_to_trust_it(tmp_path: Path, gradbed_here: GradbedHere) -> None:
    _, folder = run(tmp_path, gradbed_here, STUDY.replace("at_most: 15", "at_least: 1"))
    text = (folder / "report.html").read_text()
    page = HtmlPage(text)
    assert 'Does a coin <b>know</b> its bias & "count"? It is thrown.' in page.text
    assert "<b>know" not in text and "no part of the question" not in page.text
    assert "6 of 6 trials are done." in page.text and coin.CoinSystem.report.assurance in page.text
    assert "degraded 6 trials" in page.text and "made so (6 trials)" in page.text
    fields = dict(
        zip(
            *(page.table("Configuration that differs from the defaults").column(c) for c in ("field", "value")),
            strict=True,
        )
    )
    assert fields == {"coins.count": "20, 40", "coins.verdict": "degraded"}


def test_its_parts_are_in_order_and_its_links_lead_to_files(tmp_path: Path, gradbed_here: GradbedHere) -> None:
    _, folder = run(tmp_path, gradbed_here)
    page = HtmlPage.of(folder / "report.html")
    levels = [level for level, _ in page.headings]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))
    assert len(set(page.ids)) == len(page.ids)
    assert page.scripts == 0 and page.sources == []
    assert {"trials.csv", "study.yaml", "study.json", "environment.json", "heads.pdf", "data/tosses.csv"} <= set(
        page.links
    )
    for link in page.links:
        if link.startswith("#"):
            assert link[1:] in page.ids
        else:
            assert (folder / unquote(link)).is_file(), link
    index = tmp_path / "results" / "index.html"
    links = {unquote(link) for link in HtmlPage.of(index).links}
    assert links == {f"tosses/{folder.name}/report.html"}
    (thumbnail,) = HtmlPage.of(index).sources
    assert (tmp_path / "results" / unquote(thumbnail)).samefile(folder / "heads.png")


@pytest.mark.parametrize(
    ("ends", "status", "said"),
    [
        ("edge", 1, ["6 of 6 trials are done, 6 failed a check.", "count=20, seed 1: a coin stands on its edge"]),
        ("stuck", 2, ["0 of 6 trials are done, 2 broke, 4 are missing.", "count=20, seed 2: no answer for 20 s"]),
        ("broken", 2, ["0 of 6 trials are done, 2 broke, 4 are missing.", "RuntimeError: the coin rolled away"]),
        ("interrupt", 130, ["0 of 6 trials are done, 6 are missing.", "count=40, seed 3"]),
    ],
)
def test_a_study_that_ended_badly_has_a_page_that_says_so(
    tmp_path: Path, gradbed_here: GradbedHere, ends: str, status: int, said: list[str]
) -> None:
    ended, folder = run(tmp_path, gradbed_here, ends=ends)
    assert ended == status
    text = HtmlPage.of(folder / "report.html").text
    for words in said:
        assert words in text
    assert coin.CoinSystem.report.assurance not in text


def test_nothing_is_assured_where_a_trial_failed_and_no_goal_is_missed(
    tmp_path: Path, gradbed_here: GradbedHere
) -> None:
    without_goals = STUDY.replace("goals: {many: {metric: heads, at_most: 15}}\n", "")
    assert "goals" not in without_goals
    for ends, is_assured in (('""', True), ("edge", False)):
        _, folder = run(tmp_path / str(is_assured), gradbed_here, without_goals, ends)
        text = HtmlPage.of(folder / "report.html").text
        assert (coin.CoinSystem.report.assurance in text) == is_assured


def test_the_least_and_the_most_need_not_be_at_the_ends(tmp_path: Path, gradbed_here: GradbedHere) -> None:
    _, folder = run(tmp_path, gradbed_here, STUDY.replace("[20, 40]", "[30, 90, 10, 60]"))
    text = HtmlPage.of(folder / "report.html").text
    assert re.search(r"least [\d.]+ at count 10, most [\d.]+ at count 90\.", text)


def test_a_killed_study_has_a_page_of_what_is_missing(
    tmp_path: Path, gradbed_here: GradbedHere, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page is there while the study runs."""
    seen = []
    measured = runner.RunFiles.write

    def write(self: runner.RunFiles, stored: object) -> None:
        seen.append(HtmlPage.of(self.path / "report.html").text)
        measured(self, stored)

    monkeypatch.setattr(runner.RunFiles, "write", write)
    run(tmp_path, gradbed_here)
    assert "0 of 6 trials are done, 6 are missing." in seen[0]


def test_it_is_made_of_the_folder_alone_and_of_old_ones(tmp_path: Path, gradbed_here: GradbedHere) -> None:
    _, folder = run(tmp_path, gradbed_here)
    moved = tmp_path / "elsewhere" / "run"
    shutil.copytree(folder, moved)
    text = (moved / "report.html").read_text()
    for name in ("report.html", "report.json"):
        (moved / name).unlink()
    said = gradbed_here("report", str(moved))
    assert (said.status, said.out) == (0, f"{moved}/report.html\n")
    assert (moved / "report.html").read_text() == text.replace(folder.name, "run")
    # As an older version left it.
    (moved / "environment.json").write_text("{}")
    for name in ("study.yaml", "trials.csv"):
        (moved / name).unlink()
    assert "6 of 6 trials are done" in HtmlPage.of(write_report(moved)).text


def test_the_report_of_a_folder_makes_what_is_missing(tmp_path: Path, gradbed_here: GradbedHere) -> None:
    _, folder = run(tmp_path, gradbed_here)
    older = folder.with_name("20200101-000000")
    shutil.copytree(folder, older)
    (older / "report.html").unlink()
    torn = folder.with_name("20200102-000000")
    torn.mkdir()
    (torn / "study.json").write_text("{")
    results = tmp_path / "results"
    # Where gradbed docs puts its pages.
    (results / "docs" / "source").mkdir(parents=True)
    (results / "docs" / "index.html").touch()
    assert make_reports(results) == results / "index.html"
    assert (older / "report.html").is_file()
    links = HtmlPage.of(results / "index.html").links
    assert links == [f"tosses/{stamp}/report.html" for stamp in (folder.name, older.name) for _ in range(2)]
    of_study = HtmlPage.of(make_reports(results / "tosses"))
    assert of_study.links == [link.removeprefix("tosses/") for link in links]


@pytest.mark.parametrize(
    ("place", "line"),
    [
        ("nowhere", "nowhere: there is no such folder; name a run's folder, such as results/aggregation/latest"),
        ("none", "holds no run: name a run's folder, such as results/aggregation/latest, or results"),
        ("torn", "holds no run of a study"),
    ],
)
def test_a_folder_without_a_run_is_one_line(tmp_path: Path, gradbed_here: GradbedHere, place: str, line: str) -> None:
    (tmp_path / "none").mkdir()
    (tmp_path / "torn").mkdir()
    (tmp_path / "torn" / "study.json").write_text('{"name": ')
    said = gradbed_here("report", str(tmp_path / place))
    assert (said.status, said.out) == (2, "") and line in said.err and said.err.count("\n") == 1


def test_a_report_that_cannot_be_written_fails_no_run(
    tmp_path: Path, gradbed_here: GradbedHere, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(folder: Path) -> Path:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr("gradbed.experiments.study.report.page.write_report", full)
    (tmp_path / "study.yaml").write_text(STUDY.strip().replace("ENDS", '""').replace("at_most: 15", "at_least: 1"))
    said = gradbed_here("run", str(tmp_path / "study.yaml"), "--output", str(tmp_path))
    assert said.status == 0
    assert (
        [line for line in said.out.splitlines() if "no report" in line]
        == [
            line
            for line in said.out.splitlines()
            if line.startswith("no report: No space left on device; gradbed report ")
        ]
        != []
    )


@pytest.mark.thorough
def test_a_large_study_is_a_page_of_a_few_megabytes(tmp_path: Path, gradbed_here: GradbedHere) -> None:
    text = STUDY.replace("[20, 40]", str(list(range(20, 120)))).replace("repetitions: 3", "repetitions: 1")
    _, folder = run(tmp_path, gradbed_here, text)
    assert len(trials(folder)) == 100
    assert (folder / "report.html").stat().st_size < 2_500_000
    assert len(HtmlPage.of(folder / "report.html").table("Heads & tails").rows) == 101


def test_the_index_says_what_runs_found(tmp_path: Path, gradbed_here: GradbedHere) -> None:
    _, folder = run(tmp_path, gradbed_here)
    summary = json.loads((folder / "report.json").read_text())
    assert (summary["verdict"], summary["planned"], summary["done"], summary["failed"]) == ("degraded", 6, 6, 1)
    text = HtmlPage.of(tmp_path / "results" / "index.html").text
    assert "Heads & tails" in text and "degraded" in text and "1 failed" in text
