"""Faults at given times of a run.

Links go down and up or change their attributes, switches and the controller restart, agents are stopped, started and
paused. Times count from when the agents begin, and are nominal, like all times of a study. A fault is a mapping or a
text (`fault_of_text`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, ValidationError

from gradbed.common.errors import UserError
from gradbed.common.problems import first_problem
from gradbed.experiments.configuration.sections import LinkOverride, Section
from gradbed.experiments.tables.metric import value_words
from gradbed.topo.graph import Topology
from gradbed.topo.selectors import select

TEXT = "KIND[:NAME][,FIELD=VALUE]@MS"
"""Form of a fault as text."""


class _Fault(Section):
    at_ms: float = Field(ge=0, description="Nominal milliseconds after the agents have begun.")

    @property
    def words(self) -> str:
        """The fault without its time: "link-down e1 a1", "switch-restart s1", "agent-stop worker 0"."""
        return " ".join([str(getattr(self, "fault", "")), *self._subject()])

    def _subject(self) -> Sequence[str]:
        """Return what the fault happens to, and how."""
        return ()


class LinkFault(_Fault):
    """A link between two nodes goes down or comes up again."""

    fault: Literal["link-down", "link-up"]
    link: tuple[str, str]

    def _subject(self) -> Sequence[str]:
        return self.link


class LinkChange(_Fault):
    """A link, in both directions, gets other attributes: rate, delay, loss, ..."""

    fault: Literal["link-change"]
    link: tuple[str, str]
    change: LinkOverride

    def _subject(self) -> Sequence[str]:
        return self.link[0], f"{self.link[1]}:", value_words(self.change.model_dump(exclude_none=True))


class SwitchRestart(_Fault):
    """A switch loses program, tables and registers, and comes back."""

    fault: Literal["switch-restart"]
    switch: str

    def _subject(self) -> Sequence[str]:
        return (self.switch,)


class ControllerRestart(_Fault):
    """The controller is killed.

    It is started anew, or a standby takes over, which has its journal, and what switches hold.
    """

    fault: Literal["controller-restart", "controller-failover"]


class AgentPause(_Fault):
    """An agent does nothing for a while, as if its host stood still; what comes for it waits."""

    fault: Literal["agent-pause"]
    agent: str
    """Name of the agent, such as "worker 0"."""
    job: int = Field(default=1, ge=1)
    """Number of the trial's job, from 1."""
    for_ms: float = Field(gt=0)

    def _subject(self) -> Sequence[str]:
        return self.agent, f"for {self.for_ms:g} ms"


class AgentFault(_Fault):
    """An agent is killed, or restarted."""

    fault: Literal["agent-stop", "agent-start"]
    agent: str
    """Name of the agent, such as "worker 0"."""
    job: int = Field(default=1, ge=1)
    """Number of the trial's job, from 1."""

    def _subject(self) -> Sequence[str]:
        return (self.agent, *([f"of job {self.job}"] if self.job > 1 else []))


def touched_agents(faults: Sequence[Fault]) -> frozenset[tuple[int, str]]:
    """Return job (from 1) and name of the agents that are killed or restarted."""
    return frozenset((fault.job, fault.agent) for fault in faults if isinstance(fault, AgentFault))


def stopped_agents(faults: Sequence[Fault]) -> frozenset[str]:
    """Return the agents that are killed and not restarted."""
    in_time = sorted(faults, key=lambda fault: fault.at_ms)
    last = {fault.agent: fault.fault for fault in in_time if isinstance(fault, AgentFault)}
    return frozenset(agent for agent, fault in last.items() if fault == "agent-stop")


def needs_standby(faults: Sequence[Fault]) -> bool:
    """Return whether a standby controller is needed from the beginning."""
    return any(fault.fault == "controller-failover" for fault in faults)


def restarted_switches(faults: Sequence[Fault]) -> frozenset[str]:
    """Return the switches whose counters begin anew in the middle of a run."""
    return frozenset(fault.switch for fault in faults if isinstance(fault, SwitchRestart))


Fault = Annotated[
    LinkFault | LinkChange | SwitchRestart | ControllerRestart | AgentFault | AgentPause, Field(discriminator="fault")
]
_fault: TypeAdapter[Fault] = TypeAdapter(Fault)

_NAMED: Mapping[str, str] = {"link": "link", "switch": "switch", "agent": "agent"}
"""Field of the name, by the first word of the fault's kind; the controller has none."""


def fault_of_text(text: str, topology: Topology) -> Fault:
    """Parse KIND[:NAME][,FIELD=VALUE]...@MS.

    Examples are link-down:e1-a1@20, "agent-pause:worker 0,for_ms=500@50" and controller-restart@10. The fields of
    link-change are those of the link.

    Raises:
        UserError: the text is no fault of this topology.
    """
    what, at, time = text.rpartition("@")
    head, *pairs = what.split(",")
    kind, colon, name = head.partition(":")
    fields = dict(pair.split("=", 1) for pair in pairs if "=" in pair)
    named = _NAMED.get(kind.partition("-")[0])
    if not at or len(fields) != len(pairs) or bool(colon) != (named is not None):
        raise UserError(f"{text!r} is not {TEXT}, such as link-down:e1-a1@20 or controller-restart@50")
    plain: dict[str, Any] = {"fault": kind, "at_ms": time}
    if named == "link":
        ends = select(topology, name)
        if ends.host is not None:
            raise UserError(f"{text!r}: {name} is a host: name a link of it")
        plain["link"] = (ends.links[0].a.node, ends.links[0].b.node)
    elif named:
        plain[named] = name
    if kind == "link-change":
        plain["change"] = fields
    else:
        plain.update(fields)
    try:
        return _fault.validate_python(plain)
    except ValidationError as error:
        raise UserError(f"{text!r}: {first_problem(error)}") from None


def check_faults(faults: Sequence[Fault], topology: Topology) -> None:
    """Raise UserError for a link or switch that the topology does not have."""
    for fault in faults:
        if isinstance(fault, SwitchRestart):
            topology.switch(fault.switch)
        elif isinstance(fault, LinkFault | LinkChange):
            topology.link(*fault.link)
