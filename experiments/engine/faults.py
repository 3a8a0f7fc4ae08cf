"""Inject the faults of a configuration, and record the timeline of a phase."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gradbed.common.errors import UserError
from gradbed.experiments.configuration.faults import (
    AgentFault,
    AgentPause,
    ControllerRestart,
    Fault,
    LinkChange,
    LinkFault,
    SwitchRestart,
)
from gradbed.experiments.runtimes.interface import Runtime
from gradbed.experiments.scale import Scale

# ---- Faults ----


def schedule(
    runtime: Runtime,
    faults: Sequence[Fault],
    scale: Scale,
    jobs: Sequence[int],
    note: Callable[[Fault], None] = lambda fault: None,
    begun_us: int | None = None,
) -> None:
    """Schedule faults at their times, those of one time in the order in which they stand.

    Args:
        runtime: Where they are injected.
        faults: The faults.
        scale: Scale of their times.
        jobs: The controller's numbers of the jobs that run.
        note: Called with each fault as it is injected.
        begun_us: When times begin to count (Runtime.now_us); what is overdue happens at once. None: now.
    """
    passed_us = 0 if begun_us is None else runtime.now_us() - begun_us
    for fault in faults:
        runtime.call_after(
            max(0, scale.time_us(1000 * fault.at_ms) - passed_us),
            functools.partial(_apply, fault, runtime, scale, jobs, note),
        )


def _apply(fault: Fault, runtime: Runtime, scale: Scale, jobs: Sequence[int], note: Callable[[Fault], None]) -> None:
    note(fault)
    match fault:
        case LinkFault():
            runtime.set_link_up(*fault.link, fault.fault == "link-up")
        case LinkChange():
            runtime.backend.change_link(*fault.link, **fault.change.fields(scale))
        case SwitchRestart():
            runtime.restart_switch(fault.switch)
        case ControllerRestart(fault="controller-failover"):
            runtime.fail_over_controller()
        case ControllerRestart():
            runtime.restart_controller()
        case AgentPause():
            agent = _job(fault, jobs), fault.agent
            runtime.agents.pause(*agent)
            runtime.call_after(scale.time_us(1000 * fault.for_ms), functools.partial(runtime.agents.resume, *agent))
        case AgentFault():
            happen = runtime.agents.kill if fault.fault == "agent-stop" else runtime.restart_agent
            happen(_job(fault, jobs), fault.agent)


def _job(fault: AgentFault | AgentPause, jobs: Sequence[int]) -> int:
    """Return the controller's number of the fault's job. UserError if there are not so many."""
    if fault.job > len(jobs):
        raise UserError(f"{fault.fault} {fault.agent}: there is no job {fault.job}, they are 1 to {len(jobs)}")
    return jobs[fault.job - 1]


# ---- When what happened ----


MEASURING, COMPLETE = "measuring begins", "complete"
"""Link throughput is measured between these; without the first, since the agents begin."""


class Timeline:
    """Records when what happened in a phase, from when it is made, which is when the agents begin."""

    def __init__(self, runtime: Runtime, scale: Scale) -> None:
        self._runtime = runtime
        self._scale = scale
        self.begun_us = runtime.now_us()
        self._rows: list[dict[str, Any]] = []
        self._of_kind: dict[str, dict[str, Any]] = {}

    def fault(self, fault: Fault) -> None:
        self._add("fault", fault.words)

    def event(self, event: Mapping[str, Any]) -> None:
        kind = str(event["event"])
        row = self._of_kind.get(kind) or self._of_kind.setdefault(kind, self._add("event", kind))
        row["last_us"] = self._now_us()
        row["count"] += 1

    def measuring(self) -> None:
        """Record that links are measured from now on, later than the agents begin."""
        self._add("phase", MEASURING)

    def complete(self) -> None:
        self._add("phase", COMPLETE)

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows in the order of their first times.

        Columns: what ("fault", "event", "phase"), name, count, and time_us and last_us, the times of the first and
        the last in nominal microseconds since the agents began.
        """
        return sorted(self._rows, key=lambda row: row["time_us"])

    def _add(self, what: str, name: str) -> dict[str, Any]:
        now_us = self._now_us()
        count = 0 if what == "event" else 1
        row = {"time_us": now_us, "last_us": now_us, "what": what, "name": name, "count": count}
        self._rows.append(row)
        return row

    def _now_us(self) -> float:
        return self._scale.nominal_time(self._runtime.now_us() - self.begun_us)
