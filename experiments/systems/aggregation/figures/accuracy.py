"""Figure 7: test accuracy against the time spent on communication."""

from __future__ import annotations

from gradbed.experiments.plotting.series import draw_all, explain_marks, verdicts
from gradbed.experiments.records.run_files import DonePoint
from gradbed.experiments.study.definition.model import CourseSection
from gradbed.experiments.study.evaluation.courses import course_of, draw_line
from gradbed.experiments.study.evaluation.kinds import Sheet, figure_kind
from gradbed.experiments.systems.aggregation.figures.modes import NUMBERS, mode
from gradbed.experiments.tables.intervals import confidence_interval

TARGET = 0.9
"""Accuracy to reach."""

COURSE = CourseSection(table="rounds", step="round", x="round_time_s", x_times=1e3, cumulative=True, y="accuracy")

Course = list[tuple[float, float]]
"""(milliseconds of communication so far, accuracy) after each round."""


def course(point: DonePoint) -> Course:
    return [(x, y) for _, x, y in course_of(point, COURSE)]


def time_to_accuracy_ms(course: Course, target: float = TARGET) -> float | None:
    """None if it is never reached."""
    return next((time for time, accuracy in course if accuracy >= target), None)


@figure_kind("aggregation-accuracy", columns=2, width_in=4.4, height_in=3.5)
def draw(sheet: Sheet) -> None:
    """Left: the first repetition; right: when each reaches the target."""
    [left, right], results = sheet.axes, sheet.results
    of_point = {point.stored.digest: course(point) for point in (*results.points, *results.other_clock)}
    reached = results.derived_series(mode, lambda row: time_to_accuracy_ms(of_point[row["digest"]]), mode)
    for point in results.points:
        if point.repetition == 0:
            name = mode(point.row)
            times, accuracies = zip(*of_point[point.stored.digest], strict=True)
            percent = [confidence_interval([100 * accuracy]) for accuracy in accuracies]
            draw_line(left, times, percent, label=name, number=NUMBERS[name])
    left.axhline(100 * TARGET, color="grey", linestyle="--", linewidth=0.8)
    left.set(xlabel="communication so far (ms)", ylabel="test accuracy (%)", xlim=(0, None))
    left.legend(loc="lower right")
    places = {name: float(index) for index, name in enumerate(dict.fromkeys(mode(p.row) for p in results.points))}
    draw_all(right, reached, is_labelled=False, numbers=NUMBERS, x_of=places)
    right.set_xticks(list(places.values()), list(places))
    right.set(xlim=(-0.5, len(places) - 0.5), ylim=(0, None), ylabel=f"communication until {100 * TARGET:.0f} % (ms)")
    explain_marks(right, verdicts(reached))
    if right.get_legend_handles_labels()[1]:
        right.legend()
