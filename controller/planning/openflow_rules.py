"""The plan of a legacy OpenFlow switch, from the forwarding entries of a P4 switch in its place.

Planners speak of tables (entries.py); a switch that knows OpenFlow 1.3 alone does the same with flows of one table:

    priority            packets                                     actions
    DESIGNATED          gradients for a designated switch           decrement TTL, to the port towards it
    MULTICAST           ACKs for a job's multicast address          decrement TTL, copies by a group of type ALL
    UNICAST + bits      IPv4 prefixes; a longer one wins            MAC addresses, decrement TTL, to the port

Which designated switch a gradient is for, it tells in its UDP source port, too: OpenFlow knows no header behind UDP.
What matches no flow is dropped: nothing is learnt, nothing flooded.
"""

from __future__ import annotations

from controller.planning.entries import mac_number
from controller.planning.plan import (
    DecrementTtl,
    Flow,
    FlowAction,
    Lpm,
    Match,
    Output,
    SetField,
    SwitchPlan,
    TableEntry,
    ToGroup,
)
from switch.errors import UserError
from topo.graph import Switch

FORWARD_PROGRAM = "forward"
"""What legacy switches do, of both kinds: p4src/forward.p4 and these flows forward alike."""

DESIGNATED_PRIORITY = 3000
MULTICAST_PRIORITY = 2000
UNICAST_PRIORITY = 1000

ETHER_TYPE_IPV4 = 0x0800
PROTOCOL_UDP = 17
GRADIENT_PORT = 0x4742

_DEC_TTL = DecrementTtl(dec_ttl=True)
_IPV4: dict[str, Match] = {"eth_type": ETHER_TYPE_IPV4}


def openflow_plan(switch: Switch, plan: SwitchPlan) -> SwitchPlan:
    """Flows and groups that forward as the entries of `plan` do; what is not forwarding must have been taken out.

    UserError for an entry that OpenFlow has no words for.
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
    if entry.table == "designated_routes":
        number = _exact(entry, "hdr.gradient.switch_number")
        match = {**_IPV4, "ip_proto": PROTOCOL_UDP, "udp_src": number, "udp_dst": GRADIENT_PORT}
        return _forward(DESIGNATED_PRIORITY, match, Output(output=entry.params["port"]))
    raise UserError(f"{switch.name} is a legacy switch and has no table {entry.table}")


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
