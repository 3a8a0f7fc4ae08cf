"""A trial of a system: its phases, and their results."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic

from pydantic import BaseModel

from gradbed.controller.planning.plan import Plan
from gradbed.experiments.configuration.trial import Configuration
from gradbed.experiments.conservation.counts import Counts, LinkBytes
from gradbed.experiments.runtimes.agents import AgentSpec
from gradbed.experiments.setup import NetworkSetup, TrialTask
from gradbed.experiments.tables.files import Row
from gradbed.experiments.tables.metric import Value
from gradbed.experiments.validity.verdict import ValidityReport

if TYPE_CHECKING:
    from gradbed.switch.insight.coverage import Report as CoverageReport


@dataclass(frozen=True)
class TrialResult:
    """Result of a trial."""

    metrics: Mapping[str, Value]
    """Values of the system's metrics, in emulated units."""
    decisions: Mapping[str, Any] = field(default_factory=dict)
    """All that was chosen or random (placement, labels, losses of links), as plain JSON values: equal for equal
    configuration and seed."""
    tables: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    """Further rows, by table name (rounds, hosts)."""
    failures: Sequence[str] = ()
    """What makes the trial worthless, such as wrong sums, a line each."""
    validity: ValidityReport = field(default_factory=ValidityReport)
    """Set by the engine, except of a trial that is computed."""


@dataclass(frozen=True)
class Progress:
    """Progress of a phase, as one progress bar."""

    label: str
    completed: int
    total: int
    note: str = ""


@dataclass(frozen=True)
class AgentResults:
    """Jobs and agents of a phase, and what they reported."""

    answers: Sequence[Mapping[str, Any]]
    """Answer of the service to each request."""
    final: Mapping[tuple[int, str], Mapping[str, Any]]
    """Last statistics of each agent, by number of the job and name of the agent.

    Under "interfaces" they have what its interfaces carried (gradbed.hosts.agents.frames.counts).
    """
    hosts: Mapping[tuple[int, str], str] = field(default_factory=dict)
    """Host of each agent, by its job (from 1) and name."""


@dataclass(frozen=True)
class NetworkCounts:
    """State and counters of links and switches during a phase."""

    counts: Counts
    """Counters between the moment when all agents were ready and the end."""
    links: Sequence[Row] = ()
    """What each link direction carried: rows of the table "links"."""
    link_bytes: LinkBytes = field(default_factory=LinkBytes)
    """Bytes carried by links from the network's warm_up_us on until the phase was complete."""
    registers: Mapping[tuple[str, str], Mapping[int, int | None]] = field(default_factory=dict)
    """Cells that are not zero, by switch and name, of the registers in NetworkSetup (Runtime.registers)."""
    plan: Plan | None = None
    """What the switches were to hold when the agents began."""
    unsettled: str = ""
    """When and why packets were still in flight when they were counted, in words; empty: none was."""


@dataclass(frozen=True)
class Observations:
    """Observations that were requested while a phase ran."""

    samples: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    """Rows of each table of samples (gradbed.experiments.engine.sampling.Sampler.rows)."""
    coverage: Sequence[CoverageReport] = ()
    """Coverage of each program since the network is up."""
    trace: Sequence[Row] = ()
    """A row for each switch that the traced packet passed since the network is up, with its actions as text."""
    timeline: Sequence[Row] = ()
    """Rows of gradbed.experiments.engine.faults.Timeline."""


@dataclass(frozen=True)
class PhaseResult:
    """Measurements of a phase, from which a trial makes its result."""

    agents: AgentResults
    """What agents reported."""
    network: NetworkCounts
    """What links and switches counted."""
    observed: Observations = field(default_factory=Observations)
    """What was observed on request."""


@dataclass(frozen=True)
class OtherRequest:
    """A job of another system's service (NetworkSetup.services), by the service's name; None: the system's own."""

    service: str | None
    request: BaseModel

    @classmethod
    def of(cls, request: BaseModel | OtherRequest) -> OtherRequest:
        return request if isinstance(request, OtherRequest) else cls(None, request)


class Phase(ABC):
    """A part of a trial: jobs that run at the same time.

    The phases of a trial use its network one after the other.
    """

    waits: bool = False
    """Whether agents begin only when `take` says so; otherwise they begin as soon as all are ready."""
    tells_unfinished: bool = False
    """Whether the trial has a result although its last phase was not complete when time stopped (EndlessCircle)."""
    keep_open: Sequence[int] = ()
    """As of NetworkSetup."""

    def __init__(self, name: str, requests: Sequence[BaseModel | OtherRequest]) -> None:
        """Keep the jobs of the phase, as services are asked for them."""
        self.name = name
        self.requests = requests

    @property
    def own_requests(self) -> Sequence[BaseModel]:
        """Return the requests for the system's own service."""
        return [each for each in self.requests if not isinstance(each, OtherRequest)]

    @abstractmethod
    def agents(self, answers: Sequence[Mapping[str, Any]]) -> Sequence[AgentSpec]:
        """Return the agents to start, once the service has answered every request."""

    @abstractmethod
    def take(self, event: Mapping[str, Any]) -> Sequence[AgentSpec] | None:
        """Process an agent's event: keep what it reports, note what is wrong. UserError ends the trial.

        Return further agents to start because of it, before all that wait begin; as a rule None.
        """

    @property
    @abstractmethod
    def complete(self) -> bool:
        """Return whether the phase has all events that it waits for; its agents are then stopped."""

    @abstractmethod
    def progress(self) -> Sequence[Progress]:
        """Return how far every job is."""


class Trial(ABC, Generic[Configuration]):
    """A trial of a system: planned, but not run yet.

    A subclass plans its network and its phases when it is made. A trial without phases is computed, and its network
    does not start.
    """

    network: NetworkSetup
    phases: Sequence[Phase] = ()

    def __init__(self, task: TrialTask[Configuration]) -> None:
        self.task = task
        self.configuration = task.configuration
        self.topology = task.configuration.topology.build(task.scale)

    @abstractmethod
    def result(self, measured: Sequence[PhaseResult]) -> TrialResult:
        """Make metrics, tables and failures of the results of the phases, in their order."""
