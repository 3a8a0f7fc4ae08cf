"""The part of a system's plan for switches that do not run the system's program, and only forward.

Planners of a system treat all switches alike and speak the tables of its program. A switch that runs another one, or
that knows OpenFlow alone, holds the plain forwarding view of its part, which the system makes of each entry
(controller/core/service.py): entries of p4src/forward.p4, or flows that do the same.

A switch that knows OpenFlow 1.3 alone does what the tables (entries.py) would do with flows of one table:

    priority            packets                                     actions
    UDP                 UDP packets with two given ports            decrement TTL, to the port
    MULTICAST           IPv4 multicast addresses                    decrement TTL, copies by a group of type ALL
    UNICAST + bits      IPv4 prefixes; a longer one wins            MAC addresses, decrement TTL, to the port

OpenFlow knows no header behind UDP: what switches are to tell apart must show in the UDP ports.
What matches no flow is dropped: nothing is learnt, nothing flooded.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Literal

from gradbed.common.errors import UserError
from gradbed.controller.planning.plan import (
    DecrementTtl,
    Flow,
    FlowAction,
    Lpm,
    Match,
    Output,
    Plan,
    SetField,
    SwitchPlan,
    TableEntry,
    ToGroup,
)
from gradbed.formats.addresses import mac_number
from gradbed.formats.datagram import ETHER_TYPE_IPV4, PROTOCOL_UDP
from gradbed.topo.graph import Switch, Topology

# ---- The plan of an OpenFlow switch ----


FORWARD_PROGRAM = "forward"
"""What switches do that only forward: p4src/forward.p4 and these flows forward alike."""

UDP_PRIORITY = 3000
MULTICAST_PRIORITY = 2000
UNICAST_PRIORITY = 1000

_DEC_TTL = DecrementTtl(dec_ttl=True)
_IPV4: dict[str, Match] = {"eth_type": ETHER_TYPE_IPV4}


def openflow_plan(switch: Switch, plan: SwitchPlan) -> SwitchPlan:
    """Return flows and groups that forward as the entries of `plan` do, which must have forwarding entries only.

    Raises:
        UserError: An entry cannot be expressed in OpenFlow.
    """
    return SwitchPlan.of(
        FORWARD_PROGRAM,
        groups=plan.groups,
        flows=(_flow(switch, entry) for entry in plan.entries),
        kind="openflow",
    )


def _flow(switch: Switch, entry: TableEntry) -> Flow:
    if entry.table == "ipv4_routes":
        return _unicast(switch, entry)
    if entry.table == "multicast_routes":
        match = {**_IPV4, "ipv4_dst": _exact(entry, "hdr.ipv4.dst_addr")}
        return _forward(MULTICAST_PRIORITY, match, ToGroup(group=entry.params["group"]))
    if entry.table == "udp_routes":
        ports = {"udp_src": _exact(entry, "hdr.udp.src_port"), "udp_dst": _exact(entry, "hdr.udp.dst_port")}
        match = {**_IPV4, "ip_proto": PROTOCOL_UDP, **ports}
        return _forward(UDP_PRIORITY, match, Output(output=entry.params["port"]))
    raise UserError(f"{switch.name} is an OpenFlow switch and has no table {entry.table}")


def _unicast(switch: Switch, entry: TableEntry) -> Flow:
    prefix = entry.match["hdr.ipv4.dst_addr"]
    assert isinstance(prefix, Lpm)
    # OpenFlow cannot copy the address that the packet came with, which was this switch's.
    addresses = (
        SetField(set_field="eth_src", value=mac_number(switch.mac)),
        SetField(set_field="eth_dst", value=entry.params["dst_mac"]),
    )
    # An exact address is no prefix to OpenFlow, and no address no field at all.
    match: dict[str, Match] = dict(_IPV4)
    if prefix.prefix_bits:
        match["ipv4_dst"] = prefix.value if prefix.prefix_bits == 32 else prefix
    return _forward(UNICAST_PRIORITY + prefix.prefix_bits, match, *addresses, Output(output=entry.params["port"]))


def _forward(priority: int, match: dict[str, Match], *actions: FlowAction) -> Flow:
    return Flow(priority=priority, match=match, actions=(_DEC_TTL, *actions))


def _exact(entry: TableEntry, field: str) -> int:
    value = entry.match[field]
    assert isinstance(value, int)
    return value


# ---- What any switch holds of a system's plan ----


OPENFLOW: Literal["openflow"] = "openflow"
"""Stands for the program of a switch that runs none, and is spoken to by OpenFlow."""

PlainView = Callable[[str, TableEntry], TableEntry | None]
"""(switch, entry of a system's program) to the entry of p4src/forward.p4 that stands for it; None: there is none.
UserError if the switch would have to run the program."""


def table_programs(switches: Mapping[str, str]) -> dict[str, str]:
    """Return the program whose tables each switch is planned with: for OpenFlow switches p4src/forward.p4."""
    return {name: FORWARD_PROGRAM if program == OPENFLOW else program for name, program in switches.items()}


def as_switches_hold_it(
    plan: Plan, topology: Topology, switches: Mapping[str, str], programs: Collection[str], plain: PlainView
) -> Plan:
    """Return a system's plan, with the plain view of it where a switch runs none of the system's programs.

    switches: what each runs, by name.

    Raises:
        UserError: A switch cannot do it.
    """

    def held(name: str, part: SwitchPlan) -> SwitchPlan:
        running = switches[name]
        if running == part.program or (running == OPENFLOW and part.kind == "openflow"):
            return part
        if running in programs or part.more_than_entries or part.flows:
            raise UserError(f"{name} runs {running}, its plan is for {part.program}")
        entries = [entry for entry in (plain(name, each) for each in part.entries) if entry is not None]
        if running == OPENFLOW:
            return openflow_plan(topology.switch(name), SwitchPlan.of(FORWARD_PROGRAM, entries, part.groups))
        return SwitchPlan.of(running, entries, part.groups)

    return Plan(switches={name: held(name, part) for name, part in plan.switches.items()})
