"""An optical switch as an OpenFlow switch: flows that do what p4src/optical.p4 does, and nothing else."""

from __future__ import annotations

from itertools import product

from gradbed.controller.planning.openflow_rules import FORWARD_PROGRAM
from gradbed.controller.planning.plan import Flow, Output, SwitchPlan

VLAN_PRESENT = 0x1000
"""OFPVID_PRESENT (OpenFlow 1.3.5, section 7.2.3.7): the field vlan_vid is this and the identifier."""

TO_IN_PORT = 0xFFFF_FFF8
"""OFPP_IN_PORT: a switch sends nothing back by the port's own number."""

PRIORITY = 1000


def crossbar(units: int) -> SwitchPlan:
    """Light of wavelength w (a VLAN identifier) that comes in by fibre i leaves by fibre (i + w) mod units. Fibres
    are ports, counted from 1. What has no wavelength, or one that there is not, matches no flow and is dropped."""

    def flow(fibre: int, wavelength: int) -> Flow:
        out = (fibre + wavelength) % units
        return Flow(
            priority=PRIORITY,
            match={"in_port": fibre + 1, "vlan_vid": VLAN_PRESENT | wavelength},
            actions=(Output(output=TO_IN_PORT if out == fibre else out + 1),),
        )

    flows = (flow(fibre, wavelength) for fibre, wavelength in product(range(units), repeat=2))
    return SwitchPlan.of(FORWARD_PROGRAM, flows=flows, kind="openflow")
