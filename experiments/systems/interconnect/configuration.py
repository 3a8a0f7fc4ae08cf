"""Configuration of an interconnect trial: how switches choose, what light is made of, the traffic, and what fails."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, TypeAdapter, model_validator

from gradbed.controller.systems.interconnect.entries import PolicyName
from gradbed.controller.systems.interconnect.service import OpticalKind
from gradbed.experiments.configuration.faults import Fault
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
        "none", "What goes down: an uplink, an optical switch (all its fibres), a mesh link, none.", name="failure"
    )
    at_ms: float = option(20.0, "Time of the failure after the hosts have begun.", ge=0, name="failure_at_ms")

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

    policy: PolicyName = option("least-loaded", "How hybrid switches choose between ways (docs/interconnect.md).")
    flowlet_us: int = option(
        0, "Pause after which a flow chooses anew; 0: every packet chooses, so that packets are reordered.", ge=0
    )
    channels: Literal["wavelength", "uplink", "circuit"] = option(
        "wavelength",
        "What has the link rate: each wavelength of a fibre; the fibre as a whole (uplink); or its circuit to one "
        "other fibre after the other (circuit).",
    )
    slot_us: float = option(1000.0, "Circuits: time for which the optical switch joins the same fibres.", gt=0)
    guard_us: float = option(
        100.0,
        "Circuits: guard time at the end of each slot, in which no transmission begins, to set the switch.",
        ge=0,
    )
    optical: OpticalKind = option(
        "p4", "Optical switches: P4 switches (p4), or crossbars of Open vSwitch under OpenFlow (openflow)."
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
