"""Where legends go, and what is drawn of few repetitions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gradbed.experiments.plotting import style
from gradbed.experiments.plotting.series import SeriesPoint, colour_numbers, draw_series
from tests.unit.experiments.figures.looked_at import points_under_legends


def test_a_legend_that_would_lie_over_points_goes_below(tmp_path: Path) -> None:
    drawn = np.random.default_rng(1)
    with style.figure() as (made, [axes]):
        for name in ("one of the curves", "another one of the curves", "the last"):
            axes.plot(drawn.random(400), drawn.random(400), ".", label=name)
        axes.legend(loc="upper right")
        made.get_layout_engine().execute(made)
        assert points_under_legends(made), "there is no case"
        style.save(made, tmp_path / "figure")
        assert not points_under_legends(made)
        assert axes.get_legend() is None
        assert [text.get_text() for text in made.legends[0].texts] == [line.get_label() for line in axes.lines]


@pytest.mark.commit_cases(1)
@pytest.mark.parametrize("kind", ["line between trials", "bar", "interval", "upright"])
def test_what_lies_between_points_counts(kind: str, tmp_path: Path) -> None:
    with style.figure() as (made, [axes]):
        if kind == "bar":
            axes.bar([0.5], [1], label="a bar")
        elif kind == "interval":
            axes.errorbar([0.5], [0.5], yerr=[[0.5], [0.5]], label="an interval")
        elif kind == "upright":
            axes.axvline(0.5, label="where it saturates")
        else:
            axes.plot([0, 1], [0, 1], label="a line")
        axes.set_xlim(0, 1)
        axes.set_ylim(0, 1)
        axes.legend(loc="center")
        style.save(made, tmp_path / "figure")
        assert made.legends and axes.get_legend() is None


def test_a_legend_that_is_in_nobodys_way_stays(tmp_path: Path) -> None:
    with style.figure() as (made, [axes]):
        axes.plot([0, 1, 2], [0, 1, 10], label="a line")
        axes.axvline(1.9)
        axes.legend(loc="upper left")
        style.save(made, tmp_path / "figure")
        assert axes.get_legend() is not None and not made.legends


@pytest.mark.parametrize(("values", "bars"), [((1.0, 2.0), 0), ((1.0, 2.0, 3.0), 0), ((1.0, 2.0, 3.0, 4.0), 1)])
def test_of_two_or_three_repetitions_the_values_are_drawn_and_no_interval(
    values: tuple[float, ...], bars: int
) -> None:
    with style.figure() as (_, [axes]):
        draw_series(axes, [SeriesPoint(1, values, (), "simulated")], label="a", number=0)
        dashes = [
            list(line.get_ydata()) for line in axes.lines if line.get_marker() == "_" and line.get_markersize() == 7
        ]
        assert len(axes.collections) == bars
        assert dashes == ([] if bars else [list(values)])


def test_a_name_has_its_colour_in_every_figure() -> None:
    fixed = {"ring": 0, "improved": 6}
    assert colour_numbers(["hop-aware", "improved", "ring"], fixed) == {"hop-aware": 1, "improved": 6, "ring": 0}
    assert colour_numbers(["improved"], fixed) == {"improved": 6}
    assert colour_numbers([4096, 0], fixed) == {4096: 0, 0: 1}
    # Two names with one number: the second gets another one.
    assert colour_numbers(["a", "b"], {"a": 0, "b": 0}) == {"a": 0, "b": 1}
