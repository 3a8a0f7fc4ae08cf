"""Sections of a study that several systems share, in nominal units (experiments/scale.py)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo, field_validator, model_validator

from gradbed.common.errors import UserError
from gradbed.experiments.configuration.options import FAULTS, RUN_AND_OUTPUT
from gradbed.experiments.scale import Scale
from gradbed.hosts.learning.settings import SyntheticSettings, TrainingSettings
from gradbed.topo.addressing import Addressing, addressed
from gradbed.topo.files import is_topology_file
from gradbed.topo.generators import GENERATORS
from gradbed.topo.graph import Direction, Link, Topology
from gradbed.topo.link import UNLIMITED, LinkModel, pfc_thresholds
from gradbed.topo.registry import parse_topology, usage
from gradbed.topo.selectors import with_node_names

HOST_CLASS = "host"

Config = TypeVar("Config", bound=BaseModel)


def option(
    default: Any,
    description: str,
    *,
    name: str | None = None,
    argument: bool = False,
    repeated: bool = False,
    panel: str | None = None,
    advanced: bool = False,
    **limits: Any,
) -> Any:
    """Return a field of a section that is also an option of `gradbed run`.

    The flag is --FIELD, or --NAME where `name` is given.

    Args:
        argument: whether it stands on the command line without a flag.
        repeated: whether it may be given several times.
        panel: heading in the help; default: the section's.
        advanced: whether only `--help-all` lists it.
    """
    flags = {"option": name, "argument": argument, "repeated": repeated, "panel": panel, "advanced": advanced}
    extra: dict[str, Any] = {key: value for key, value in flags.items() if value}
    return Field(default=default, description=description, json_schema_extra=extra or None, **limits)


class Section(BaseModel):
    """A mapping in a study: values do not change, unknown keys are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    panel: ClassVar[str | None] = None
    """Heading in the help for the section's options; None: that of the section around it."""


class SwitchProgramsSection(Section):
    """Compiler and runtime of the P4 programs."""

    panel: ClassVar[str | None] = "Switches"

    model: Literal["gradbed", "bmv2"] = option(
        "gradbed",
        "Software switch that runs the P4 programs: gradbed or bmv2 (real clock).",
        name="switch",
        advanced=True,
    )
    compiler: Literal["gradbed", "p4c"] | None = option(
        None,
        "Compiler of the P4 programs: gradbed or p4c (default: p4c for bmv2 if it is installed, else gradbed).",
        advanced=True,
    )


class LinkOverride(Section):
    """Attributes of some links; None: as everywhere."""

    rate_mbps: float | None = Field(default=None, gt=0)
    delay_us: int | None = Field(default=None, ge=0)
    loss: float | None = Field(default=None, ge=0, lt=1)
    duplicate: float | None = Field(default=None, ge=0, lt=1)
    bit_error_rate: float | None = Field(default=None, ge=0, lt=1)
    queue_packets: int | None = Field(default=None, ge=1)
    pfc_xoff_bytes: int | None = Field(default=None, ge=0)
    pfc_xon_bytes: int | None = Field(default=None, ge=0)
    jitter_us: int | None = Field(default=None, ge=0)
    reorder: bool | None = None

    def fields(self, scale: Scale) -> dict[str, Any]:
        """Return the given attributes as fields of gradbed.topo.link.LinkModel, in emulated units."""
        return _emulated(self.model_dump(exclude_none=True), scale)


def _emulated(given: dict[str, Any], scale: Scale) -> dict[str, Any]:
    """Return nominal attributes as fields of gradbed.topo.link.LinkModel."""
    if "rate_mbps" in given:
        given["rate_bps"] = scale.rate_bps(given.pop("rate_mbps"))
    if given.get("pfc_xoff_bytes") is not None:
        given["pfc_xon_bytes"] = pfc_thresholds(UNLIMITED, given["pfc_xoff_bytes"], given.get("pfc_xon_bytes"))[1]
    return {name: scale.time_us(value) if name.endswith("_us") else value for name, value in given.items()}


def _none_for_zero(value: object) -> object:
    """Return None for 0 Mbit/s, which means no limit."""
    return None if value == 0 and not isinstance(value, bool) else value


class LinkSection(Section):
    """Attributes of every link, in both directions (gradbed.topo.link.LinkModel); nominal."""

    panel: ClassVar[str | None] = "Network"

    rate_mbps: Annotated[float | None, BeforeValidator(_none_for_zero)] = option(
        100.0, "Rate of every link in Mbit/s; 0 (null in a study file) is unlimited.", gt=0
    )
    delay_us: int = option(50, "Propagation delay of every link in us.", ge=0)
    loss: float = option(0.0, "Probability that a link drops a packet.", ge=0, lt=1, panel=FAULTS)
    duplicate: float = option(
        0.0, "Probability that a link delivers a packet twice.", ge=0, lt=1, panel=FAULTS, advanced=True
    )
    bit_error_rate: float = option(
        0.0,
        "Bit error rate of every link; a frame with an error is dropped by its receiver.",
        ge=0,
        lt=1,
        panel=FAULTS,
        advanced=True,
    )
    queue_packets: int = option(1000, "Size of every egress queue in packets; tail drop beyond it.", ge=1)
    jitter_us: int = option(
        0, "Jitter: largest deviation of the propagation delay in us.", ge=0, panel=FAULTS, advanced=True
    )
    reorder: bool = option(False, "Let jitter reorder packets.", panel=FAULTS, advanced=True)
    pfc_xoff_bytes: int = option(
        0,
        "PFC threshold XOFF in bytes: a switch pauses a link's priority when it buffers more than this; 0: no PFC.",
        ge=0,
        advanced=True,
    )
    pfc_xon_bytes: int | None = option(
        None,
        "PFC threshold XON in bytes: the paused priority resumes at this many (default: half of XOFF).",
        ge=0,
        advanced=True,
    )

    @model_validator(mode="after")
    def _possible(self) -> LinkSection:
        try:
            self.model(Scale())
        except UserError as error:
            raise ValueError(str(error)) from None
        return self

    def model(self, scale: Scale) -> LinkModel:
        return LinkModel(**_emulated(self.model_dump(), scale))


class TopologySection(Section):
    """A topology and its links."""

    panel: ClassVar[str | None] = "Network"

    kind: str = option(
        "fat-tree:4", f"Topology: a file (docs/topologies.md), or one of {', '.join(map(usage, GENERATORS))}."
    )
    link: LinkSection = LinkSection()
    tiers: dict[str, LinkOverride] = Field(default_factory=dict)
    """Overrides by class of link.

    A class is "host", or the tiers of the link's switches: "edge-aggregation", "aggregation-core", "leaf-spine".
    """

    @field_validator("kind")
    @classmethod
    def _beside_study(cls, kind: str, info: ValidationInfo) -> str:
        """Return the kind with the path of a topology file made relative to the study's folder."""
        folder = (info.context or {}).get("folder")
        return str(folder / kind.strip()) if folder is not None and is_topology_file(kind) else kind

    @model_validator(mode="after")
    def _buildable(self) -> TopologySection:
        try:
            self.build(Scale())
        except UserError as error:
            raise ValueError(str(error)) from None
        return self

    def build(self, scale: Scale) -> Topology:
        """Return the topology with links in emulated units."""
        topology = parse_topology(self.kind, self.link.model(scale), scale.factor)
        for name, override in self.tiers.items():
            chosen = [link for link in topology.links if name in link_classes(topology, link)]
            if not chosen:
                known = sorted({min(link_classes(topology, link)) for link in topology.links})
                raise UserError(f"{topology.name} has no links of class {name!r}; it has: {', '.join(known)}")
            pairs = [(link.a.node, link.b.node) for link in chosen]
            topology = topology.with_links(pairs, **override.fields(scale))
        return topology


class AddressedTopologySection(TopologySection):
    """Topology of systems that run users' programs, which may be switches as well as routers."""

    addressing: Addressing | None = option(
        None,
        "Addressing of hosts: l3 (a subnet for each, with a gateway) or l2 (one subnet); default: l3, or what the "
        "topology file says.",
        advanced=True,
    )

    def build(self, scale: Scale) -> Topology:
        topology = super().build(scale)
        return topology if self.addressing is None else addressed(topology, self.addressing)


def link_classes(topology: Topology, link: Link) -> frozenset[str]:
    """Return the names of a link's class: "host", or both orders of the tiers of its switches."""
    ends = (link.a.node, link.b.node)
    if any(topology.is_host(end) for end in ends):
        return frozenset({HOST_CLASS})
    a, b = (topology.switch(end).tier for end in ends)
    return frozenset({f"{a}-{b}", f"{b}-{a}"})


def agent_config(model: type[Config], scale: Scale, *sections: BaseModel, **fields: Any) -> Config:
    """Return the config of an agent.

    It has the given fields, and each option of the sections of which it has a field with the same name; times (_us)
    are converted to those of the emulated network.
    """
    same = {
        name: scale.time_us(value) if name.endswith("_us") else value
        for section in sections
        for name, value in section
        if name in model.model_fields
    }
    return model(**{**same, **fields})


# ---- What is sampled while a phase runs ----


@dataclass(frozen=True)
class SampleOrder:
    """Sampling of links and registers, from when the agents begin."""

    interval_us: int
    """Emulated sampling interval."""
    links: Collection[Direction] | None = None
    """Link directions; None: all of them."""
    registers: Sequence[tuple[str, str]] = ()
    """(switch, name) of each register."""


class SamplesSection(Section):
    """Sampling, as part of a system's configuration."""

    panel: ClassVar[str | None] = RUN_AND_OUTPUT

    interval_us: int | None = option(
        None,
        "Sampling interval of queues, links and registers in us (default: no samples).",
        name="sample_us",
        ge=1,
        advanced=True,
    )
    links: tuple[str, ...] = option(
        (),
        "Link directions to sample, SENDER-RECEIVER with commas between, such as e1-h1,h1-e1 (default: all).",
        name="sample_links",
        advanced=True,
    )
    registers: tuple[str, ...] = option(
        (),
        "Registers to sample: NAME, or SWITCH:NAME for one switch, with commas between.",
        name="sample_registers",
        advanced=True,
    )

    def order(self, topology: Topology, scale: Scale) -> SampleOrder | None:
        """Return what is to be sampled; None: nothing.

        Raises:
            UserError: the topology does not have a link or switch.
        """
        if self.interval_us is None:
            if self.links or self.registers:
                raise UserError("--sample-us: say how often samples are to be taken")
            return None
        return SampleOrder(
            max(1, scale.time_us(self.interval_us)),
            [_direction(name, topology) for name in self.links] or None,
            [pair for name in self.registers for pair in _registers(name, topology)],
        )


def _direction(name: str, topology: Topology) -> Direction:
    sender, separator, receiver = with_node_names(topology, name).partition("-")
    if not separator:
        raise UserError(f"--sample-links: {name!r} is no SENDER-RECEIVER such as e1-h1")
    topology.link(sender, receiver)
    return sender, receiver


def _registers(name: str, topology: Topology) -> list[tuple[str, str]]:
    switch, separator, register = name.rpartition(":")
    if separator:
        return [(topology.switch(switch).name, register)]
    return [(each.name, register) for each in topology.switches]


# ---- Gradients of the workers of a job ----
#
# A system's workload has a class of its own for random and for trained gradients, with its further options.


class SyntheticGradients(Section):
    """Random gradients of `values` int32 each, to load the network without learning."""

    kind: Literal["synthetic"] = "synthetic"
    values: int = option(35_200, "Number of int32 values in a synthetic gradient.", ge=1)

    def settings(self, rounds: int, seed: int) -> SyntheticSettings:
        return SyntheticSettings(values=self.values, rounds=rounds, seed=seed)


class TrainedGradients(Section):
    """Gradients of a classifier of the digits data set (hosts/learning)."""

    kind: Literal["training"] = "training"
    hidden_units: int = option(
        64, "Number of hidden units of the trained classifier; 0: a linear classifier.", ge=0, le=65536, advanced=True
    )
    batch_samples: int = option(32, "Batch size of each worker in samples.", ge=1, advanced=True)
    learning_rate: float = option(0.5, "Learning rate of stochastic gradient descent.", gt=0, advanced=True)

    def settings(self, rounds: int, seed: int, exponent: int | None = None) -> TrainingSettings:
        """Return the learning settings; `exponent` is that of TrainingSettings."""
        return TrainingSettings(
            hidden_units=self.hidden_units,
            rounds=rounds,
            batch_samples=self.batch_samples,
            learning_rate=self.learning_rate,
            seed=seed,
            exponent=exponent,
        )


def _synthetic_unless_said(workload: Any) -> Any:
    if isinstance(workload, dict) and "kind" not in workload:
        return {"kind": "synthetic", **workload}
    return workload


GRADIENTS_HELP = "Gradients: synthetic (random values) or training (of a classifier that learns the digits data set)."
SYNTHETIC_UNLESS_SAID = BeforeValidator(_synthetic_unless_said)
"""Validator of a union of workloads: one without a kind is synthetic."""
