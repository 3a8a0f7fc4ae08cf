"""Legacy switches' part of a plan: the same forwarding, in their own kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from ipaddress import IPv4Address, IPv4Network

import pytest
from hypothesis import given
from hypothesis import strategies as st
from os_ken.ofproto import ofproto_v1_3_parser as parser

from gradbed.common.errors import UserError
from gradbed.controller.planning.diff import switch_diff
from gradbed.controller.planning.entries import congestion_threshold, ipv4_route, multicast_route, udp_route
from gradbed.controller.planning.legacy import as_switches_hold_it, openflow_plan
from gradbed.controller.planning.plan import (
    Flow,
    Lpm,
    Match,
    MulticastGroup,
    Output,
    Plan,
    RegisterValue,
    SetField,
    SwitchPlan,
    TableEntry,
    ToGroup,
)
from gradbed.controller.planning.routing import shortest_routes
from gradbed.controller.planning.text import plan_text
from gradbed.controller.southbound.openflow.openflow_codec import flow_mod, held_flows
from gradbed.controller.systems.aggregation.job_plan import (
    SlotRange,
    aggregation_role,
    designated_route,
    plain_designated_route,
)
from gradbed.controller.systems.aggregation.service import AggregationService
from gradbed.formats.addresses import mac_number
from gradbed.topo.generators import leaf_spine
from tests.unit.controller.fake_openflow import FakeSwitch
from tests.unit.controller.networks import routes_alone

TOPOLOGY = leaf_spine(2, 2, 2)
LEAF = TOPOLOGY.switch("l1")
MAC = "02:00:0a:00:00:02"


def flows_of(*entries: TableEntry) -> tuple[Flow, ...]:
    return openflow_plan(LEAF, SwitchPlan.of("forward", entries)).flows


def test_a_unicast_route() -> None:
    (flow,) = flows_of(ipv4_route(IPv4Network("10.0.1.0/24"), 3, MAC))
    assert flow.match == {"eth_type": 0x0800, "ipv4_dst": Lpm(value=int(IPv4Address("10.0.1.0")), prefix_bits=24)}
    dec_ttl, source, destination, output = flow.actions
    assert dec_ttl.model_dump() == {"dec_ttl": True}
    assert source == SetField(set_field="eth_src", value=mac_number(LEAF.mac))
    assert destination == SetField(set_field="eth_dst", value=mac_number(MAC))
    assert output == Output(output=3)


def test_longer_prefixes_win_and_udp_routes_win_over_all() -> None:
    flows = flows_of(
        ipv4_route(IPv4Network("0.0.0.0/0"), 1, MAC),
        ipv4_route(IPv4Network("10.0.1.2/32"), 1, MAC),
        multicast_route(IPv4Address("239.66.0.1"), 1),
        ipv4_route(IPv4Network("10.0.1.0/24"), 1, MAC),
        udp_route(5, 7, 2),
    )
    # Canonical order is by priority.
    assert [flow.match.get("ipv4_dst", flow.match.get("udp_src")) for flow in flows] == [
        7,
        int(IPv4Address("239.66.0.1")),
        int(IPv4Address("10.0.1.2")),
        Lpm(value=int(IPv4Address("10.0.1.0")), prefix_bits=24),
        None,
    ]
    assert len({flow.priority for flow in flows}) == 5


def test_a_udp_route_leaves_addresses_alone() -> None:
    (flow,) = flows_of(udp_route(0x4742, 7, 2))
    assert flow.match == {"eth_type": 0x0800, "ip_proto": 17, "udp_src": 7, "udp_dst": 0x4742}
    assert flow.actions[1:] == (Output(output=2),)


def test_multicast_is_a_group() -> None:
    group = MulticastGroup(id=9, ports=(1, 4))
    plan = openflow_plan(LEAF, SwitchPlan.of("forward", [multicast_route(IPv4Address("239.66.0.9"), 9)], [group]))
    assert plan.groups == (group,)
    assert plan.flows[0].actions[1:] == (ToGroup(group=9),)


def held(plan: Plan, programs: Mapping[str, str]) -> Plan:
    """Aggregation's plan on leaves and spines, of which some do not sum."""
    switches = {switch.name: programs.get(switch.name, "aggregation") for switch in TOPOLOGY.switches}
    service = AggregationService(TOPOLOGY, shortest_routes(TOPOLOGY), AggregationService.Settings())
    return as_switches_hold_it(plan, TOPOLOGY, switches, service.programs, service.plain)


def on_leaf(*entries: TableEntry) -> Plan:
    return Plan(switches={name: SwitchPlan.of("aggregation", entries) for name in ("l1", "l2")})


@pytest.mark.parametrize("program", ["forward", "openflow"])
def test_a_legacy_switch_does_not_aggregate_and_does_not_mark(program: str) -> None:
    routes = on_leaf(multicast_route(IPv4Address("239.66.0.9"), 9))
    marks = routes.merged(on_leaf(congestion_threshold(1, 20)))
    assert held(marks, {"l1": program})["l1"] == held(routes, {"l1": program})["l1"]
    assert held(marks, {"l1": program})["l2"] == marks["l2"]
    sums = routes.merged(on_leaf(aggregation_role(1, 3, "dynamic", SlotRange(0, 8))))
    with pytest.raises(UserError, match="l1 is a legacy switch, which cannot sum gradients"):
        held(sums, {"l1": program, "l2": program})


def test_switches_that_know_no_gradients_go_by_udp_ports() -> None:
    legacy = held(on_leaf(designated_route(7, 2)), {"l1": "forward", "l2": "openflow"})
    assert (legacy["l1"].kind, legacy["l1"].program) == ("p4", "forward")
    assert [dict(entry.match) for entry in legacy["l1"].entries] == [
        {"hdr.udp.dst_port": 0x4742, "hdr.udp.src_port": 7}
    ]
    assert legacy["l2"].flows == flows_of(plain_designated_route(designated_route(7, 2)))


def test_a_switch_runs_the_program_that_its_plan_is_for() -> None:
    other = Plan(switches={"l1": SwitchPlan.of("other", [designated_route(7, 2)])})
    with pytest.raises(UserError, match="l1 runs aggregation, its plan is for other"):
        held(other, {})
    registers = Plan(
        switches={"l1": SwitchPlan.of("aggregation", registers=[RegisterValue(register_name="r", index=0, value=1)])}
    )
    with pytest.raises(UserError, match="l1 runs openflow, its plan is for aggregation"):
        held(registers, {"l1": "openflow"})


def test_openflow_plans_are_values_like_others() -> None:
    base = routes_alone(TOPOLOGY, "forward")
    switches = {switch.name: "openflow" if switch.name in ("l1", "s2") else "forward" for switch in TOPOLOGY.switches}
    plan = as_switches_hold_it(base, TOPOLOGY, switches, (), lambda switch, entry: entry)
    assert Plan.from_json(plan.to_json()) == plan
    assert "l1: forward (openflow), 3 flows" in plan_text(plan)
    assert "ipv4_dst=10.0.1.0/24 -> dec_ttl, eth_src=02:01:00:00:00:03, eth_dst=" in plan_text(plan)
    with pytest.raises(ValueError, match="an OpenFlow switch flows"):
        SwitchPlan(kind="openflow", program="forward", entries=base["l1"].entries)
    with pytest.raises(ValueError, match="contradiction"):
        flows_of(udp_route(5, 7, 2), udp_route(5, 7, 3))


def test_differences() -> None:
    def plan(*entries: TableEntry) -> SwitchPlan:
        return openflow_plan(LEAF, SwitchPlan.of("forward", entries))

    stays = ipv4_route(IPv4Network("10.0.1.0/24"), 3, MAC)
    diff = switch_diff(
        plan(stays, udp_route(18242, 1, 2), udp_route(18242, 2, 2)),
        plan(stays, udp_route(18242, 2, 1), udp_route(18242, 3, 1)),
    )
    assert [len(part) for part in (diff.flows.insert, diff.flows.modify, diff.flows.delete)] == [1, 1, 1]
    assert "+ flow: eth_type=2048, ip_proto=17, udp_src=3, udp_dst=18242 -> dec_ttl, output 1" in str(diff)


prefixes = st.builds(
    lambda value, bits: IPv4Network((value >> (32 - bits) << (32 - bits), bits)),
    st.integers(0, 2**32 - 1),
    st.integers(0, 32),
)
entries = st.one_of(
    st.builds(ipv4_route, prefixes, st.integers(1, 500), st.just(MAC)),
    st.builds(udp_route, st.integers(1, 65535), st.integers(1, 65535), st.integers(1, 500)),
    st.builds(
        multicast_route, st.integers(1, 65535).map(lambda n: IPv4Address(0xEF420000 | n)), st.integers(1, 65535)
    ),
)


@given(entry=entries)
def test_flows_survive_the_wire(entry: TableEntry) -> None:
    (flow,) = flows_of(entry)
    datapath = FakeSwitch(1).connect(None)
    message = flow_mod(datapath, flow)
    datapath.set_xid(message)
    message.serialize()
    # os-ken parses flow mods as it parses the statistics of flows: match and instructions.
    match_offset = 48
    match = parser.OFPMatch.parser(message.buf, match_offset)
    instructions_offset = match_offset + (match.length + 7) // 8 * 8
    instruction = parser.OFPInstruction.parser(message.buf, instructions_offset)
    report = type("Report", (), {})()
    report.table_id, report.priority, report.match, report.instructions = 0, message.priority, match, [instruction]
    assert held_flows([report]) == ([flow], [])


def by_entries(entries: Sequence[TableEntry], packet: dict[str, int]) -> tuple[object, ...]:
    """What p4src/forward.p4 does with a packet."""
    address = packet["ipv4_dst"]
    for entry in entries:
        ports = {"hdr.udp.dst_port": packet["udp_dst"], "hdr.udp.src_port": packet["udp_src"]}
        if entry.table == "udp_routes" and entry.match == ports:
            return ("port", entry.params["port"])
    for entry in entries:
        if entry.table == "multicast_routes" and entry.match["hdr.ipv4.dst_addr"] == address:
            return ("group", entry.params["group"])
    routes = [entry for entry in entries if entry.table == "ipv4_routes"]
    matching = [(lpm.prefix_bits, e) for e in routes if covers(lpm := e.match["hdr.ipv4.dst_addr"], address)]
    if not matching:
        return ("drop",)
    params = max(matching, key=lambda found: found[0])[1].params
    return ("port", params["port"], params["dst_mac"])


def by_flows(flows: Sequence[Flow], packet: dict[str, int]) -> tuple[object, ...]:
    def matches(flow: Flow) -> bool:
        return all(
            covers(how, packet[field]) if isinstance(how, Lpm) else packet[field] == how
            for field, how in flow.match.items()
        )

    matching = [flow for flow in flows if matches(flow)]
    if not matching:
        return ("drop",)
    # No two that match have the same priority: OpenFlow leaves open which one would win.
    best, *rest = sorted(matching, key=lambda flow: -flow.priority)
    assert not rest or rest[0].priority < best.priority
    last = best.actions[-1]
    if isinstance(last, ToGroup):
        return ("group", last.group)
    assert isinstance(last, Output)
    macs = [a.value for a in best.actions if isinstance(a, SetField) and a.set_field == "eth_dst"]
    return ("port", last.output, *macs)


def covers(prefix: Match, address: int) -> bool:
    assert isinstance(prefix, Lpm)
    shift = 32 - prefix.prefix_bits
    return prefix.value >> shift == address >> shift


few = st.integers(0, 3)
crowded = st.one_of(
    st.builds(
        lambda value, bits, port: ipv4_route(IPv4Network((value >> (32 - bits) << (32 - bits), bits)), port, MAC),
        few.map(lambda n: 0xEF420000 | n),
        st.sampled_from([0, 8, 30, 31, 32]),
        st.integers(1, 9),
    ),
    st.builds(udp_route, st.just(0x4742), few.map(lambda n: n + 1), st.integers(1, 9)),
    st.builds(multicast_route, few.map(lambda n: IPv4Address(0xEF420000 | n)), st.integers(1, 9)),
)


@given(
    entries=st.lists(crowded, unique_by=lambda entry: entry.key),
    address=few,
    source=few.map(lambda n: n + 1),
    gradient=st.booleans(),
)
def test_flows_forward_as_entries_do(entries: list[TableEntry], address: int, source: int, gradient: bool) -> None:
    packet = {
        "eth_type": 0x0800,
        "ip_proto": 17,
        "ipv4_dst": 0xEF420000 | address,
        "udp_src": source,
        "udp_dst": 0x4742 if gradient else 7,
    }
    assert by_flows(flows_of(*entries), packet) == by_entries(entries, packet)
