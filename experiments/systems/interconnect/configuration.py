"""Configuration of an interconnect trial: how switches choose, what light is made of, the traffic, and what fails."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field, TypeAdapter, model_validator

from gradbed.controller.systems.interconnect.entries import PolicyName
from gradbed.controller.systems.interconnect.service import OpticalKind
from gradbed.experiments.configuration.faults import Fault
from gradbed.experiments.configuration.options import FAULTS
from gradbed.experiments.configuration.sections import SamplesSection, Section, TopologySection, option
from gradbed.experiments.configuration.trial import TrialConfiguration
from gradbed.experiments.scale import Scale
from gradbed.experiments.traffic.configuration import TrafficSection
from gradbed.topo.graph import Topology
from gradbed.topo.optical_electrical import hybrid_name, optical_name, size_of

# ---- Failures by word ----


FailureKind = Literal["none", "uplink", "optical-switch", "mesh-link"]


class FailureSection(Section):
    """A permanent failure by name."""

    kind: FailureKind = option(
        "none",
        "Failure to inject: uplink, optical-switch (all its fibres), mesh-link or none.",
        name="failure",
        panel=FAULTS,
    )
    at_ms: float = option(
        20.0, "Time of the failure in ms after the start of traffic.", ge=0, name="failure_at_ms", panel=FAULTS
    )

    def faults(self, topology: Topology) -> list[dict[str, Any]]:
        """Return the faults that the failure stands for.

        They concern A_0, M(0,0), and the link between M(0,0) and M(0,1).
        """
        n = size_of(topology)
        links = {
            "none": [],
            "uplink": [(hybrid_name(0, 0), optical_name(0))],
            "optical-switch": [(hybrid_name(x, 0), optical_name(0)) for x in range(n)],
            "mesh-link": [(hybrid_name(0, 0), hybrid_name(0, 1))],
        }[self.kind]
        return [{"fault": "link-down", "link": ends, "at_ms": self.at_ms} for ends in links]


# ---- The configuration ----


DEFAULT_TOPOLOGY = "optical-electrical:2"


class RoutingSection(Section):
    """Behaviour of hybrid and optical switches."""

    panel: ClassVar[str | None] = "Switches"

    policy: PolicyName = option("least-loaded", "Routing policy of hybrid switches (docs/interconnect.md).")
    flowlet_us: int = option(
        0, "Flowlet gap in us: a flow may change its path after a pause this long; 0: every packet may.", ge=0
    )
    channels: Literal["wavelength", "uplink", "circuit"] = option(
        "wavelength",
        "Optical channels of link rate: wavelength (each of an uplink), uplink (as a whole), or circuit (one pair of "
        "fibres after another).",
    )
    slot_us: float = option(1000.0, "Circuit slot time in us (--channels circuit).", gt=0, advanced=True)
    guard_us: float = option(
        100.0,
        "Guard time in us at the end of each slot, while the optical switch is reconfigured (--channels circuit).",
        ge=0,
        advanced=True,
    )
    optical: OpticalKind = option(
        "p4", "Optical switches: p4 (P4 switches) or openflow (crossbars of Open vSwitch).", advanced=True
    )


class InterconnectConfiguration(TrialConfiguration):
    """Everything that a sweep of an interconnect study can vary."""

    topology: TopologySection = Field(default_factory=lambda: TopologySection(kind=DEFAULT_TOPOLOGY))
    routing: RoutingSection = RoutingSection()
    traffic: TrafficSection = TrafficSection()
    failure: FailureSection = FailureSection()
    samples: SamplesSection = SamplesSection()

    def chance(self) -> tuple[str, ...]:
        # The other policies break ties with a coin, or hash with a seed (choose_path.p4).
        drawn = {"traffic": self.traffic.is_drawn, "ways": self.routing.policy != "fixed-plane"}
        return (*super().chance(), *(words for words, is_drawn in drawn.items() if is_drawn))

    @model_validator(mode="after")
    def _failure_is_a_fault(self) -> InterconnectConfiguration:
        """Add the failure's faults to the given ones; after a second validation they are there already."""
        if self.failure.kind != "none":
            found = TypeAdapter(tuple[Fault, ...]).validate_python(self.failure.faults(self.topology.build(Scale())))
            more = tuple(fault for fault in found if fault not in self.faults)
            object.__setattr__(self, "faults", (*self.faults, *more))
        return self
