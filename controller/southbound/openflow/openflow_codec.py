"""Flows and groups of a plan to OpenFlow 1.3 messages (os-ken's), and what a switch reports back to plan values."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Address
from typing import Any

from gradbed.common.errors import UserError
from gradbed.controller.planning.plan import (
    DecrementTtl,
    Flow,
    FlowAction,
    Lpm,
    Match,
    MulticastGroup,
    Output,
    SetField,
    ToGroup,
)
from gradbed.formats.addresses import mac_number, mac_text

COOKIE = 0x6772616462656400  # "gradbed"
"""Marks the flows that are ours; others are left alone."""

ALL_BITS = 2**64 - 1
_ADDRESS_BITS = 32
_ETHERNET_FIELDS = frozenset({"eth_src", "eth_dst"})
_IPV4_FIELDS = frozenset({"ipv4_src", "ipv4_dst"})
_NUMBER_FIELDS = frozenset({"in_port", "vlan_vid", "eth_type", "ip_proto", "udp_src", "udp_dst"})


def flow_mod(datapath: Any, flow: Flow) -> Any:
    """Add the flow, in place of one with the same match and priority."""
    parser, ofproto = datapath.ofproto_parser, datapath.ofproto
    actions = [_action(datapath, action) for action in flow.actions]
    return parser.OFPFlowMod(
        datapath,
        cookie=COOKIE,
        command=ofproto.OFPFC_ADD,
        priority=flow.priority,
        match=_match(datapath, flow),
        instructions=[parser.OFPInstructionActions(ofproto.OFPIT_APPLY_ACTIONS, actions)],
    )


def flow_delete(datapath: Any, flow: Flow) -> Any:
    """Delete this one flow."""
    return _delete(datapath, flow.priority, _match(datapath, flow))


def reported_flow_delete(datapath: Any, statistics: Any) -> Any:
    """Delete this one flow, whatever it is."""
    return _delete(datapath, statistics.priority, statistics.match)


def _delete(datapath: Any, priority: int, match: Any) -> Any:
    ofproto = datapath.ofproto
    return datapath.ofproto_parser.OFPFlowMod(
        datapath,
        cookie=COOKIE,
        cookie_mask=ALL_BITS,
        command=ofproto.OFPFC_DELETE_STRICT,
        priority=priority,
        out_port=ofproto.OFPP_ANY,
        out_group=ofproto.OFPG_ANY,
        match=match,
    )


def group_mod(datapath: Any, command: int, group: MulticastGroup) -> Any:
    """Return a group of type ALL, one bucket a port.

    command: OFPGC_ADD, OFPGC_MODIFY, or OFPGC_DELETE, without buckets.
    """
    parser, ofproto = datapath.ofproto_parser, datapath.ofproto
    ports = () if command == ofproto.OFPGC_DELETE else group.ports
    buckets = [parser.OFPBucket(actions=[parser.OFPActionOutput(port)]) for port in ports]
    return parser.OFPGroupMod(datapath, command, ofproto.OFPGT_ALL, group.id, buckets)


def flows_request(datapath: Any) -> Any:
    """Ask for all flows of ours."""
    return datapath.ofproto_parser.OFPFlowStatsRequest(datapath, cookie=COOKIE, cookie_mask=ALL_BITS)


def decode_flow(statistics: Any) -> Flow | None:
    """Return a flow as a switch reports it; None if it is of no kind that plans have."""
    match = _decoded_match(statistics.match)
    instructions = statistics.instructions
    if match is None or statistics.table_id != 0 or len(instructions) != 1:
        return None
    actions = [_decoded_action(action) for action in getattr(instructions[0], "actions", ())]
    known = [action for action in actions if action is not None]
    if len(known) != len(actions):
        return None
    return Flow(priority=statistics.priority, match=match, actions=tuple(known))


def decode_group(description: Any, all_type: int) -> MulticastGroup:
    """Return a group as a switch reports it. One of another kind than ours has no ports, so that it differs."""
    ports: set[int] = set()
    if description.type == all_type:
        for bucket in description.buckets:
            ports.update(action.port for action in bucket.actions if hasattr(action, "port"))
    return MulticastGroup(id=description.group_id, ports=tuple(sorted(ports)))


def _match(datapath: Any, flow: Flow) -> Any:
    fields: dict[str, Any] = {}
    for name, how in flow.match.items():
        if isinstance(how, int):
            fields[name] = _field_value(name, how)
        elif isinstance(how, Lpm) and name in _IPV4_FIELDS:
            mask = (1 << _ADDRESS_BITS) - (1 << (_ADDRESS_BITS - how.prefix_bits))
            fields[name] = (str(IPv4Address(how.value)), str(IPv4Address(mask)))
        else:
            raise UserError(f"an OpenFlow switch cannot match {how!r} on {name}")
    return datapath.ofproto_parser.OFPMatch(**fields)


def _field_value(name: str, value: int) -> Any:
    if name in _ETHERNET_FIELDS:
        return mac_text(value)
    if name in _IPV4_FIELDS:
        return str(IPv4Address(value))
    if name in _NUMBER_FIELDS:
        return value
    raise UserError(f"plans for OpenFlow switches have no field {name}")


def _decoded_match(match: Any) -> dict[str, Match] | None:
    fields: dict[str, Match] = {}
    for name, value in match.items():
        if name in _IPV4_FIELDS and isinstance(value, tuple):
            address, mask = (int(IPv4Address(part)) for part in value)
            prefix_bits = mask.bit_count()
            if mask != (1 << _ADDRESS_BITS) - (1 << (_ADDRESS_BITS - prefix_bits)):
                return None
            fields[name] = Lpm(value=address, prefix_bits=prefix_bits)
        elif name in _ETHERNET_FIELDS | _IPV4_FIELDS | _NUMBER_FIELDS and not isinstance(value, tuple):
            fields[name] = _number(name, value)
        else:
            return None
    return fields


def _number(name: str, value: Any) -> int:
    if name in _ETHERNET_FIELDS:
        return mac_number(value)
    return int(IPv4Address(value)) if name in _IPV4_FIELDS else int(value)


def _action(datapath: Any, action: FlowAction) -> Any:
    parser = datapath.ofproto_parser
    if isinstance(action, SetField):
        return parser.OFPActionSetField(**{action.set_field: _field_value(action.set_field, action.value)})
    if isinstance(action, DecrementTtl):
        return parser.OFPActionDecNwTtl()
    if isinstance(action, Output):
        return parser.OFPActionOutput(action.output)
    return parser.OFPActionGroup(action.group)


def _decoded_action(action: Any) -> FlowAction | None:
    kind = type(action).__name__
    if kind == "OFPActionSetField" and action.key in _ETHERNET_FIELDS:
        return SetField(set_field=action.key, value=mac_number(action.value))
    if kind == "OFPActionDecNwTtl":
        return DecrementTtl(dec_ttl=True)
    if kind == "OFPActionOutput":
        return Output(output=action.port)
    if kind == "OFPActionGroup":
        return ToGroup(group=action.group_id)
    return None


def held_flows(statistics: Iterable[Any]) -> tuple[list[Flow], list[Any]]:
    """Return what a switch reports, as flows, and those reports that are none."""
    flows, strange = [], []
    for report in statistics:
        flow = decode_flow(report)
        if flow is None:
            strange.append(report)
        else:
            flows.append(flow)
    return flows, strange
