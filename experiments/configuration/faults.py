"""Faults at given times of a run: links down and up, other link attributes, switches restarted, agents stopped and
started. The times count from when the agents begin, and are nominal, like all times of a study."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from experiments.configuration.sections import LinkOverride, Section
from topo.graph import Topology

if TYPE_CHECKING:
    pass


class _Fault(Section):
    at_ms: float = Field(ge=0, description="Nominal milliseconds after the agents have begun.")


class LinkFault(_Fault):
    """A link between two nodes goes down or comes up again."""

    fault: Literal["link-down", "link-up"]
    link: tuple[str, str]


class LinkChange(_Fault):
    """A link, in both directions, gets other attributes: rate, delay, loss, ..."""

    fault: Literal["link-change"]
    link: tuple[str, str]
    change: LinkOverride


class SwitchRestart(_Fault):
    """A switch loses program, tables and registers, and comes back."""

    fault: Literal["switch-restart"]
    switch: str


class AgentFault(_Fault):
    """An agent is ended at once, or started anew. agent: its name, such as "worker 0"; job: which of the point's
    jobs, from 1."""

    fault: Literal["agent-stop", "agent-start"]
    agent: str
    job: int = Field(default=1, ge=1)


def touched_agents(faults: Sequence[Fault]) -> frozenset[tuple[int, str]]:
    """Job (from 1) and name of agents that are stopped, or started anew."""
    return frozenset((fault.job, fault.agent) for fault in faults if isinstance(fault, AgentFault))


def stopped_agents(faults: Sequence[Fault]) -> frozenset[str]:
    """Those that are ended and not started again."""
    in_time = sorted(faults, key=lambda fault: fault.at_ms)
    last = {fault.agent: fault.fault for fault in in_time if isinstance(fault, AgentFault)}
    return frozenset(agent for agent, fault in last.items() if fault == "agent-stop")


def restarted_switches(faults: Sequence[Fault]) -> frozenset[str]:
    """Switches whose counters begin anew in the middle of a run."""
    return frozenset(fault.switch for fault in faults if isinstance(fault, SwitchRestart))


Fault = Annotated[LinkFault | LinkChange | SwitchRestart | AgentFault, Field(discriminator="fault")]


def check_faults(faults: Sequence[Fault], topology: Topology) -> None:
    """UserError for a link or switch that the topology does not have."""
    for fault in faults:
        if isinstance(fault, SwitchRestart):
            topology.switch(fault.switch)
        elif not isinstance(fault, AgentFault):
            topology.link(*fault.link)
