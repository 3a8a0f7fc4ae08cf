from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network

import pytest

from gradbed.controller.planning.plan import (
    CloneSession,
    DefaultAction,
    Lpm,
    Match,
    MeterCell,
    MeterRates,
    MulticastGroup,
    Range,
    RegisterValue,
    SwitchPlan,
    TableEntry,
    Ternary,
)
from gradbed.controller.planning.routing import shortest_routes
from gradbed.topo.generators import fat_tree, leaf_spine
from tests.unit.controller.entries.planning import TOPOLOGY, Written


def routes_of(plan: SwitchPlan) -> dict[str, tuple[int, int]]:
    """Address of each host route -> port and MAC."""
    found = {}
    for entry in plan.entries:
        how = entry.match["hdr.ipv4.dst_addr"]
        assert isinstance(how, Lpm) and how.prefix_bits == 32
        found[".".join(map(str, how.value.to_bytes(4, "big")))] = (entry.params["port"], entry.params["dst_mac"])
    return found


def prefixes_of(plan: SwitchPlan) -> dict[IPv4Network, tuple[int, int]]:
    """Prefix of each route -> port and MAC."""
    found = {}
    for entry in plan.entries:
        how = entry.match["hdr.ipv4.dst_addr"]
        assert isinstance(how, Lpm)
        found[IPv4Network((how.value, how.prefix_bits))] = (entry.params["port"], entry.params["dst_mac"])
    return found


def mac(text: str) -> int:
    return int(text.replace(":", ""), 16)


@pytest.mark.parametrize(
    ("text", "field", "how"),
    [
        ("10.0.0.0/8", "dst_addr", Lpm(value=0x0A000000, prefix_bits=8)),
        ("10.0.0.1", "dst_addr", Lpm(value=0x0A000001, prefix_bits=32)),
        ("[10.0.0.0, 8]", "dst_addr", Lpm(value=0x0A000000, prefix_bits=8)),
        ("'*'", "dst_addr", None),
        ("0x0a000000/8", "dst_addr", Lpm(value=0x0A000000, prefix_bits=8)),
        ("$h3.ip", "dst_addr", Lpm(value=0x0A000102, prefix_bits=32)),
        ("10.0.0.0 &&& 255.0.0.0", "src_addr", Ternary(value=0x0A000000, mask=0xFF000000)),
        ("10.0.0.0/8", "src_addr", Ternary(value=0x0A000000, mask=0xFF000000)),
        ("[0x10, 0xf0]", "src_addr", Ternary(value=0x10, mask=0xF0)),
        ("7", "src_addr", Ternary(value=7, mask=0xFFFFFFFF)),
        ("80..443", "header_checksum", Range(low=80, high=443)),
        ("80-443", "header_checksum", Range(low=80, high=443)),
        ("80->443", "header_checksum", Range(low=80, high=443)),
        ("[80, 443]", "header_checksum", Range(low=80, high=443)),
        ("0x50", "header_checksum", Range(low=80, high=80)),
        ("17", "protocol", 17),
        ("0b10001", "protocol", 17),
        ("-1", "protocol", 255),
        ("any", "protocol", None),
    ],
)
def test_matches_are_written_as_people_write_them(written: Written, text: str, field: str, how: Match | None) -> None:
    table, action = ("routes", "drop") if field == "dst_addr" else ("rules", "drop")
    plan = written.plan(f"tables: {{{table}: [{{match: {{{field}: {text}}}, action: {action}}}]}}")
    (entry,) = plan["l1"].entries
    assert entry.match == ({} if how is None else {f"hdr.ipv4.{field}": how})


@pytest.mark.parametrize("text", ["10:20:30:40:50:10", "10-20-30-40-50-10", "0x102030405010"])
def test_a_mac_address_is_no_number_to_base_60(written: Written, text: str) -> None:
    plan = written.plan(
        f"tables: {{stations: [{{match: {{hdr.ethernet.dst_addr: {text}}}, action: measured, params: {{port: 1}}}}]}}"
    )
    assert plan["s1"].entries[0].match == {"hdr.ethernet.dst_addr": 0x102030405010}


ROUTES = """
    tables:
      routes:
        - {routes: shortest, match: {dst_addr: $dst_ip}, action: forward, params: {port: $port, dst_mac: $next_mac}}
"""


def test_shortest_routes_name_the_next_hop(written: Written) -> None:
    plan = written.plan(ROUTES)
    hosts = {host.name: host for host in TOPOLOGY.hosts}
    leaf = routes_of(plan["l1"])
    assert leaf[hosts["h1"].ip] == (1, mac(hosts["h1"].mac)) and leaf[hosts["h2"].ip] == (2, mac(hosts["h2"].mac))
    up = {leaf[hosts[name].ip] for name in ("h3", "h4")}
    assert up <= {(3, mac(TOPOLOGY.switch("s1").mac)), (4, mac(TOPOLOGY.switch("s2").mac))}
    assert routes_of(plan["s1"])[hosts["h3"].ip] == (2, mac(TOPOLOGY.switch("l2").mac))


def test_of_equally_short_ways_a_route_takes_that_of_the_controller(written: Written) -> None:
    """Which spreads them over the spines, destination by destination."""
    topology = leaf_spine(4, 2, 1)
    plan, routes = written.plan(ROUTES, topology=topology), shortest_routes(topology)
    chosen = set()
    for leaf in ("l1", "l2", "l3", "l4"):
        for host in topology.hosts:
            edge = topology.attachment(host.name).name
            if edge != leaf:
                hop = routes.next_hop(leaf, edge)
                chosen.add(hop)
                assert routes_of(plan[leaf])[host.ip] == (topology.port(leaf, hop), mac(topology.switch(hop).mac))
    assert chosen == {"s1", "s2"}


def test_shortest_routes_lead_from_every_switch_to_every_host(written: Written) -> None:
    topology = fat_tree(4)
    plan = written.plan(ROUTES, topology=topology)
    for switch in topology.switches:
        for host in topology.hosts:
            at, hops = switch.name, 0
            while not topology.is_host(at):
                port, _ = routes_of(plan[at])[host.ip]
                at = next(name for name, own in topology.neighbours(at).items() if own == port)
                hops += 1
                assert hops <= 5
            assert at == host.name


def test_routes_by_prefix_are_fewer_and_lead_where_those_by_host_do(written: Written) -> None:
    topology = fat_tree(4)
    by_host = written.plan(ROUTES, topology=topology)
    plan = written.plan(ROUTES.replace("shortest", "prefixes").replace("$dst_ip", "$dst_prefix"), topology=topology)
    for switch in by_host.switches:
        prefixes = prefixes_of(plan[switch])
        assert len(prefixes) < len(topology.hosts)
        for host in topology.hosts:
            (way,) = (how for prefix, how in prefixes.items() if IPv4Address(host.ip) in prefix)
            assert way == routes_of(by_host[switch])[host.ip]


def test_all_equal_next_hops(written: Written) -> None:
    plan = written.plan(
        """
        switches:
          l1:
            tables:
              rules:
                - routes: all
                  match: {src_addr: $dst_ip, header_checksum: $choice, protocol: $choices}
                  action: drop
        """
    )
    found = [entry.match for entry in plan["l1"].entries]
    at_home = {"hdr.ipv4.src_addr": Ternary(value=0x0A000002, mask=0xFFFFFFFF)}
    away = {"hdr.ipv4.src_addr": Ternary(value=0x0A000102, mask=0xFFFFFFFF), "hdr.ipv4.protocol": 2}
    assert {**at_home, "hdr.ipv4.header_checksum": Range(low=0, high=0), "hdr.ipv4.protocol": 1} in found
    for choice in (0, 1):
        assert {**away, "hdr.ipv4.header_checksum": Range(low=choice, high=choice)} in found
    assert len(found) == 6 and not plan["l2"].entries


def test_one_entry_for_each_port(written: Written) -> None:
    plan = written.plan(
        """
        tables:
          stations:
            - {each: host-port, match: {dst_addr: $next_mac}, action: measured, params: {port: $port}}
            - {each: switch-port, match: {dst_addr: $next_number}, action: measured, params: {port: $to.h1}}
        """
    )
    found = {entry.match["hdr.ethernet.dst_addr"]: entry.params["port"] for entry in plan["l1"].entries}
    assert found == {mac(TOPOLOGY.host("h1").mac): 1, mac(TOPOLOGY.host("h2").mac): 2, 1: 1, 2: 1}


def test_closer_scopes_win_and_written_entries_win_over_rules(written: Written) -> None:
    plan = written.plan(
        ROUTES
        + """
        - {match: {dst_addr: $h1.ip}, action: copy, params: {group: 1}}
        - default_action: forward
          params: {port: 1, dst_mac: $switch_mac}
    tiers:
      leaf:
        tables:
          routes:
            - {match: {dst_addr: $h1.ip}, action: copy, params: {group: 2}}
    switches:
      l2:
        tables:
          routes:
            - {match: {dst_addr: $h1.ip}, action: copy, params: {group: $switch_number}}
            - default_action: drop
"""
    )
    number = TOPOLOGY.switch("l2").number
    to_h1 = {"hdr.ipv4.dst_addr": Lpm(value=0x0A000002, prefix_bits=32)}
    for switch, group in (("s1", 1), ("s2", 1), ("l1", 2), ("l2", number)):
        (entry,) = (each for each in plan[switch].entries if each.match == to_h1)
        assert entry.params == {"group": group}
        assert len(plan[switch].entries) == len(TOPOLOGY.hosts)
    (default,) = plan["s2"].defaults
    assert default.params == {"port": 1, "dst_mac": mac(TOPOLOGY.switch("s2").mac)}
    assert plan["l2"].defaults == (DefaultAction(table="TheIngress.routes", action="TheIngress.drop"),)


def test_without_priorities_the_first_entry_has_the_highest(written: Written) -> None:
    plan = written.plan(
        """
        tables:
          rules:
            - {match: {protocol: 6}, action: drop}
            - {match: {protocol: 17}, action: NoAction}
        switches:
          s1: {tables: {rules: [{match: {protocol: 1}, action: drop}]}}
        """
    )
    ranked = sorted(plan["s1"].entries, key=lambda entry: -entry.priority)
    assert [(entry.match["hdr.ipv4.protocol"], entry.priority) for entry in ranked] == [(1, 3), (6, 2), (17, 1)]
    assert [entry.priority for entry in plan["s2"].entries] == [2, 1]


def test_everything_besides_entries(written: Written) -> None:
    plan = written.plan(
        """
        tables:
          stations:
            - match: {dst_addr: 1}
              action: measured
              params: {port: 2}
              meter: {committed_rate: 10, committed_burst: 20, peak_rate: 30, peak_burst: 40}
        multicast: {1: [2, 1], 2: hosts, 3: all, 4: [{port: 1, instance: 5}, {port: 1, instance: 4}]}
        clone: {5: {ports: [$to.h4], truncate_bytes: 64}, 6: [1]}
        registers: {threshold: {3: 10, 0x4: $switch_number}}
        meters: {police: {0: {committed_rate: 1, committed_burst: 2, peak_rate: 3, peak_burst: 4}}}
        """
    )["l2"]
    rates = MeterRates(committed_rate=10, committed_burst=20, peak_rate=30, peak_burst=40)
    assert plan.entries == (
        TableEntry(
            table="TheIngress.stations",
            match={"hdr.ethernet.dst_addr": 1},
            action="TheIngress.measured",
            params={"port": 2},
            meter=rates,
        ),
    )
    assert plan.groups == (
        MulticastGroup(id=1, ports=(1, 2)),
        MulticastGroup(id=2, ports=(1, 2)),
        MulticastGroup(id=3, ports=(1, 2, 3, 4)),
        MulticastGroup(id=4, ports=(1, 1), instances=(4, 5)),
    )
    assert plan.clones == (CloneSession(id=5, ports=(2,), truncate_bytes=64), CloneSession(id=6, ports=(1,)))
    assert plan.registers == (
        RegisterValue(register_name="TheIngress.threshold", index=3, value=10),
        RegisterValue(register_name="TheIngress.threshold", index=4, value=TOPOLOGY.switch("l2").number),
    )
    one_to_four = MeterRates(committed_rate=1, committed_burst=2, peak_rate=3, peak_burst=4)
    assert plan.meters == (MeterCell(meter_name="TheIngress.police", index=0, rates=one_to_four),)


def test_rates_for_every_cell_and_for_every_entry(written: Written) -> None:
    slow, fast = (
        f"{{committed_rate: {rate}, committed_burst: 1, peak_rate: {rate}, peak_burst: 1}}" for rate in (1, 9)
    )
    plan = written.plan(
        f"""
        tables:
          stations:
            - {{each: host-port, match: {{dst_addr: $next_mac}}, action: measured, params: {{port: $port}}}}
            - {{match: {{dst_addr: 1}}, action: measured, params: {{port: 1}}, meter: {fast}}}
        meters: {{entry_meter: {slow}, police: {slow}}}
        tiers: {{leaf: {{meters: {{police: {{2: {fast}}}}}}}}}
        """
    )
    rates = [entry.meter and entry.meter.peak_rate for entry in plan["l1"].entries]
    assert rates == [9, 1, 1], "the one of the entry itself, and those of the rule's two entries"
    assert [cell.rates.peak_rate for cell in plan["l1"].meters] == [1, 1, 9, 1]
    assert [cell.rates.peak_rate for cell in plan["s1"].meters] == [1, 1, 1, 1]


def test_flooding_along_the_tree_reaches_every_switch_once(written: Written) -> None:
    topology = fat_tree(4)
    plan = written.plan("multicast: {1: tree}", topology=topology)
    edges = {
        frozenset((switch.name, name))
        for switch in topology.switches
        for name, port in topology.neighbours(switch.name).items()
        if not topology.is_host(name) and port in plan[switch.name].groups[0].ports
    }
    assert len(edges) == len(topology.switches) - 1
    assert sum(len(part.groups[0].ports) for part in plan.switches.values()) == 2 * len(edges) + len(topology.hosts)


MISTAKES = {
    "tables: {rotues: []}": "1:10: the P4 program has no table 'rotues'; did you mean 'routes'?",
    "tabels: {}": "1:1: there is no 'tabels' here; did you mean 'tables'?",
    "tables: {routes: [{match: {dst_adr: 1}, action: drop}]}": (
        "1:28: the P4 program has no field 'dst_adr'; did you mean 'dst_addr'?"
    ),
    "tables: {routes: [{match: {dst_addr: 1}, action: forwrad}]}": (
        "1:50: the P4 program has no action 'forwrad'; did you mean 'forward'?"
    ),
    "tables: {routes: [{match: {dst_addr: 1}, action: forward, params: {prot: 1}}]}": (
        "1:68: the P4 program has no parameter 'prot'; did you mean 'port'?"
    ),
    "tables: {routes: [{match: {dst_addr: 1}, action: forward, params: {port: 1}}]}": (
        "1:67: action TheIngress.forward lacks dst_mac"
    ),
    "tables: {routes: [{match: {dst_addr: 1}, action: forward, params: {port: 512, dst_mac: 1}}]}": (
        "1:74: 512 does not fit port, which has 9 bits"
    ),
    "tables: {routes: [{match: {dst_addr: 10.0.0.256}, action: drop}]}": (
        "1:38: hdr.ipv4.dst_addr: '10.0.0.256' is no number and no address"
    ),
    "tables: {routes: [{match: {dst_addr: 10.0.0.1/8}, action: drop}]}": (
        "1:38: 10.0.0.1/8 has bits beyond the first 8: the prefix is 10.0.0.0/8"
    ),
    "tables: {routes: [{match: {dst_addr: 10.0.0.0/33}, action: drop}]}": (
        "1:38: the prefix length 33 is no number from 0 to 32, the bits of hdr.ipv4.dst_addr"
    ),
    "tables: {rules: [{match: {src_addr: 0x11 &&& 0x10}, action: drop}]}": (
        "1:37: 0x11 &&& 0x10 has bits outside its mask: the value is 0.0.0.16"
    ),
    "tables: {rules: [{match: {header_checksum: 9..5}, action: drop}]}": (
        "1:44: the range 9..5 is empty: its low end is above its high end"
    ),
    "tables: {stations: [{action: NoAction}]}": (
        "1:21: TheIngress.stations: an entry must give hdr.ethernet.dst_addr"
    ),
    "tables: {stations: [{match: {dst_addr: '*'}, action: NoAction}]}": (
        "1:40: hdr.ethernet.dst_addr is matched exactly: it needs a value"
    ),
    "tables: {routes: [{match: {dst_addr: $dst_ip}, action: drop}]}": (
        "1:38: there is no variable $dst_ip here; there are: switch_number, switch_mac"
    ),
    "tables: {routes: [{match: {dst_addr: $h9.ip}, action: drop}]}": (
        "1:38: the network has no node 'h9'; there are: h1, h2, h3, h4, s1, s2, l1, l2"
    ),
    "tables: {routes: [{routes: shortets, match: {dst_addr: $dst_ip}, action: drop}]}": (
        "1:28: 'shortets' is no rule; did you mean 'shortest'?"
    ),
    "tables: {routes: [{routes: prefixes, to: switches, match: {dst_addr: $dst_prefix}, action: drop}]}": (
        "1:42: 'to' goes with 'routes: shortest': prefixes are those of hosts"
    ),
    "tables: {routes: [{match: {dst_addr: 1}, action: drop, priority: 3}]}": (
        "1:66: TheIngress.routes takes no priority: it has no ternary, range or optional field"
    ),
    "tables: {rules: [{match: {protocol: 1}, action: drop, priority: 3}, {match: {protocol: 2}, action: drop}]}": (
        "1:69: an entry of TheIngress.rules has no priority, though others of the table have: the highest wins"
    ),
    "tables: {fixed: [{match: {ether_type: 1}, action: drop}]}": (
        "1:18: TheIngress.fixed: the program has its entries as constants"
    ),
    "tables: {fixed: [{default_action: drop}]}": (
        "1:35: TheIngress.fixed: the program has its default action as a constant"
    ),
    "multicast: {0: [1]}": "1:13: 0 is less than 1",
    "multicast: {70000: [1]}": "1:13: groups and sessions are numbered from 1 to 65535",
    "multicast: {1: [1, 1]}": "1:20: port 1 is there twice: give the copies instances of their own",
    "multicast: {1: trees}": "1:16: a list of ports is expected here, or a word for them; did you mean 'tree'?",
    "registers: {threshold: {8: 1}}": ("1:25: register TheIngress.threshold has 8 cells, and so no cell 8"),
    "registers: {threshold: {0: 65536}}": (
        "1:28: 65536 does not fit register TheIngress.threshold, which has 16 bits"
    ),
    "meters: {police: {0: {committed_rate: 5}}}": "1:22: committed_burst is missing",
    "meters: {entry_meter: {0: {committed_rate: 5, committed_burst: 1, peak_rate: 5, peak_burst: 1}}}": (
        "1:24: meter TheIngress.entry_meter has no cells of its own: entries of TheIngress.stations have it"
    ),
    "meters: {polise: {}}": "1:10: the P4 program has no meter 'polise'; did you mean 'police'?",
    "meters: {police: {0: {committed_rate: 5, committed_burst: 1, peak_rate: 2, peak_burst: 1}}}": (
        "1:73: the peak rate 2 is below the committed rate"
    ),
    "switches: {l9: {}}": "1:12: the network has no switch 'l9'; there are: l1, l2, s1, s2",
    "tiers: {core: {}}": "1:9: the network has no tier 'core'; there are: leaf, spine",
    "tables: [1]": "1:9: a mapping is expected here, such as 'key: value'",
    "tables: {routes: 5}": "1:18: a list is expected here",
    "tables: {routes: [}": "1:19: expected the node content, but found '}'",
    "": "1:1: the file is empty",
}


@pytest.mark.parametrize(("text", "message"), MISTAKES.items(), ids=range(len(MISTAKES)))
def test_a_mistake_is_one_line_with_its_place(written: Written, text: str, message: str) -> None:
    assert written.mistake(text) == f"entries.yaml:{message}"


def test_contradictions_name_both_places(written: Written) -> None:
    text = """\
    tables:
      routes:
        - {match: {dst_addr: 10.0.0.0/8}, action: drop}
        - {match: {dst_addr: 10.0.0.0/8}, action: copy, params: {group: 1}}
    """
    message = written.mistake(text)
    assert message == (
        "entries.yaml:4:7: an entry of TheIngress.routes with this match is given in entries.yaml:3:7 already, "
        "and says something else"
    )


def test_a_table_that_is_full(written: Written) -> None:
    entries = "".join(f"\n    - {{match: {{dst_addr: {n}}}, action: drop}}" for n in range(17))
    assert written.mistake(f"tables:\n  routes:{entries}") == (
        "entries.yaml:19:7: table TheIngress.routes holds 16 entries, and gets 17: write fewer, or give it a greater "
        "size in the program"
    )
