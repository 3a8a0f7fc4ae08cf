"""Figures of kind course and figures of several panels, read back from matplotlib's own objects."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gradbed.experiments.plotting.style import NothingToDraw, figure
from gradbed.experiments.results.run_folder import TrialRecord
from gradbed.experiments.results.study_results import StudyResults
from gradbed.experiments.study.definition import CourseSection, FigureSection
from gradbed.experiments.study.evaluation.figures import courses, draw_course
from gradbed.experiments.study.evaluation.kinds import KINDS, Sheet, panels_of
from gradbed.experiments.tables.metric import Metric

SHARE = {"accuracy": Metric("", "test accuracy", possible=(0.0, 1.0))}


def trial(way: str, repetition: int, accuracies: list[float | None], *, other_clock: bool = False) -> TrialRecord:
    """A run of two seconds a step, whose rows are in another order."""
    rows = [{"step": n, "span_s": 2.0, "accuracy": found} for n, found in enumerate(accuracies, 1)]
    row = {"clock": "virtual", "scale_factor": 1, "verdict": "simulated"}
    stored = TrialRecord(f"{way}{repetition}", 1, row, {"steps": rows[::-1]}, {}, [])
    return stored.at({"way": way}, repetition, other_clock)


def results(*trials: TrialRecord) -> StudyResults:
    own = tuple(each for each in trials if not each.other_clock)
    beside = tuple(each for each in trials if each.other_clock)
    return StudyResults(Path(), {"title": "t", "quick": False}, own, beside)


TWO_WAYS = results(
    trial("slow", 0, [0.2, None, 0.6]),
    trial("slow", 1, [0.4, 0.5, 0.6]),
    trial("fast", 0, [0.8, 0.9, 0.99]),
    trial("fast", 1, [0.9, 0.9, 1.0]),
    trial("fast", 1, [0.0, 0.0, 0.0], other_clock=True),
)
COURSE: dict[str, Any] = {"table": "steps", "step": "step", "y": "accuracy", "label": "the {way} way"}


def section(**course: Any) -> FigureSection:
    return FigureSection(kind="course", x="way", y="accuracy", series="way", course=CourseSection(**COURSE, **course))


def test_means_of_repetitions_in_the_order_of_steps() -> None:
    course = section(x="span_s", cumulative=True, x_times=10, y_times=100).course
    assert course is not None
    slow, fast = courses(TWO_WAYS, course, "way").values()
    assert (slow.row["way"], fast.row["way"]) == ("slow", "fast")
    # Of the second step one of them has no accuracy, nor a time.
    assert slow.xs == [20, 40, pytest.approx((40 + 60) / 2)]
    assert [y.estimate for y in slow.ys] == pytest.approx([30, 50, 60])
    assert [y.repetitions for y in fast.ys] == [2, 2, 2]


def test_first_repetitions_are_lines_of_their_own() -> None:
    course = section(repetitions="first").course
    assert course is not None
    # Without a series, trials of both ways have the same key.
    lines = courses(TWO_WAYS, course, None)
    assert [[y.estimate for y in line.ys] for line in lines.values()] == [[0.2, 0.6], [0.8, 0.9, 0.99]]


def drawn(shown: FigureSection) -> Any:
    with figure() as (_, [axes]):
        draw_course(Sheet([axes], TWO_WAYS, shown, SHARE))
        return axes


def test_dashes_labels_and_bands() -> None:
    axes = drawn(section(y_times=100, dashed={"way": "fast"}))
    assert [(line.get_label(), line.get_linestyle()) for line in axes.lines] == [
        ("the slow way", "-"),
        ("the fast way", "--"),
    ]
    _, fast = axes.collections
    heights = fast.get_paths()[0].vertices[:, 1]
    assert max(heights) == 100, "an interval is cut where accuracies end"
    assert min(heights) < 80


def test_a_mean_has_no_band_and_dashes_may_be_told_once() -> None:
    axes = drawn(section(repetitions="mean", dashed={"way": "fast"}, dashed_label="in haste"))
    assert not axes.collections
    assert axes.get_legend_handles_labels()[1] == ["the slow way", "in haste"]


def test_without_rows_there_is_nothing_to_draw() -> None:
    shown = section()
    with figure() as (_, [axes]), pytest.raises(NothingToDraw):
        draw_course(Sheet([axes], results(), shown, SHARE))


def test_panels_are_sections_with_what_differs() -> None:
    shown = FigureSection.model_validate(
        {**section().model_dump(exclude_unset=True), "panels": [{}, {"course.x": "span_s", "x_label": "s"}]}
    )
    first, second = panels_of(shown)
    assert first.course is not None and second.course is not None
    assert (first.course.x, second.course.x, second.x_label, second.y) == (None, "span_s", "s", "accuracy")
    with figure(columns=2) as (made, axes):
        heading = KINDS["course"].draw(Sheet(axes, TWO_WAYS, shown, SHARE))
        assert heading is None
        assert [panel.lines[0].get_xdata()[0] for panel in axes] == [1, 2]
        assert [panel.get_legend() is None for panel in axes] == [False, True]
        KINDS["course"].draw(Sheet(axes, TWO_WAYS, shown.model_copy(update={"legend_columns": 3}), SHARE))
        assert len(made.legends) == 1


def test_a_course_says_what_it_shows() -> None:
    for wrong in ({"kind": "course"}, {"course": COURSE}):
        with pytest.raises(ValueError, match="go together"):
            FigureSection.model_validate({"x": "way", "y": "accuracy", **wrong})
