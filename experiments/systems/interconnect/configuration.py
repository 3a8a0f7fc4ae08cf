"""What a point of the interconnect runs on: how its switches choose, what light is made of, who sends to whom."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from controller.systems.interconnect.policies import PolicyName
from experiments.configuration.point import PointConfiguration
from experiments.configuration.sections import Section, TopologySection, option
from experiments.traffic.configuration import TrafficSection

DEFAULT_TOPOLOGY = "optical-electrical:2"


class RoutingSection(Section):
    """What hybrid and optical switches do."""

    policy: PolicyName = option("least-loaded", "How hybrid switches choose between ways (docs/interconnect.md).")
    flowlet_us: int = option(
        0, "A flow chooses anew after such a pause; 0: every packet chooses, so that packets overtake.", ge=0
    )
    channels: Literal["wavelength", "uplink"] = option(
        "wavelength", "What has the link rate: each wavelength of a fibre, or the fibre as a whole (uplink)."
    )
    model: Literal["gradbed", "bmv2"] = option("gradbed", "Runs the P4 switches.", name="switch")


class InterconnectConfiguration(PointConfiguration):
    """All that a sweep can vary."""

    topology: TopologySection = Field(default_factory=lambda: TopologySection(kind=DEFAULT_TOPOLOGY))
    routing: RoutingSection = RoutingSection()
    traffic: TrafficSection = TrafficSection()
