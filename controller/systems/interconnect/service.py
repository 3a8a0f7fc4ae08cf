"""The interconnect service: entries of hybrid switches for the network and the links that are up.

Optical switches hold no entries, since the path of light follows from its wavelength (p4src/optical.p4); as OpenFlow
switches they hold flows for that (entries.py).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Literal

from pydantic import BaseModel, Field

from gradbed.common.errors import UserError
from gradbed.controller.core.service import Service
from gradbed.controller.planning.plan import Plan, SwitchPlan, TableEntry
from gradbed.controller.planning.routing import Routes
from gradbed.controller.systems.interconnect.entries import (
    POLICIES,
    PolicyName,
    Reachability,
    crossbar,
    destination_entries,
    path_entries,
    self_entry,
)
from gradbed.topo.graph import Topology
from gradbed.topo.optical_electrical import OPTICAL, hybrid_name

HYBRID_PROGRAM = "interconnect"
OPTICAL_PROGRAM = "optical"

OpticalKind = Literal["p4", "openflow"]
"""The program of optical switches: p4src/optical.p4, or flows of an OpenFlow crossbar."""


class InterconnectSettings(BaseModel, frozen=True, extra="forbid"):
    """Settings of the service."""

    policy: PolicyName = "least-loaded"
    """Routing policy of hybrid switches."""
    per_wavelength: bool = True
    """Whether each wavelength of a fibre is a channel of its own."""
    flowlet_us: int = Field(default=0, ge=0, lt=2**48)
    """Pause after which a flow chooses its path anew; 0: each packet chooses."""
    optical: OpticalKind = "p4"
    """The program of optical switches."""
    seed: int = 1
    """Seed of the hashes that spread flows."""


class InterconnectRequest(BaseModel, frozen=True, extra="forbid"):
    """A request without fields: hosts send to each other, and switches need no entries for that."""


class AdmittedTraffic(BaseModel, frozen=True):
    """The answer: the job's number."""

    job: int


class InterconnectService(Service[InterconnectSettings, InterconnectRequest, InterconnectRequest, AdmittedTraffic]):
    """Implements gradbed.controller.core.service.Service."""

    Settings, Request, State, Answer = InterconnectSettings, InterconnectRequest, InterconnectRequest, AdmittedTraffic
    programs = (HYBRID_PROGRAM, OPTICAL_PROGRAM)

    def __init__(self, topology: Topology, routes: Routes, settings: InterconnectSettings) -> None:
        super().__init__(topology, routes, settings)
        Reachability(topology).n  # noqa: B018  # UserError for any other kind of network

    def unrouted(self) -> Collection[str]:
        return self._opticals

    @property
    def _opticals(self) -> list[str]:
        return [switch.name for switch in self.topology.switches if switch.tier == OPTICAL]

    def base(self) -> Plan:
        reach = Reachability(self.topology)
        settings = self.settings
        optical = SwitchPlan(program=OPTICAL_PROGRAM) if settings.optical == "p4" else crossbar(reach.n)
        switches = dict.fromkeys(self._opticals, optical)
        for place in reach.places:
            switches[hybrid_name(*place)] = SwitchPlan.of(
                HYBRID_PROGRAM,
                [
                    self_entry(
                        reach,
                        place,
                        POLICIES[settings.policy],
                        settings.per_wavelength,
                        settings.flowlet_us,
                        settings.seed,
                    ),
                    *path_entries(reach, place),
                    *destination_entries(reach, place),
                ],
            )
        return Plan(switches=switches)

    def admit(
        self, number: int, request: InterconnectRequest, others: Mapping[int, InterconnectRequest]
    ) -> InterconnectRequest:
        return request

    def plan(self, number: int, state: InterconnectRequest) -> Plan:
        return Plan(switches={})

    def answer(self, number: int, state: InterconnectRequest) -> AdmittedTraffic:
        return AdmittedTraffic(job=number)

    def plain(self, switch: str, entry: TableEntry) -> TableEntry | None:
        raise UserError(f"{switch} does not run {HYBRID_PROGRAM}: a switch that only forwards cannot choose by load")
