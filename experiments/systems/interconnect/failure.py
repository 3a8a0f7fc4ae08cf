"""Failures by word: links that go down at a time, as the faults that every system has."""

from __future__ import annotations

from typing import Any, Literal

from gradbed.experiments.configuration.sections import Section, option
from gradbed.topo.graph import Topology
from gradbed.topo.optical_electrical import hybrid_name, optical_name, size_of

FailureKind = Literal["none", "uplink", "optical-switch", "mesh-link"]


class FailureSection(Section):
    """What fails, for good. controller: without it switches help themselves."""

    kind: FailureKind = option(
        "none", "What goes down: an uplink, an optical switch (all its fibres), a mesh link, none.", name="failure"
    )
    at_ms: float = option(20.0, "When, after the hosts have begun.", ge=0, name="failure_at_ms")

    def faults(self, topology: Topology) -> list[dict[str, Any]]:
        """Of A_0, M(0,0), and the link between M(0,0) and M(0,1)."""
        n = size_of(topology)
        links = {
            "none": [],
            "uplink": [(hybrid_name(0, 0), optical_name(0))],
            "optical-switch": [(hybrid_name(x, 0), optical_name(0)) for x in range(n)],
            "mesh-link": [(hybrid_name(0, 0), hybrid_name(0, 1))],
        }[self.kind]
        return [{"fault": "link-down", "link": ends, "at_ms": self.at_ms} for ends in links]
