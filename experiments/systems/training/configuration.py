"""Configuration of a training trial: which ranks execute what, how their collectives are done, and over what."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator

from gradbed.controller.systems.training.entries import PolicyName
from gradbed.controller.systems.training.service import Marking
from gradbed.experiments.configuration.options import FAULTS, RUN_AND_OUTPUT
from gradbed.experiments.configuration.sections import Section, option
from gradbed.experiments.configuration.trial import TrialConfiguration
from gradbed.hosts.agents.queue_pairs import CONGESTION_CONTROLS, CongestionControlName, Recovery
from gradbed.hosts.collectives.schedule import Operation
from gradbed.hosts.systems.training.collectives.algorithms import Algorithm, Rule, algorithm_named
from gradbed.hosts.systems.training.source import CollectiveSource, FileSource, Source, TransformerSource, open_trace
from gradbed.hosts.systems.training.traces.chakra import write_trace
from gradbed.hosts.systems.training.traces.trace import TraceSettings
from gradbed.hosts.systems.training.traces.transformer import TransformerTrace
from gradbed.hosts.systems.training.traces.transformer_model import TransformerModel

AUTO = "auto"
OperationName = Literal[
    "all-reduce",
    "reduce-scatter",
    "all-gather",
    "all-to-all",
    "broadcast",
    "reduce",
    "gather",
    "scatter",
    "barrier",
]
"""Names of gradbed.hosts.systems.training.traces.graph.Operation."""
HIDDEN: dict[str, Any] = {"option": False}
"""Schema of fields that are no options of the command line, since another option says the same."""


class RanksSection(Section):
    """Placement of ranks, and what is different about some of them."""

    ranks: int | None = option(
        None, "Number of ranks of each job (default: those of the trace, otherwise one on each host).", ge=1
    )
    jobs: int = option(1, "Number of concurrent jobs, each with the same number of ranks.", ge=1)
    placement: Literal["in-order", "racks", "striped", "random"] = option(
        "in-order",
        "Placement of ranks on hosts: in-order, racks (equally many in each rack), striped (round-robin over the "
        "racks) or random.",
    )
    iterations: int = option(1, "Number of iterations: times that every rank executes its graph.", ge=1)
    slow: tuple[str, ...] = option(
        (),
        "Straggler, HOST:FACTOR[+MS]: it computes FACTOR times as long and starts MS milliseconds late, such as "
        "h3:1.2 or h3:1+5; may be repeated.",
        repeated=True,
        panel=FAULTS,
    )
    timeline: int = option(
        8,
        "Number of ranks, from rank 0, whose nodes are shown in the timeline (figure and Perfetto file).",
        ge=0,
        panel=RUN_AND_OUTPUT,
        advanced=True,
    )

    @field_validator("slow")
    @classmethod
    def _readable(cls, slow: tuple[str, ...]) -> tuple[str, ...]:
        for each in slow:
            slow_host(each)
        return slow


def slow_host(text: str) -> tuple[str, float, float]:
    """Return host, factor and delay in milliseconds of "h3:1.2" or "h3:1.2+5".

    Raises:
        ValueError: the text has another form.
    """
    host, _, rest = text.partition(":")
    factor, _, delay_ms = rest.partition("+")
    try:
        found = float(factor), float(delay_ms or 0)
    except ValueError:
        found = 0.0, 0.0
    if not host or found[0] <= 0 or found[1] < 0:
        raise ValueError(f"{text!r} is not of the form HOST:FACTOR or HOST:FACTOR+MS, such as h3:1.2")
    return host, *found


class CollectivesSection(Section):
    """Execution of collectives (docs/training.md)."""

    algorithm: str = option(
        AUTO,
        "Collective algorithm: auto (by operation, size and number of ranks), "
        f"{', '.join(each.value for each in Algorithm)}; or one of a plug-in.",
    )
    chunks: int = option(1, "Number of chunks that --algorithm pipelines.", ge=1, le=4096, advanced=True)
    table: tuple[Rule, ...] = Field(default=(), json_schema_extra=HIDDEN)
    """Rules, of which the first that fits counts.

    Before them comes the named algorithm, for the operations that it implements.
    """
    in_network: str = option(
        "none",
        "In-network collectives: aggregation (switches sum all-reduces), shuffle (switches multicast broadcasts) or "
        "none.",
    )
    in_network_from_bytes: int = option(
        16_384,
        "Minimum size in bytes of an in-network collective; hosts carry out smaller ones.",
        ge=0,
        advanced=True,
    )
    contents: bool = option(
        False, "Send real values and check every result, instead of sending lengths only.", advanced=True
    )

    @field_validator("algorithm")
    @classmethod
    def _known(cls, algorithm: str) -> str:
        if algorithm != AUTO:
            algorithm_named(algorithm)
        return algorithm

    @property
    def rules(self) -> tuple[Rule, ...]:
        """Rules that come before those of the system."""
        if self.algorithm == AUTO:
            return self.table
        return (Rule(algorithm=self.algorithm, chunks=self.chunks), *self.table)


class TrainingTransportSection(Section):
    """Transport of messages by queue pairs (hosts/agents/queue_pairs.py); times are nominal."""

    panel: ClassVar[str | None] = "Transport"

    congestion_control: CongestionControlName = option(
        "none",
        f"Congestion control: {', '.join(each.summary for each in CONGESTION_CONTROLS.values())}, or one of a "
        "plug-in; all but none need ECN marking (--k-min).",
    )
    recovery: Recovery = option("go-back-n", "Loss recovery: go-back-n or selective-repeat.")
    mtu_bytes: int = option(4096, "Path MTU in bytes: maximum payload of a packet.", ge=64, le=64_000)
    window_bytes: int = option(
        1_000_000, "Maximum number of unacknowledged bytes of a queue pair; 0: no limit.", ge=0
    )
    timeout_us: int = option(1000, "Retransmission timeout in us.", ge=1, advanced=True)
    give_up_after: int = option(
        30, "Number of consecutive timeouts after which a rank reports its peer as unreachable.", ge=1, advanced=True
    )
    acknowledge_every: int = option(4, "Number of packets for each acknowledgement.", ge=1, advanced=True)
    reordering_packets: int = option(
        0,
        "Reordering tolerance of selective-repeat: later packets that may arrive before one counts as lost.",
        ge=0,
        le=65_535,
        advanced=True,
    )


class TrainingSwitchesSection(Section):
    """Load balancing and marking in switches (p4src/training.p4)."""

    panel: ClassVar[str | None] = "Switches"

    balancing: PolicyName = option(
        "ecmp",
        "Load balancing: ecmp, random-spraying, round-robin-spraying, least-loaded or flowlets.",
    )
    fabric_program: str = option(
        "none",
        "System whose programs run on all switches instead, SYSTEM[:POLICY], such as interconnect:least-loaded.",
        advanced=True,
    )
    flowlet_us: int = option(
        50, "Flowlet gap in us: a flow may change its path after a pause this long.", ge=1, advanced=True
    )
    k_min: int | None = option(
        None,
        "ECN threshold K_min in packets: queue length from which packets are marked (default: no marking).",
        ge=0,
    )
    k_max: int | None = option(
        None, "ECN threshold K_max in packets: queue length from which every packet is marked (default: K_min).", ge=1
    )
    p_max: float = option(1.0, "ECN marking probability P_max just below K_max.", gt=0, le=1, advanced=True)

    def marking(self) -> Marking | None:
        """Return the marking as the controller takes it; None: no switch marks."""
        return None if self.k_min is None else Marking(k_min=self.k_min, k_max=self.k_max, p_max=self.p_max)


class CollectiveWorkload(Section):
    """Workload of one collective of all ranks, repeated."""

    kind: Literal["collective"] = "collective"
    operation: OperationName = option("all-reduce", "Collective operation.")
    size_bytes: int = option(1_000_000, "Input size of each rank in bytes.", ge=0)
    repetitions: int = option(1, "Number of collectives to run, one after the other.", ge=1)
    root: int = option(0, "Root rank of broadcast, reduce, gather and scatter.", ge=0, advanced=True)

    def source(self, ranks: int) -> Source:
        return CollectiveSource(
            ranks=ranks,
            operation=Operation(self.operation),
            size_bytes=self.size_bytes,
            repetitions=self.repetitions,
            root=self.root,
        )

    def own_ranks(self, asked: int | None) -> int | None:
        """Return the number of ranks that the workload has; None: any number."""
        return asked


class TraceWorkload(TraceSettings):
    """Execution traces (docs/traces.md)."""

    panel: ClassVar[str | None] = "Trace workload"

    kind: Literal["trace"] = "trace"
    trace: Path = Field(
        default=Path(),
        description="Trace to run: a folder, FOLDER/PREFIX for files PREFIX.0.et and so on, or a text workload.",
    )
    ranks: int | None = Field(default=None, json_schema_extra=HIDDEN)

    @field_validator("trace")
    @classmethod
    def _beside_study(cls, trace: Path, info: ValidationInfo) -> Path:
        """Make the path absolute; what a study names is relative to its folder."""
        folder: Path = (info.context or {}).get("folder", Path.cwd())
        return (folder / trace).absolute()

    def files(self) -> list[Path]:
        """Return all files that may be part of the trace: those of its folder, or those with its prefix."""
        folder, beginning = (self.trace, "") if self.trace.is_dir() else (self.trace.parent, self.trace.name)
        beside = folder.glob(f"{beginning.partition('.')[0]}*")
        return [path for path in sorted(beside) if path.is_file()] + ([self.groups] if self.groups else [])

    def source(self, ranks: int) -> Source:
        fields = {name: getattr(self, name) for name in TraceSettings.model_fields}
        return FileSource(path=self.trace.resolve(), settings=TraceSettings(**{**fields, "ranks": ranks}))

    def own_ranks(self, asked: int | None) -> int | None:
        fields = {name: getattr(self, name) for name in TraceSettings.model_fields}
        return open_trace(self.trace, TraceSettings(**{**fields, "ranks": asked})).ranks


class TransformerWorkload(TransformerModel):
    """Workload of one iteration of a transformer's training."""

    panel: ClassVar[str | None] = "Transformer workload"

    kind: Literal["transformer"] = "transformer"
    iterations: int = Field(default=1, json_schema_extra=HIDDEN)

    def source(self, ranks: int) -> Source:
        given = {name: getattr(self, name) for name in TransformerModel.model_fields}
        return TransformerSource(model=TransformerModel(**given))

    def own_ranks(self, asked: int | None) -> int | None:
        return self.dp * self.tp * self.pp


def _kind_unless_said(value: Any) -> Any:
    if not isinstance(value, dict) or "kind" in value:
        return value
    transformer = value.keys() & TransformerModel.model_fields.keys()
    return {**value, "kind": "trace" if "trace" in value else "transformer" if transformer else "collective"}


Workload = Annotated[
    CollectiveWorkload | TraceWorkload | TransformerWorkload,
    Field(discriminator="kind"),
    BeforeValidator(_kind_unless_said),
]


class TrainingConfiguration(TrialConfiguration):
    """Everything that a sweep of a training study can vary."""

    workload: Workload = Field(
        CollectiveWorkload(),
        description="Workload: collective (one operation), trace (recorded) or transformer (generated).",
    )
    ranks: RanksSection = RanksSection()
    collectives: CollectivesSection = CollectivesSection()
    transport: TrainingTransportSection = TrainingTransportSection()
    switches: TrainingSwitchesSection = TrainingSwitchesSection()

    def ranks_of_a_job(self, hosts: int) -> int:
        """Return the number of ranks of each job.

        Raises:
            UserError: the trace cannot be read.
        """
        return self.workload.own_ranks(self.ranks.ranks) or hosts // self.ranks.jobs

    def files(self) -> tuple[Path, ...]:
        traces = self.workload.files() if isinstance(self.workload, TraceWorkload) else ()
        return (*super().files(), *traces)

    def chance(self) -> tuple[str, ...]:
        drawn = {
            "placement": self.ranks.placement == "random",
            "paths": self.switches.balancing in ("ecmp", "random-spraying", "flowlets"),
            "marks": self.switches.k_max is not None,
        }
        return (*super().chance(), *(words for words, is_drawn in drawn.items() if is_drawn))


# ---- New traces ----


class NewTrace(TransformerModel):
    """Make the execution traces (MLCommons Chakra) of a transformer on dp x tp x pp ranks: FOLDER/trace.RANK.et."""

    def make(self, folder: Path) -> str:
        trace = TransformerTrace(self)
        write_trace(trace, folder)
        nodes = sum(len(trace.nodes(rank)) for rank in range(trace.ranks))
        return f"{folder}/: trace.0.et to trace.{trace.ranks - 1}.et, {nodes:,} nodes"
