"""What a system brings to the experiment layer: its configuration, its metrics, and how a point of it runs.

A system is a set of rooms of its own (docs/architecture.md, "A system"). Here it says what the network of a point is,
which jobs run on it and by which agents, and what the counts mean; experiments/point.py does everything else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from pydantic import BaseModel

from common.errors import UserError
from controller.core.services import ServiceConfig
from experiments.configuration.point import PointConfiguration
from experiments.configuration.sections import Section
from experiments.fidelity.report import FidelityReport
from experiments.programs import Program
from experiments.sampling import LinkBytes, SampleOrder
from experiments.scale import Scale
from experiments.tables.metric_table import metric_table
from topo.graph import Topology

if TYPE_CHECKING:
    from rich.console import Console

    from experiments.accounts.counts import Counts
    from experiments.study.evaluation.results import StudyResults
    from experiments.testbeds.agents import AgentSpec
    from experiments.testbeds.mininet_testbed import MininetTestbed
    from switch.insight.coverage.coverage import Report as CoverageReport

Value = str | int | float | bool | None
Row = Mapping[str, Any]

OPENFLOW: Literal["openflow"] = "openflow"
"""In place of a program: a bridge of Open vSwitch, which holds what the service's plain view makes of the plan."""


@dataclass(frozen=True)
class Metric:
    """A number that each point of a system yields.

    scales: how it follows the link rate. "rate" (bit/s) and "time" (s) are nominal in every table; each is also given
    relative to the link rate in a column NAME_normalised: a rate divided by it, a time multiplied by it (bits that
    fit into that time). None: not at all. possible: the least and the most that the number can be, where intervals
    end; None: no such limit.
    """

    unit: str
    meaning: str
    scales: Literal["rate", "time"] | None = None
    possible: tuple[float | None, float | None] = (0.0, None)


@dataclass(frozen=True)
class PointTask:
    """What a system is asked to run. folder: the point's own, for logs and captures."""

    configuration: PointConfiguration
    seed: int
    scale: Scale
    folder: Path
    capture: bool = False
    """Whether to leave pcap files in the folder."""


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
class Underlay:
    """A network whose switches carry the IPv4 unicast packets of other systems' agents, and do nothing else for them.

    topology: with links as these switches need them. switches: what each runs. service: their part of the controller.
    """

    topology: Topology
    switches: Mapping[str, Program | Literal["openflow"]]
    service: ServiceConfig


@dataclass(frozen=True)
class NetworkSetup:
    """The network of a point, before it is up.

    switches: what every switch of the topology runs. links: of the kernel (veth) or queues in memory, between P4
    switches. settings: of the system's service at the controller; services: of other
    systems (Underlay). capture: hosts whose
    access links are captured where a study asks for pcap files. preload: modules of agents, which take a while to
    load. keep_open: descriptors that agents inherit (real clock). hand_over: once the switches hold their plan, the
    controller lets go of them for another one (real clock). samples: what is sampled while phases run.
    registers: (switch, name) of those that are read at the end of each phase. coverage: whether to tell what of the
    programs packets reach; trace: which packet's way through all switches to tell (gradbed's switches; one of the
    two). warm_up_us: what links carry counts from so long after the agents begin, emulated.
    """

    topology: Topology
    switches: Mapping[str, Program | Literal["openflow"]]
    settings: BaseModel
    links: Literal["memory", "veth"] = "memory"
    services: Sequence[ServiceConfig] = ()
    capture: Sequence[str] = ()
    preload: Sequence[str] = ()
    keep_open: Sequence[int] = ()
    hand_over: bool = False
    samples: SampleOrder | None = None
    registers: Sequence[tuple[str, str]] = ()
    coverage: bool = False
    trace: Callable[[bytes], bool] | None = None
    warm_up_us: int = 0


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
    table "links"). samples: rows by table (experiments.sampling.Sampler.rows), if any were ordered. registers: by
    switch and name, those of the network's setup: their cells that are not zero, as Testbed.registers gives them.
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


class Shorthands(Section):
    """Options of `gradbed run NAME` beside those of a point: they stand for a sweep."""

    def axes(self, values: Mapping[str, Any]) -> Mapping[str, Sequence[Any]]:
        """Values by dotted path of the configuration, in step with each other. Several are several points, which are
        compared by the first path. values: of the command line, as nested mappings. UserError."""
        return {}


class System(Protocol):
    """Runs points of one kind. A system is a subclass, and has the defaults where it brings nothing of its own.

    Its docstring is the help of `gradbed run NAME`. configuration: the sections that its studies have. metrics: by
    name. service: "module:Class" of its part of the controller. assurance: what holds for every point that has not
    failed, a sentence for people. defaults: what `gradbed run NAME` takes for fields where studies have another
    default, by dotted path. benches: "module:function" of commands of `gradbed bench`, by name. switch_workloads:
    "module:function" of what `gradbed bench switch` sends through its programs
    (experiments.bench.switch.workloads.Workload). on_bmv2: as defaults, where BMv2 cannot do otherwise.
    model_runs: small ones for `gradbed bench models`, options of `gradbed run NAME` by what they are.
    script_defaults: of `gradbed run torch`; None: agents of the system
    do not run PyTorch scripts. network_options: the fields, or whole sections, by dotted path, that `gradbed up` has
    options for. prompt: "module:Class" of its prompt, a subclass of experiments.prompt.prompt.Prompt with commands of
    the system's own.
    """

    name: str
    configuration: type[PointConfiguration]
    metrics: Mapping[str, Metric]
    service: str
    assurance: str
    defaults: Mapping[str, Any] = {}
    shorthands: type[Shorthands] = Shorthands
    benches: Mapping[str, str] = {}
    switch_workloads: Sequence[str] = ()
    on_bmv2: Mapping[str, Any] = {}
    model_runs: Mapping[str, str] = {}
    script_defaults: Mapping[str, Any] | None = None
    network_options: Sequence[str] = ("topology",)
    prompt: str = "experiments.prompt.prompt:Prompt"

    def check(self, configuration: PointConfiguration) -> None:
        """ValueError or UserError if a point cannot run, such as for want of hosts; called before anything runs."""
        return

    def run(self, task: PointTask) -> PointResult | None:
        """The result of a point that is computed instead, by a model without a network. None, as in all systems here:
        packets are sent (experiments/point.py)."""
        return None

    def point(self, task: PointTask) -> PointRun:
        """Decide what a point does. UserError for what the user can put right."""
        ...

    def network(self, task: PointTask) -> NetworkSetup:
        """The network of `gradbed up --system NAME`: no jobs are known yet. UserError where there is none."""
        raise UserError(
            f"{self.name} has no network to look around in without a point to run: gradbed run {self.name}"
        )

    def underlay(self, topology: Topology, way: str, seed: int) -> Underlay:
        """Its switches as a network for other systems' agents. way: how, or empty. seed: of what it draws by chance.
        UserError if it cannot be."""
        raise UserError(f"--underlay: the switches of the system {self.name} carry no other system's packets")

    def at_prompt(self, testbed: MininetTestbed, task: PointTask) -> AbstractContextManager[object]:
        """What goes on beside the prompt of `gradbed up` while it is there."""
        return nullcontext()

    def calibration(self, rate_mbps: float, seconds: float) -> PointConfiguration:
        """A point that keeps many links of a network busy at once for about so long, when links are slowed down to
        this rate: by it a machine is calibrated. Only the default system is asked."""
        raise NotImplementedError

    def closing(self, results: StudyResults) -> str:
        """What a run ends with if no point of it has failed: what was checked, and so holds."""
        return self.assurance

    def present(self, results: StudyResults, console: Console) -> None:
        """Print the table of a run of one point, and leave its figures in the run's folder."""
        for point in results.points:
            console.print(metric_table(self.name, self.metrics, point.row))
