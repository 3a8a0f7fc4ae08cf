"""What figures show of trials that are valid, degraded and invalid, read back from matplotlib's own objects."""

from __future__ import annotations

import itertools
import re
import statistics
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from matplotlib.colors import to_hex
from matplotlib.container import BarContainer

from gradbed.common.errors import UserError
from gradbed.experiments.plotting.series import SeriesPoint, draw_companion, draw_series
from gradbed.experiments.plotting.style import figure
from gradbed.experiments.results.study_results import load_results
from gradbed.experiments.scale import Scale
from gradbed.experiments.study.evaluation.figures import draw_figures, write_figure_data
from gradbed.experiments.study.evaluation.summary import summary_table
from gradbed.experiments.study.loading import load_study
from gradbed.experiments.study.running.executors import RunOptions
from gradbed.experiments.study.running.runner import run_trials
from tests.csv_files import read_csv
from tests.unit.experiments.study import coin  # noqa: F401  # registers the system

POINTS = [
    SeriesPoint(1, (1.0, 2.0, 3.0, 2.0), (), "valid"),
    SeriesPoint(2, (4.0,), (9.0,), "degraded"),
    SeriesPoint(3, (), (5.0, 6.0), "invalid"),
]


def test_degraded_values_are_hollow_and_invalid_ones_crosses_off_the_line() -> None:
    with figure() as (_, [axes]):
        draw_series(axes, POINTS, label="greedy", number=0, possible=(None, None))
        line, valid, degraded, crosses = (
            axes.lines[0],
            axes.containers[0].lines[0],
            axes.containers[1].lines[0],
            next(line for line in axes.lines if line.get_marker() == "x"),
        )
        assert list(line.get_xdata()) == [1, 2]
        assert list(line.get_ydata()) == [2, 4]
        assert valid.get_markerfacecolor() == valid.get_color()
        assert degraded.get_markerfacecolor() == "white"
        assert list(crosses.get_ydata()) == [5, 6]
        # t(0.975, 3) * sqrt(2 / 3) / sqrt(4) on either side of the mean; a single run has no interval.
        low, high = axes.containers[0].lines[2][0].get_segments()[0][:, 1]
        assert (low, high) == pytest.approx((2 - 1.299228, 2 + 1.299228), abs=1e-5)
        assert not axes.containers[1].has_yerr


def test_an_interval_that_leaves_what_is_possible_is_cut_and_marked() -> None:
    with figure() as (_, [axes]):
        draw_series(axes, POINTS[:1], label=None, number=0, possible=(1.0, 3.0))
        low, high = axes.containers[0].lines[2][0].get_segments()[0][:, 1]
        assert (low, high) == (1.0, 3.0)
        arrows = [(line.get_marker(), *line.get_ydata()) for line in axes.lines if line.get_marker() in ("v", "^")]
        assert arrows == [("v", 1.0), ("^", 3.0)]


def test_a_bound_is_drawn_through_invalid_points_too() -> None:
    with figure() as (_, [axes]):
        draw_companion(axes, POINTS, label="bound", number=None, dashes="--")
        assert list(axes.lines[0].get_ydata()) == pytest.approx([2, 6.5, 5.5])
        assert axes.lines[0].get_linestyle() == "--"


STUDY = """
name: tosses
system: coins
coins: {count: 20}
sweep:
  product:
    coins.verdict: [valid, degraded, invalid]
    coins.bias: [0.2, 0.8]
repetitions: 3
metrics: [heads, limit]
figures:
  heads: {x: coins.bias, y: heads, series: coins.verdict, bound: limit, title: Coins}
  kinds: {x: coins.verdict, y: throughput_bps, series: coins.bias, normalised: true, statistic: median}
  scaled: {x: coins.bias, y: heads, series: coins.verdict, x_scale: log, y_scale: log}
"""


@pytest.mark.thorough
def test_figures_are_written_in_three_formats_and_are_the_same_again(tmp_path: Path) -> None:
    file = tmp_path / "study.yaml"
    file.write_text(STUDY)
    study = load_study(file)
    results = load_results(run_trials(study, Scale(0.5), RunOptions(tmp_path)).folder)
    written = draw_figures(results, study.head.figures, study.system.metrics)
    assert [path.name for path in written] == [
        f"{name}.{suffix}" for name in ("heads", "kinds", "scaled") for suffix in ("png", "svg", "pdf")
    ]
    first = {path: path.read_bytes() for path in written}
    draw_figures(results, study.head.figures, study.system.metrics)
    assert {path: path.read_bytes() for path in written} == first
    # A label that is longer than its axis has several lines.
    svg = " ".join(re.sub("<(?!!--)[^>]*>", "", (results.folder / "heads.svg").read_text()).split())
    words = ("Coins", "coins that showed heads", "degraded or unknown (host)", "bound", "bias", "values of 3")
    for text in words:
        assert text in svg
    assert "made up / link rate" in (results.folder / "kinds.svg").read_text()


@pytest.mark.parametrize("field", ["y", "bound", "expected", "saturation"])
def test_a_number_in_place_of_a_metric_is_refused(field: str, tmp_path: Path) -> None:
    section = {"y": "heads", field: 0.1}
    words = ", ".join(f"{name}: {value}" for name, value in section.items())
    (tmp_path / "study.yaml").write_text(
        STUDY.split("figures:")[0] + f"figures:\n  one: {{x: coins.bias, {words}}}\n"
    )
    with pytest.raises(UserError, match=r"must be the name of a metric, got 0\.1$"):
        load_study(tmp_path / "study.yaml")


def test_a_figure_without_points_is_a_line_that_says_so(tmp_path: Path) -> None:
    """Nothing has ended but what was repeated on the other clock: matplotlib cannot scale axes without data."""
    file = tmp_path / "study.yaml"
    file.write_text(STUDY)
    study = load_study(file)
    results = load_results(run_trials(study, Scale(), RunOptions(tmp_path)).folder)
    beside = tuple(replace(trial, other_clock=True) for trial in results.trials)
    said: list[str] = []
    for trials in ((), beside):
        nothing = replace(results, trials=(), other_clock=trials)
        assert draw_figures(nothing, study.head.figures, study.system.metrics, said.append) == []
    assert [line.partition(":")[0] for line in said] == [f"no figure {name}" for name in study.head.figures] * 2


def test_the_table_at_the_end(tmp_path: Path) -> None:
    file = tmp_path / "study.yaml"
    file.write_text(STUDY)
    study = load_study(file)
    table = summary_table(study, load_results(run_trials(study, Scale(), RunOptions(tmp_path)).folder))
    cells = [list(column.cells) for column in table.columns]
    assert cells[0] == ["valid", "valid", "degraded", "degraded", "invalid", "invalid"]
    assert [cell.split(",")[0] for cell in cells[-1]] == cells[0]
    assert [cell.strip("()") for cell in cells[3]] == ["20"] * 6


def test_a_study_without_metrics_shows_the_systems_main_ones_that_have_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "study.yaml"
    file.write_text(re.sub(r"(?m)^metrics:.*\n", "", STUDY))
    study = load_study(file)
    results = load_results(run_trials(study, Scale(), RunOptions(tmp_path)).folder)

    def titles() -> list[str]:
        return [str(column.header) for column in summary_table(study, results).columns][2:-1]

    every = titles()
    report = replace(study.system.report, main_metrics=("heads", "limit"))
    monkeypatch.setattr(type(study.system), "report", report)
    assert titles() == ["heads", "limit"] and len(every) > 2
    for trial in results.trials:
        monkeypatch.setitem(trial.values, "limit", None)
    assert titles() == ["heads"]


def test_what_all_repetitions_agree_on_has_no_interval() -> None:
    """Neither a bar without height nor "± 0": it would say that something was drawn."""
    with figure() as (_, [axes]):
        draw_series(axes, [SeriesPoint(1, (2.0, 2.0, 2.0), (), "valid")], label=None, number=0)
        assert not axes.containers[0].has_yerr


def drawn(tmp_path: Path, section: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The axes of one figure of the study, before they are written to a file."""
    (tmp_path / "study.yaml").write_text(STUDY.split("figures:")[0] + f"figures:\n  one: {section}\n")
    study = load_study(tmp_path / "study.yaml")
    results = load_results(run_trials(study, Scale(), RunOptions(tmp_path)).folder)
    kept: list[Any] = []

    def keep(made: Any, path: Path, heading: str) -> list[Path]:
        kept.append(made)
        return []

    monkeypatch.setattr("gradbed.experiments.study.evaluation.figures.save", keep)
    draw_figures(results, study.head.figures, study.system.metrics)
    return kept[0].axes[0]


def test_no_line_joins_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    axes = drawn(tmp_path, "{x: coins.verdict, y: heads, series: coins.bias, bound: limit}", monkeypatch)
    estimates = [line for line in axes.lines if line.get_marker() in "os" and len(line.get_xdata())]
    assert all(len(line.get_xdata()) == 1 and line.get_linestyle() == "None" for line in estimates)
    assert len({float(line.get_xdata()[0]) for line in estimates}) == 4, "two series stand beside each other"
    bounds = [list(line.get_xdata()) for line in axes.lines if line.get_linestyle() == "--" and len(line.get_xdata())]
    assert len(bounds) == 3
    assert all(high - low < 1 for low, high in bounds), "a bound goes with its word alone"


def test_bars_begin_at_zero_and_stand_beside_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    axes = drawn(tmp_path, "{kind: bars, x: coins.bias, y: heads, series: coins.verdict}", monkeypatch)
    bars = [bar for group in axes.containers if isinstance(group, BarContainer) for bar in group.patches]
    assert {bar.get_y() for bar in bars} == {0.0}
    handles, _ = axes.get_legend_handles_labels()
    assert {to_hex(handle.get_color()) for handle in handles} >= {to_hex(bar.get_edgecolor()) for bar in bars}
    assert axes.get_legend() is None, "it would lie over the bars"
    edges = sorted((bar.get_x(), bar.get_x() + bar.get_width()) for bar in bars)
    assert len(edges) == 4, "two places with two series that have values; those of invalid trials are crosses"
    assert all(left[1] <= right[0] + 1e-9 for left, right in itertools.pairwise(edges))


def test_a_saturation_is_an_upright(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    axes = drawn(tmp_path, "{x: coins.bias, y: heads, series: coins.verdict, saturation: limit}", monkeypatch)
    [upright] = [line for line in axes.lines if line.get_linestyle() == ":" and len(line.get_xdata())]
    assert list(upright.get_xdata()) == [20, 20]


def test_data_of_figures_are_one_small_table(tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text(STUDY)
    study = load_study(tmp_path / "study.yaml")
    results = load_results(run_trials(study, Scale(0.5), RunOptions(tmp_path)).folder)
    rows = read_csv(write_figure_data(study, results))
    assert [(row["coins.verdict"], row["coins.bias"], row["repetitions"]) for row in rows] == [
        (verdict, bias, count)
        for verdict, count in (("valid", "3"), ("degraded", "3"), ("invalid", "0"))
        for bias in ("0.2", "0.8")
    ]
    heads = [[trial.row["heads"] for trial in results.trials[3 * place : 3 * place + 3]] for place in range(4)]
    assert [float(row["heads"]) for row in rows[:4]] == pytest.approx([sum(each) / 3 for each in heads], rel=1e-5)
    # t(0.975, 2) / sqrt(3) = 2.484138 standard deviations.
    halves = [2.484138 * statistics.stdev(each) if len(set(each)) > 1 else None for each in heads]
    assert [float(row["heads_half"]) if row["heads_half"] else None for row in rows[:4]] == pytest.approx(
        halves, rel=1e-5
    )
    assert {row["heads"] for row in rows[4:]} == {""}, "what is invalid is in no figure"
    assert [row["limit"] for row in rows] == ["20"] * 4 + [""] * 2
    assert "limit_half" not in rows[0]


FAIR = "{x: coins.bias, y: heads, series: coins.verdict, "


def drawn_from_zero(
    tmp_path: Path, section: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[Any, str]:
    """The axes of a figure of a sweep that begins at 0, and what was printed."""
    monkeypatch.setattr(f"{__name__}.STUDY", STUDY.replace("[0.2, 0.8]", "[0, 0.2, 0.8]"))
    axes = drawn(tmp_path, section, monkeypatch)
    return axes, capsys.readouterr().out


def test_a_log_axis_leaves_out_0_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    axes, said = drawn_from_zero(tmp_path, FAIR + "bound: limit, x_scale: log}", monkeypatch, capsys)
    assert said == "figures.one: x = 0 has no place on a log axis and is left out\n"
    assert {float(x) for line in axes.lines for x in line.get_xdata()} == {0.2, 0.8}
    assert axes.get_xlim()[0] > 0.1


def test_a_log_axis_of_y_leaves_out_a_mean_of_0(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    axes, said = drawn_from_zero(tmp_path, FAIR + "y_scale: log}", monkeypatch, capsys)
    assert said == "figures.one: y = 0 has no place on a log axis and is left out\n"
    assert {float(x) for line in axes.lines for x in line.get_xdata()} == {0.2, 0.8}


def test_a_figure_with_nothing_above_0_is_not_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(f"{__name__}.STUDY", STUDY.replace("[0.2, 0.8]", "[0]"))
    with pytest.raises(IndexError):
        drawn(tmp_path, FAIR + "x_scale: log}", monkeypatch)
    assert "no figure one: no value has a place on its log axis" in capsys.readouterr().out


def test_a_symlog_axis_begins_at_0_and_has_ticks_at_the_swept_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    axes, said = drawn_from_zero(tmp_path, FAIR + "x_scale: symlog}", monkeypatch, capsys)
    assert not said
    assert axes.get_xlim()[0] == 0
    assert [label.get_text() for label in axes.get_xticklabels()] == ["0", "0.2", "0.8"]
    assert axes.xaxis.get_transform().linthresh == 0.2
