"""A study: one experiment file, resolved and checked, and the trials that its sweep stands for."""

from __future__ import annotations

import copy
import functools
import itertools
import operator
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from gradbed.experiments.captures import CaptureOrder
from gradbed.experiments.configuration.sections import Section
from gradbed.experiments.configuration.trial import TrialConfiguration
from gradbed.experiments.system import System
from gradbed.experiments.tables.metric import value_words

# ---- The study ----


Axis = Annotated[list[Any], Field(min_length=1)]


class Sweep(Section):
    """Swept values: dotted paths of the configuration, each with its values.

    Every combination of the product axes is run. The zip axes advance together, as one further axis.
    """

    product: dict[str, Axis] = Field(default_factory=dict)
    zip: dict[str, Axis] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _in_step(self) -> Sweep:
        lengths = {path: len(values) for path, values in self.zip.items()}
        if len(set(lengths.values())) > 1:
            said = ", ".join(f"{path} has {length}" for path, length in lengths.items())
            raise ValueError(f"axes that go in step have equally many values, but {said}")
        if both := sorted(self.product.keys() & self.zip.keys()):
            raise ValueError(f"{both[0]} stands under product and under zip")
        return self

    @property
    def paths(self) -> list[str]:
        return [*self.product, *self.zip]


class CourseSection(Section):
    """Settings of `kind: course`: y over x of a further table, one line for each value of the figure's `series`."""

    table: str
    """Name of the trial's table."""
    step: str
    """Column that orders the rows of a trial."""
    x: str | None = None
    """Column of the x axis; None: the step."""
    y: str
    cumulative: bool = False
    """Whether x is the sum of its column up to each row."""
    x_times: float = 1.0
    """Factor of x, for another unit."""
    y_times: float = 1.0
    """Factor of y, for another unit."""
    repetitions: Literal["first", "mean", "interval"] = "interval"
    """Line to draw: of the first repetition, of the means of both columns at each step, or that with the interval of
    y.
    """
    dashed: dict[str, Any] = Field(default_factory=dict, max_length=1)
    """Column and its value for which lines are dashed."""
    dashed_label: str | None = None
    """Legend entry of dashed lines."""
    label: str = ""
    """Label of a line, with columns in braces."""


def _metric_name(value: Any) -> Any:
    if not isinstance(value, str):
        raise ValueError(f"must be the name of a metric, got {value!r}")
    return value


MetricName = Annotated[str, BeforeValidator(_metric_name)]
"""A metric of the system, or another column of the trials table."""


class FigureSection(Section):
    """A figure: y against x, with one line for each value of `series`.

    x and series are paths of the sweep; y, bound, expected and saturation are names of metrics, never numbers. Each
    of the last three is drawn for every series, or once if all agree.
    """

    kind: str = "lines"
    """Kind of the figure.

    lines (single markers where x are words), bars (one for each series at every x), course (values of further tables
    step by step, see `course`), distribution (CDF of x, without y), or a kind of the system.
    """
    x: str
    """Swept path; of a distribution a column of the trials table or of `table`."""
    y: MetricName = ""
    series: str | None = None
    """Swept path with a line for each of its values; None: a single line."""
    bound: MetricName | None = None
    """Metric that limits y; a dashed line."""
    expected: MetricName | None = None
    """Metric that theory predicts for y; a dotted line."""
    saturation: MetricName | None = None
    """Metric that is the x above which y no longer follows; a dotted vertical line."""
    normalised: bool = False
    """Whether y, bound and expected are in units of the link rate."""
    x_scale: Literal["linear", "log", "symlog"] = "linear"
    y_scale: Literal["linear", "log"] = "linear"
    statistic: Literal["mean", "median"] = "mean"
    x_label: str | None = None
    y_label: str | None = None
    """Label of y; the unit of the metric is added, unless it ends with one in parentheses."""
    title: str | None = None
    names: dict[str, str] = Field(default_factory=dict)
    """Labels of the values of the series, and of words on the x axis."""
    colours: dict[str, int] = Field(default_factory=dict)
    """Number of the colour of each value of the series, for those that have none in all figures of the system."""
    x_from: float | None = None
    y_limits: tuple[float | None, float | None] | None = None
    """Limits of the y axis; None: from zero, on a linear axis."""
    legend_columns: int | None = None
    """Number of columns of a legend below the panels; None: inside, but below bars, in two."""
    width_in: float | None = None
    height_in: float | None = None
    """Height of each panel in inches; None: as the kind has it."""
    course: CourseSection | None = None
    table: str | None = None
    """Further table that has the column x of a distribution."""
    weight: str | None = None
    """Column of `table` with the number of values that a row stands for."""
    where: dict[str, Any] = Field(default_factory=dict)
    """Columns of a course's rows and the value of each, or the list of values, that are shown."""
    panel_columns: int | None = Field(default=None, ge=1)
    """Number of panels in a row; None: all."""
    panels: list[dict[str, Any]] = Field(default_factory=list)
    """Panels, row by row: the values in which each differs, by dotted path. The legend has each name once."""

    @model_validator(mode="after")
    def _a_course_says_what_it_shows(self) -> FigureSection:
        if (self.kind == "course") != (self.course is not None):
            raise ValueError("kind course and a section course go together")
        return self

    @model_validator(mode="after")
    def _a_distribution_has_no_y(self) -> FigureSection:
        if self.kind == "distribution" and self.y:
            raise ValueError("a distribution has no y: its curves show which share of all x is at most so large")
        if self.kind != "distribution" and not self.y:
            raise ValueError("y is missing")
        if (self.table or self.weight) and self.kind != "distribution":
            raise ValueError("table and weight are for kind distribution")
        if self.weight and not self.table:
            raise ValueError("a weight is a column of a table: name the table, too")
        return self

    @property
    def shown(self) -> str:
        """Column that the figure is about."""
        return (self.y or self.x) + ("_normalised" if self.normalised else "")


class GoalSection(Section):
    """Limits of a metric at every place of the sweep, in the mean of repetitions.

    The study fails where a limit is missed. A value below at_least is open where the host could not keep up.
    """

    metric: str
    over: str | None = None
    """Column by which the metric is divided."""
    at_least: float | None = None
    at_most: float | None = None
    where: dict[str, Any] = Field(default_factory=dict)
    """Swept paths and the values to which the goal is restricted."""
    in_real_time: bool = False
    """Whether the goal is for the mean in real time (real_time) over that on the virtual clock.

    It is met where intervals of both overlap, and open where the host could not keep up.
    """

    @model_validator(mode="after")
    def _has_a_limit(self) -> GoalSection:
        if self.at_least is None and self.at_most is None:
            raise ValueError("a goal has at_least, at_most or both")
        return self


class RealTimeSection(Section):
    """Trials on the virtual clock that are repeated in real time, at the host's scale, and drawn on top."""

    share: float = Field(gt=0, le=1)
    """Fraction of all trials, chosen at random with the study's name as the seed."""


class DemoSection(Section):
    """Text that `gradbed demo` prints beside the results."""

    idea: str
    """Introduction to the system for newcomers."""
    says: dict[str, str] = Field(default_factory=dict)
    """Beginning of a sentence that ends with the metric's values, by metric."""
    next: dict[str, str] = Field(default_factory=dict)
    """Further commands, and what they show."""
    beside: dict[str, Any] = Field(default_factory=dict)
    """Values by dotted path with which a demo in real time is repeated on the virtual clock; empty: it is not."""


class ChaosSection(Section):
    """Faults of `gradbed chaos` for this study (experiments/study/chaos.py); a system without a part leaves out its
    name.
    """

    at_ms: tuple[float, float]
    """Interval in which faults happen, spread over the repetitions."""
    back_ms: float = Field(gt=0)
    """Time until a part that went down comes back."""
    links: tuple[str, str]
    """Links that are cut."""
    switch: str
    """Switch with the system's program."""
    forwarding: str | None = None
    """Switch without the system's program."""
    openflow: dict[str, Any] = Field(default_factory=dict)
    """Changes, by dotted path, that make the forwarding switch a bridge of Open vSwitch: one more fault in real time.
    """
    worker: str | None = None
    """Agent that is stopped and does not come back."""
    server: str | None = None
    """Agent of the server."""
    errors: dict[str, str] = Field(default_factory=dict)
    """Pattern, by fault, of the error with which a trial may end where no right result is possible."""


def _file_name(text: str) -> str:
    if not text or not all(c.isalnum() or c in "-_" for c in text):
        raise ValueError("a name is letters, digits, - and _: it becomes the name of a folder or file")
    return text


class StudyHead(Section):
    """The part of a study that is the same for all systems."""

    name: Annotated[str, AfterValidator(_file_name)]
    system: str
    title: str = ""
    sweep: Sweep = Sweep()
    repetitions: int = Field(default=1, ge=1)
    """Repetitions of each trial in which something is random (TrialConfiguration.chance); others run once."""
    seeds: list[Annotated[int, Field(ge=0, lt=2**31)]] | None = None
    """Seeds, one for each repetition; None: 1, 2, 3, ..."""
    metrics: list[str] = Field(default_factory=list)
    """Metrics of the table at the end; none named: all. All are stored."""
    quick: dict[str, Any] = Field(default_factory=dict)
    """Changes of --quick: a partial study, or dotted paths."""
    figures: dict[Annotated[str, AfterValidator(_file_name)], FigureSection] = Field(default_factory=dict)
    """Figures by file name."""
    compare: str | None = None
    """Swept path whose values are compared, in a table of differences to the first one."""
    goals: dict[str, GoalSection] = Field(default_factory=dict)
    """Goals by a name for people."""
    attempts: int = Field(default=1, ge=1)
    """Maximum number of runs of a trial in real time while the host cannot keep up."""
    limit_s: float | None = Field(default=None, gt=0)
    """Maximum wall-clock time of a trial in seconds; one that takes longer is ended, and has no result."""
    pcap: CaptureOrder = False
    """Links to capture while a trial runs."""
    real_time: RealTimeSection | None = None
    demo: DemoSection | None = None
    chaos: ChaosSection | None = None

    @model_validator(mode="after")
    def _a_seed_for_each_repetition(self) -> StudyHead:
        if self.seeds is not None:
            if len(set(self.seeds)) != len(self.seeds):
                raise ValueError("seeds: each repetition needs a seed of its own")
            if len(self.seeds) < self.repetitions:
                raise ValueError(f"seeds: {self.repetitions} repetitions need as many seeds, got {len(self.seeds)}")
        return self

    @property
    def seed_of_repetition(self) -> list[int]:
        return (self.seeds or list(range(1, self.repetitions + 1)))[: self.repetitions]


@dataclass(frozen=True)
class Study:
    """A study that can run."""

    head: StudyHead
    system: System
    quick: bool
    """Whether its quick section was applied."""
    path: Path | None
    """Its file, if it has one."""
    trials: tuple[TrialSpec, ...]
    """Every combination of its sweep, each repetition."""

    @property
    def name(self) -> str:
        return self.head.name

    @property
    def needs_network(self) -> bool:
        """Return whether a trial runs on the real clock, in the kernel's network."""
        return any(trial.configuration.clock == "real" for trial in self.trials)


@dataclass(frozen=True)
class TrialSpec:
    """A planned trial: one run, at one place of a sweep."""

    coordinates: Mapping[str, Any]
    """Value of each swept path, as validated."""
    repetition: int
    """Number of the repetition, from 0."""
    seed: int
    configuration: TrialConfiguration
    other_clock: bool = False
    """Whether it repeats another trial on the other clock."""
    digest: str = ""
    """Identifier of the trial on this machine (runner.plan); trials that mean the same share one, and run once."""

    @property
    def label(self) -> str:
        """Label for people, such as "switches.maximum=2, seed 1", paths by their last parts."""
        parts = [f"{path.rsplit('.', 1)[-1]}={value_words(value)}" for path, value in self.coordinates.items()]
        clock = {"real": "real time", "virtual": "virtual clock"}[self.configuration.clock]
        return ", ".join([*parts, f"seed {self.seed}", *([clock] if self.other_clock else [])])


# ---- From a sweep to its combinations ----


def expand(sweep: Sweep) -> Iterator[dict[str, Any]]:
    """Values by path, the last axis varying fastest; the zip axes are the last. Without any axis, one empty set."""
    in_step = [dict(zip(sweep.zip, values, strict=True)) for values in zip(*sweep.zip.values(), strict=True)]
    for values in itertools.product(*sweep.product.values()):
        chosen = dict(zip(sweep.product, values, strict=True))
        for also in in_step or [{}]:
            yield {**chosen, **also}


def with_values(data: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of nested mappings with values at dotted paths. KeyError(what is no mapping, path)."""
    result = copy.deepcopy(dict(data))
    for path, value in values.items():
        *sections, last = path.split(".")
        inner = result
        for depth, section in enumerate(sections):
            following = inner.setdefault(section, {})
            if not isinstance(following, dict):
                raise KeyError(".".join(sections[: depth + 1]), path)
            inner = following
        inner[last] = value
    return result


def values_at(data: Mapping[str, Any], paths: Iterable[str]) -> dict[str, Any]:
    """The values of nested mappings at dotted paths."""
    return {path: functools.reduce(operator.getitem, path.split("."), data) for path in paths}
