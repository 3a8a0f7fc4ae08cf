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
    """What is varied: dotted paths of the configuration, each with its values.

    Every combination of the product axes is run; the zip axes go in step with each other, as one further axis.
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
    """What `kind: course` shows: y over x of a further table, a line for each value of the figure's `series`.

    step: the column by which a trial's rows are in order. x: None: the step; cumulative: its sum up to each row.
    x_times, y_times: for another unit. repetitions: the first one's line, the mean of both columns at each step, or
    the mean with its interval around it. dashed: the value of a column whose lines are dashed; dashed_label tells so
    in the legend. label: of a line, with columns in braces.
    """

    table: str
    step: str
    x: str | None = None
    y: str
    cumulative: bool = False
    x_times: float = 1.0
    y_times: float = 1.0
    repetitions: Literal["first", "mean", "interval"] = "interval"
    dashed: dict[str, Any] = Field(default_factory=dict, max_length=1)
    dashed_label: str | None = None
    label: str = ""


def _metric_name(value: Any) -> Any:
    if not isinstance(value, str):
        raise ValueError(f"must be the name of a metric, got {value!r}")
    return value


MetricName = Annotated[str, BeforeValidator(_metric_name)]
"""A metric of the system, or another column of the trials table."""


class FigureSection(Section):
    """One figure: lines of y against x, one for each value of `series` (none: a single line).

    kind bars: a bar for each series at every x. lines with words for x: trials, as nothing lies between them. course:
    what further tables tell of a run from step to step (section course). distribution: which share of all values of x
    is at most so large; x is a column of the trials table or of a further one (table), whose rows may stand for
    several values each (weight, a column of it); there is no y. panels: several of these beside each other,
    each with what differs, by dotted path; they have the legend of the first one. names: what values of the series
    are called.
    x and series are paths of the sweep; y, bound, expected and saturation are names of metrics, never numbers. Each
    of the last three is drawn for every series, or once if all agree. normalised: y, bound and expected in units of
    the link rate.
    """

    kind: str = "lines"
    x: str
    y: MetricName = ""
    series: str | None = None
    bound: MetricName | None = None
    """The metric that is a limit of y, which y never crosses; a dashed line."""
    expected: MetricName | None = None
    """The metric that is what theory says of y, an analytic curve; a dotted line."""
    saturation: MetricName | None = None
    """The metric that is the x from which on y cannot follow; a dotted upright."""
    normalised: bool = False
    x_scale: Literal["linear", "log", "symlog"] = "linear"
    y_scale: Literal["linear", "log"] = "linear"
    statistic: Literal["mean", "median"] = "mean"
    x_label: str | None = None
    y_label: str | None = None
    title: str | None = None
    names: dict[str, str] = Field(default_factory=dict)
    x_from: float | None = None
    y_limits: tuple[float | None, float | None] | None = None
    """None: from zero, on a linear axis."""
    legend_columns: int | None = None
    """Below the panels, in so many columns; None: inside, but below bars, in two."""
    width_in: float | None = None
    height_in: float | None = None
    """Of each panel; None: as the kind has it."""
    course: CourseSection | None = None
    table: str | None = None
    weight: str | None = None
    panels: list[dict[str, Any]] = Field(default_factory=list)

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
        """The column that it is about."""
        return (self.y or self.x) + ("_normalised" if self.normalised else "")


class GoalSection(Section):
    """What a metric, or its share of another column (over), is to be at every place of the sweep, in the mean of
    repetitions. Where it is not, the study fails; too little for at_least is open where the machine was the limit.

    where: swept paths and their values: only there. in_real_time: what is judged is the mean of the trials that are
    repeated in real time (real_time) over that on the virtual clock; where intervals of both overlap, it is met, and
    where the machine could not keep up, it is open."""

    metric: str
    over: str | None = None
    at_least: float | None = None
    at_most: float | None = None
    where: dict[str, Any] = Field(default_factory=dict)
    in_real_time: bool = False

    @model_validator(mode="after")
    def _has_a_limit(self) -> GoalSection:
        if self.at_least is None and self.at_most is None:
            raise ValueError("a goal has at_least, at_most or both")
        return self


class RealTimeSection(Section):
    """Of a study on the virtual clock: which trials are repeated in real time, at the machine's scale, to be drawn on
    top. share: of all trials; which ones is drawn with the study's name as the seed."""

    share: float = Field(gt=0, le=1)


class DemoSection(Section):
    """What `gradbed demo` says beside the results. idea: what the system is about, for newcomers. says: by metric,
    the beginning of a sentence that its values end. next: commands to go on with, and what they show. beside: values
    by dotted path with which a demo on the real clock is repeated on the virtual one; empty: it is not repeated."""

    idea: str
    says: dict[str, str] = Field(default_factory=dict)
    next: dict[str, str] = Field(default_factory=dict)
    beside: dict[str, Any] = Field(default_factory=dict)


class ChaosSection(Section):
    """Where `gradbed chaos` lets its faults happen (experiments/study/chaos.py). at_ms: from when to when, spread
    over the repetitions. back_ms: what goes comes back so much later. links: that are cut; switch: with the system's
    program; forwarding: one without. worker, server: agents; the worker does not come back. errors: by fault, a
    pattern of the line with which a trial may end, where no right result is possible. A name that is not given: the
    system has no such thing. openflow: by dotted path, with what the forwarding switch is a bridge of Open vSwitch,
    for a further fault on the real clock."""

    at_ms: tuple[float, float]
    back_ms: float = Field(gt=0)
    links: tuple[str, str]
    switch: str
    forwarding: str | None = None
    openflow: dict[str, Any] = Field(default_factory=dict)
    worker: str | None = None
    server: str | None = None
    errors: dict[str, str] = Field(default_factory=dict)


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
    """Of each trial in which something is random (TrialConfiguration.chance); of any other, one."""
    seeds: list[Annotated[int, Field(ge=0, lt=2**31)]] | None = None
    """One for each repetition; None: 1, 2, 3, ..."""
    metrics: list[str] = Field(default_factory=list)
    """The ones to show in the table at the end; all are kept. None named: all."""
    quick: dict[str, Any] = Field(default_factory=dict)
    """What --quick changes: a partial study, or dotted paths."""
    figures: dict[Annotated[str, AfterValidator(_file_name)], FigureSection] = Field(default_factory=dict)
    """By file name."""
    compare: str | None = None
    """A swept path whose values are to stand beside each other, in a table of differences to the first one."""
    goals: dict[str, GoalSection] = Field(default_factory=dict)
    """By what people call them."""
    attempts: int = Field(default=1, ge=1)
    """So often a trial in real time is measured at most, as long as the machine cannot keep up."""
    limit_s: float | None = Field(default=None, gt=0)
    """So much of the machine's time a trial may take; one that takes longer is ended, and has no result."""
    pcap: CaptureOrder = False
    """What to capture while a trial runs."""
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
        """Whether some trial runs on the real clock, in the kernel's network."""
        return any(trial.configuration.clock == "real" for trial in self.trials)


@dataclass(frozen=True)
class TrialSpec:
    """What is asked: one run, at one place of a sweep."""

    coordinates: Mapping[str, Any]
    """By swept path, as validated."""
    repetition: int
    """Counted from 0."""
    seed: int
    configuration: TrialConfiguration
    other_clock: bool = False
    """Whether it repeats another trial on the other clock, and so stands beside the results."""
    digest: str = ""
    """Identifies the trial on this machine (gradbed.experiments.study.running.runner.plan). Trials that mean the same
    have the same one, and run once."""

    @property
    def label(self) -> str:
        """For people: "switches.maximum=2, seed 1", paths by their last parts."""
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
