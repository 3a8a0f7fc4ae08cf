"""Faults at given times of a run: links down and up, other link attributes, switches restarted, agents stopped and
started. The times count from when the agents begin, and are nominal, like all times of a study."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from common.errors import UserError
from experiments.configuration.sections import LinkOverride, Section
from experiments.scale import Scale
from topo.graph import Topology

if TYPE_CHECKING:
    from experiments.testbeds.testbed import Testbed


class _Fault(Section):
    at_ms: float = Field(ge=0, description="Nominal milliseconds after the agents have begun.")


class LinkFault(_Fault):
    """A link between two nodes goes down or comes up again."""

    fault: Literal["link-down", "link-up"]
    link: tuple[str, str]

    def apply(self, testbed: Testbed, scale: Scale, jobs: Sequence[int]) -> None:
        testbed.set_link_up(*self.link, self.fault == "link-up")


class LinkChange(_Fault):
    """A link, in both directions, gets other attributes: rate, delay, loss, ..."""

    fault: Literal["link-change"]
    link: tuple[str, str]
    change: LinkOverride

    def apply(self, testbed: Testbed, scale: Scale, jobs: Sequence[int]) -> None:
        testbed.change_link(*self.link, **self.change.fields(scale))


class SwitchRestart(_Fault):
    """A switch loses program, tables and registers, and comes back."""

    fault: Literal["switch-restart"]
    switch: str

    def apply(self, testbed: Testbed, scale: Scale, jobs: Sequence[int]) -> None:
        testbed.restart_switch(self.switch)


class AgentFault(_Fault):
    """An agent is ended at once, or started anew. agent: its name, such as "worker 0"; job: which of the point's
    jobs, from 1."""

    fault: Literal["agent-stop", "agent-start"]
    agent: str
    job: int = Field(default=1, ge=1)

    def apply(self, testbed: Testbed, scale: Scale, jobs: Sequence[int]) -> None:
        if self.job > len(jobs):
            raise UserError(f"{self.fault} {self.agent}: there is no job {self.job}, they are 1 to {len(jobs)}")
        number = jobs[self.job - 1]
        if self.fault == "agent-stop":
            testbed.kill_agent(number, self.agent)
        else:
            testbed.restart_agent(number, self.agent)


def restarted_switches(faults: Sequence[Fault]) -> frozenset[str]:
    """Switches whose counters begin anew in the middle of a run."""
    return frozenset(fault.switch for fault in faults if isinstance(fault, SwitchRestart))


Fault = Annotated[LinkFault | LinkChange | SwitchRestart | AgentFault, Field(discriminator="fault")]


def schedule(testbed: Testbed, faults: Sequence[Fault], scale: Scale, jobs: Sequence[int]) -> None:
    """Let faults happen at their times from now on, those of one time in the order in which they stand.

    jobs: the controller's numbers of the jobs that run."""
    for fault in faults:
        testbed.call_after(scale.time_us(1000 * fault.at_ms), functools.partial(fault.apply, testbed, scale, jobs))


def check_faults(faults: Sequence[Fault], topology: Topology) -> None:
    """UserError for a link or switch that the topology does not have."""
    for fault in faults:
        if isinstance(fault, SwitchRestart):
            topology.switch(fault.switch)
        elif not isinstance(fault, AgentFault):
            topology.link(*fault.link)
