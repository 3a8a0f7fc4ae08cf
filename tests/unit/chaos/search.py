"""Runs under random faults: small configurations of every system, judged as the fault matrix judges its cells."""

from __future__ import annotations

import functools
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gradbed.common.resources import scratch_folder
from gradbed.experiments.configuration.faults import Fault
from gradbed.experiments.configuration.options import model_options
from gradbed.experiments.configuration.trial import TrialConfiguration
from gradbed.experiments.engine.observer import TrialObserver
from gradbed.experiments.results.run_folder import RunFiles, TrialRecord
from gradbed.experiments.runtimes.interface import Runtime
from gradbed.experiments.scale import Scale
from gradbed.experiments.setup import NetworkSetup, TrialTask
from gradbed.experiments.study.chaos import NOTHING, Cell, Matrix, judged, load_chaos
from gradbed.experiments.study.definition import ChaosSection, Study, TrialSpec, with_values
from gradbed.experiments.study.running.runner import StudyRun
from gradbed.experiments.study.running.worker import BrokenTrial, Outcome, run_task
from gradbed.experiments.systems import find_system
from tests.unit.chaos.explanations import Cause, causes
from tests.unit.chaos.schedules import Places, text

RANDOM = "random faults"
LIMIT_S = 1800.0
"""Of the machine's time, for one run. Most take less than a second, but who waits 30 s in vain asks often, and a
machine may have other work."""
BOUND_S = 120.0
"""Of the network's time, for one run, however it ends: who waits for nothing gives up after 30 s, and there may be
several in turn."""
LATE = r"was over after \d+ of \d+ faults"
"""Times are drawn from a run without faults; another may be over sooner."""


@dataclass(frozen=True)
class Searched:
    """A system, how it is run, and with which lines a run may end for what reason. values: by dotted path; anew: its
    agents may begin anew."""

    system: str
    values: Mapping[str, Any]
    agents: Sequence[str]
    errors: Mapping[Cause, str] = field(default_factory=dict)
    anew: bool = True

    @functools.cached_property
    def configuration(self) -> TrialConfiguration:
        return self.with_faults(())

    def with_faults(self, faults: Sequence[Fault]) -> TrialConfiguration:
        """Checked as `gradbed run` does."""
        system = find_system(self.system)
        plain = with_values({}, {**system.options.defaults, **self.values, "clock": "virtual"})
        found: TrialConfiguration = system.configuration.model_validate({**plain, "faults": tuple(faults)})
        system.check(found)
        return found

    @functools.cached_property
    def places(self) -> Places:
        """Up to the end of a run without faults."""
        ends_us = [row["time_us"] for row in self.faultless.table("timeline") if row["what"] == "phase"]
        return Places.of(self.configuration.topology.build(Scale()), self.agents, max(ends_us) / 1e3, self.anew)

    @functools.cached_property
    def faultless(self) -> TrialRecord:
        outcome, _ = _run(self, self.configuration)
        assert not isinstance(outcome, BrokenTrial), outcome.details
        assert outcome.failures == []
        return outcome.at({"fault": NOTHING}, 0)

    @functools.cached_property
    def matrix(self) -> tuple[Study, ChaosSection]:
        """Of which the judge is."""
        return load_chaos(self.system, Matrix(quick=True))

    def allowed(self, faults: Sequence[Fault]) -> str:
        """A pattern of the lines with which a run may end."""
        hosts = {str(row["host"]) for row in self.faultless.table("hosts")}
        found = causes(faults, self.configuration.topology.build(Scale()), hosts)
        return "|".join([LATE, *(self.errors[cause] for cause in sorted(found) if cause in self.errors)])

    def line(self, faults: Sequence[Fault]) -> str:
        """The command that does it again."""
        system = find_system(self.system)
        flags = {
            ".".join(each.path): each.flag for each in model_options(system.configuration, system.options.defaults)
        }
        words = ["./gradbed", "run", self.system, "--clock", "virtual"]
        for path, value in self.values.items():
            words += [flags[path], ",".join(value) if isinstance(value, tuple) else str(value)]
        return shlex.join([*words, *(word for fault in faults for word in ("--fault", text(fault)))])


@dataclass(frozen=True)
class Judged:
    """A run that ended as it may. trial: its result, if it came to one. took_s: of the network's time."""

    cell: Cell
    trial: TrialRecord | None
    took_s: float


def judge(searched: Searched, faults: Sequence[Fault], like: str = RANDOM) -> Judged:
    """Run it under these faults. AssertionError, with the command, where the run does not end as it may.

    like: a fault of the matrix, under which as many packets are a storm.
    """
    configuration = searched.with_faults(faults)
    study, chaos = searched.matrix
    trials = (
        TrialSpec({"fault": NOTHING}, 0, 1, searched.configuration),
        TrialSpec({"fault": like}, 0, 1, configuration),
    )
    outcome, took_s = _run(searched, configuration)
    trial: TrialRecord | None = None
    broken, details = {}, ""
    if isinstance(outcome, BrokenTrial):
        broken, details = {trials[1].label: outcome.reason}, f"\n{outcome.details}"
    else:
        trial = outcome.at({"fault": like}, 0)
    done = (searched.faultless,) if trial is None else (searched.faultless, trial)
    run = StudyRun(Path(), RunFiles(Path()), done, len(trials), broken, interrupted=False)
    chaos = chaos.model_copy(update={"errors": {like: searched.allowed(faults)}})
    _, cell = judged(replace(study, trials=trials), chaos, run)
    again = f"\n{searched.line(faults)}"
    assert cell.verdict != "failed", f"{cell.line}{again}{details}"
    assert took_s <= BOUND_S, f"it took {took_s} s of the network's time{again}"
    return Judged(cell, trial, took_s)


class _Clock(TrialObserver):
    """When a trial was over, or had broken."""

    took_s = 0.0

    def on_network_up(self, runtime: Runtime, network: NetworkSetup, task: TrialTask[Any], system: str) -> None:
        self._runtime = runtime

    def on_network_stop(self) -> None:
        self.took_s = self._runtime.now_us() / 1e6


def _run(searched: Searched, configuration: TrialConfiguration) -> tuple[Outcome, float]:
    clock = _Clock()
    with scratch_folder("trial") as folder:
        task = TrialTask(configuration, 1, Scale(), folder, system=searched.system, digest=RANDOM, limit_s=LIMIT_S)
        outcome = run_task(task, observer=clock)
    return outcome, clock.took_s
