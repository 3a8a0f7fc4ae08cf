"""Do the two clocks agree? What `gradbed bench clocks` does.

Every setting runs on the virtual clock, with links at their nominal rate, and on the real one, with links slowed down
to what the machine carries. Without loss round times are compared by their relative difference, and the bytes and
packets into the servers' links, and over all links, must be equal. With loss or jitter the two clocks draw the same
decisions for the n-th packet of a link, but packets come in another order: several seeds run, and the intervals of
their mean round times must overlap. Where slots are scarce links have jitter, since without any the virtual clock's
workers go in step, packet by packet, as no processes do.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from experiments.calibration import study_scale
from experiments.fidelity.report import FidelityReport
from experiments.records.run_files import StoredPoint
from experiments.scale import Scale
from experiments.study.definition.expansion import with_values
from experiments.study.running.execution import run_now
from experiments.systems.aggregation.configuration import AggregationConfiguration
from experiments.tables.console import make_console
from experiments.tables.intervals import Interval, confidence_interval
from experiments.tables.rows import Columns, rows_table
from experiments.tables.units import engineering

SYSTEM = "aggregation"
ROUNDS = 8
VALUES = 70_400
"""200 packets: long enough for windows to open, short enough for twelve settings."""
SEEDS_OF_RANDOM_LINKS = (1, 2, 3, 4, 5)
LARGEST_DIFFERENCE = 0.03
"""Of mean round times without loss."""
EQUAL = ("server_packets", "server_bytes", "byte_hops")
"""Metrics that must be equal without loss and without anything sent again."""


@dataclass(frozen=True)
class Setting:
    """A point of both clocks: dotted paths of its configuration that differ from the defaults."""

    name: str
    values: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_random(self) -> bool:
        """Whether links lose packets or delay them at random."""
        return not {"topology.link.loss", "topology.link.jitter_us"}.isdisjoint(self.values)

    def configuration(self, clock: str) -> AggregationConfiguration:
        data: dict[str, Any] = {"clock": clock, "workload": {"values": VALUES, "rounds": ROUNDS}}
        # Nothing is sent again only because a busy machine is late.
        data["workload"]["min_timeout_us"] = 10_000 if "topology.link.loss" in self.values else 40_000
        return AggregationConfiguration.model_validate(with_values(data, self.values))


STAR = {"topology.kind": "star:9"}
LEAF_SPINE = {"topology.kind": "leaf-spine:4,2,4"}
JITTER = {"topology.link.jitter_us": 50}
SETTINGS = (
    Setting("star, server alone", {**STAR, "switches.placement": "none"}),
    Setting("star, its switch sums", {**STAR, "switches.placement": "server-tor"}),
    Setting("fat-tree, server alone", {"switches.placement": "none"}),
    Setting("fat-tree, server's ToR", {"switches.placement": "server-tor"}),
    Setting("fat-tree, greedy, M = 1", {"switches.programmable": 1}),
    Setting("fat-tree, greedy, M = 2", {"switches.programmable": 2}),
    Setting("leaf-spine, greedy, M = 2", {**LEAF_SPINE, "switches.programmable": 2}),
    Setting("leaf-spine, every ToR", {**LEAF_SPINE, "switches.placement": "every-tor"}),
    Setting("fat-tree, ring", {"workload.exchange": "ring"}),
    Setting("fat-tree, two jobs", {"workload.jobs": 2, "workload.workers": 6, "switches.programmable": 2}),
    Setting("star, 32 slots", {**STAR, "switches.placement": "server-tor", "switches.slots": 32, **JITTER}),
    Setting("star, loss 0.1 %", {**STAR, "switches.placement": "server-tor", "topology.link.loss": 0.001}),
    Setting("star, loss 1 %", {**STAR, "switches.placement": "server-tor", "topology.link.loss": 0.01}),
    Setting("fat-tree, greedy, M = 2, loss 0.1 %", {"switches.programmable": 2, "topology.link.loss": 0.001}),
)


@dataclass(frozen=True)
class Compared:
    """One setting on both clocks; times are nominal seconds."""

    setting: Setting
    virtual: Interval
    real: Interval
    unequal: Sequence[str]
    verdict: str
    reasons: Sequence[str]
    """What a verdict other than valid is due to."""
    failures: Sequence[str]

    @property
    def difference(self) -> float:
        return self.real.estimate / self.virtual.estimate - 1

    @property
    def judgement(self) -> str:
        """agrees, differs, or open where the machine could not keep up."""
        if self.failures:
            return "wrong"
        if self.setting.is_random:
            agrees = self.real.low <= self.virtual.high and self.virtual.low <= self.real.high
        else:
            agrees = abs(self.difference) <= LARGEST_DIFFERENCE and not self.unequal
        return "agrees" if agrees else "differs" if self.verdict == "valid" else "open"


COLUMNS: Columns = (
    ("setting", lambda row: row.setting.name),
    ("virtual", lambda row: _time(row.virtual)),
    ("real", lambda row: _time(row.real)),
    ("difference", lambda row: f"{100 * row.difference:+.1f} %"),
    ("counts", lambda row: None if row.setting.is_random else ", ".join(row.unequal) or "equal"),
    ("fidelity", lambda row: row.verdict),
    ("", lambda row: row.judgement),
)


def run_bench_clocks(settings: Sequence[Setting] = SETTINGS, factor: float | None = None) -> int:
    """Measure all settings and print a table. Exit status 0; 1 if clocks differ where the machine kept up, or sums
    were wrong."""
    scale = study_scale() if factor is None else Scale(factor)
    rows = []
    for setting in settings:
        rows.append(compared := compare(setting, scale))
        why = "; ".join([compared.verdict, *compared.reasons[:1]])
        print(f"{setting.name}: {100 * compared.difference:+.1f} % ({why})", file=sys.stderr, flush=True)
    title = f"Mean round time on both clocks; real links at {scale.factor:g} of their rate"
    make_console().print(rows_table(title, COLUMNS, rows, words=("setting", "fidelity", "")))
    return int(any(row.judgement in ("differs", "wrong") for row in rows))


def compare(setting: Setting, scale: Scale) -> Compared:
    """Run a setting on both clocks."""
    seeds = SEEDS_OF_RANDOM_LINKS if setting.is_random else (1,)
    virtual = [run_now(SYSTEM, setting.configuration("virtual"), Scale(), seed) for seed in seeds]
    real = [run_now(SYSTEM, setting.configuration("real"), scale, seed) for seed in seeds]
    reports = [FidelityReport.of_columns(point.row) for point in real]
    return Compared(
        setting,
        _interval(virtual),
        _interval(real),
        [] if setting.is_random else [name for name in EQUAL if virtual[0].row[name] != real[0].row[name]],
        next((report.verdict for report in reports if report.verdict != "valid"), "valid"),
        [reason for report in reports for reason in report.reasons],
        [line for point in (*virtual, *real) for line in point.failures],
    )


def _interval(points: Sequence[StoredPoint]) -> Interval:
    """Of the mean round time, after the first round: over the rounds of one run, or over several runs."""
    means = [
        [row["round_time_s"] for row in point.tables["rounds"] if row["round"] > 0 and row["job"] == 1]
        for point in points
    ]
    if len(means) == 1:
        return confidence_interval(means[0])
    return confidence_interval([sum(times) / len(times) for times in means])


def _time(interval: Interval) -> str:
    return engineering(interval.estimate, "s", 3, interval.high - interval.estimate)
