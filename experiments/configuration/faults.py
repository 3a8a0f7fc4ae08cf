"""Faults at given times of a run: links down and up, other link attributes, switches restarted, agents stopped and
started. The times count from when the agents begin, and are nominal, like all times of a study."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from experiments.configuration.sections import LinkOverride, Section
from experiments.scale import Scale
from topo.graph import Topology

if TYPE_CHECKING:
    from experiments.testbed import Testbed


class _Fault(Section):
    at_ms: float = Field(ge=0, description="Nominal milliseconds after the agents have begun.")


class LinkFault(_Fault):
    """A link between two nodes goes down or comes up again."""

    fault: Literal["link-down", "link-up"]
    link: tuple[str, str]

    def apply(self, testbed: Testbed, scale: Scale) -> None:
        testbed.set_link_up(*self.link, self.fault == "link-up")


class LinkChange(_Fault):
    """A link, in both directions, gets other attributes: rate, delay, loss, ..."""

    fault: Literal["link-change"]
    link: tuple[str, str]
    change: LinkOverride

    def apply(self, testbed: Testbed, scale: Scale) -> None:
        testbed.change_link(*self.link, **self.change.fields(scale))


class SwitchRestart(_Fault):
    """A switch loses program, tables and registers, and comes back."""

    fault: Literal["switch-restart"]
    switch: str

    def apply(self, testbed: Testbed, scale: Scale) -> None:
        testbed.restart_switch(self.switch)


class AgentFault(_Fault):
    """An agent is ended at once, or started anew. agent: its name, such as "worker 0"; job: its number, from 1."""

    fault: Literal["agent-stop", "agent-start"]
    agent: str
    job: int = 1

    def apply(self, testbed: Testbed, scale: Scale) -> None:
        if self.fault == "agent-stop":
            testbed.kill_agent(self.job, self.agent)
        else:
            testbed.restart_agent(self.job, self.agent)


Fault = Annotated[LinkFault | LinkChange | SwitchRestart | AgentFault, Field(discriminator="fault")]


def schedule(testbed: Testbed, faults: Sequence[Fault], scale: Scale) -> None:
    """Let faults happen at their times from now on, those of one time in the order in which they stand."""
    for fault in faults:
        testbed.call_after(scale.time_us(1000 * fault.at_ms), functools.partial(fault.apply, testbed, scale))


def check_faults(faults: Sequence[Fault], topology: Topology) -> None:
    """UserError for a link or switch that the topology does not have."""
    for fault in faults:
        if isinstance(fault, SwitchRestart):
            topology.switch(fault.switch)
        elif not isinstance(fault, AgentFault):
            topology.link(*fault.link)
