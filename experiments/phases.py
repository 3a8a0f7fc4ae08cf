"""What a system says of one point: its phases, and what these found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from pydantic import BaseModel

from experiments.accounts.carried import LinkBytes
from experiments.accounts.counts import Counts
from experiments.fidelity.report import FidelityReport
from experiments.setup import NetworkSetup
from experiments.tables.metric import Value
from experiments.tables.tables import Row
from experiments.testbeds.agents import AgentSpec

if TYPE_CHECKING:
    from switch.insight.coverage.coverage import Report as CoverageReport


@dataclass(frozen=True)
class PointResult:
    """What a point found.

    metrics: values of the system's metrics, in emulated units. decisions: all that was chosen or drawn by chance
    (placement, labels, losses of links), as plain JSON values: equal for equal configuration and seed. tables:
    further rows by table name (rounds, hosts). failures: what makes the point worthless, such as wrong sums.
    """

    metrics: Mapping[str, Value]
    fidelity: FidelityReport
    decisions: Mapping[str, Any] = field(default_factory=dict)
    tables: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    failures: Sequence[str] = ()


@dataclass(frozen=True)
class Progress:
    """How far a phase is, for people: a bar each."""

    label: str
    completed: int
    total: int
    note: str = ""


@dataclass(frozen=True)
class Measured:
    """What a phase left.

    answers: the service's, for each request. final: the last statistics of every agent, by job number and agent name,
    and what its interfaces carried ("interfaces", hosts.agents.interface_counts).
    counts: between the moment when all agents were ready and the end. links: what each direction carried (rows of the
    table "links"). samples: rows by table (experiments.engine.sampling.Sampler.rows), if any were ordered. registers:
    by switch and name, those of the network's setup: their cells that are not zero, as Testbed.registers gives them.
    coverage, trace: since the network is up; coverage is a report for each program, the trace a row for each switch,
    with what happened there as text. unsettled: in words, why packets were still on their way when it was counted;
    "": none was. carried: by links, from the network's warm_up_us on until the phase was complete.
    """

    answers: Sequence[Mapping[str, Any]]
    final: Mapping[tuple[int, str], Mapping[str, Any]]
    counts: Counts
    links: Sequence[Row] = ()
    samples: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    registers: Mapping[tuple[str, str], Mapping[int, int | None]] = field(default_factory=dict)
    coverage: Sequence[CoverageReport] = ()
    trace: Sequence[Row] = ()
    unsettled: str = ""
    carried: LinkBytes = field(default_factory=LinkBytes)


class Phase(Protocol):
    """A part of a point: jobs that run at the same time. The phases of a point share its network, one after the
    other."""

    @property
    def name(self) -> str: ...

    @property
    def requests(self) -> Sequence[BaseModel]:
        """The jobs, as the system's service is asked for them."""

    @property
    def waits(self) -> bool:
        """Whether agents begin only when `take` says so; else they do as soon as all are ready."""

    def agents(self, answers: Sequence[Mapping[str, Any]]) -> Sequence[AgentSpec]:
        """Who runs where, once the service has answered every request."""

    def take(self, event: Mapping[str, Any]) -> Sequence[AgentSpec] | None:
        """Take in an agent's event: keep what it tells, note what is wrong. UserError ends the point.

        Further agents to start because of it, before all that wait begin; None, as a rule: nothing is to be done."""

    @property
    def complete(self) -> bool:
        """Whether all has been told that the phase waits for; then its agents are stopped."""

    def progress(self) -> Sequence[Progress]:
        """How far every job is."""


class PointRun(Protocol):
    """One point of a system: decided, but not run yet."""

    @property
    def network(self) -> NetworkSetup: ...

    @property
    def phases(self) -> Sequence[Phase]: ...

    def result(self, measured: Sequence[Measured]) -> PointResult:
        """What the phases left, in their order, as metrics, tables and failures. The fidelity is the engine's, but
        that of a point without phases, which needs no network."""
