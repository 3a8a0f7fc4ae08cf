"""What the controller plans for training: walked by code of the test's own, on networks of every shape."""

from __future__ import annotations

from collections import deque
from ipaddress import IPv4Address
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradbed.common.errors import UserError
from gradbed.controller.planning.plan import Lpm, Plan, TableEntry
from gradbed.controller.planning.routing import link_name, remaining_network, shortest_routes
from gradbed.controller.systems.training.service import (
    GroupRequest,
    Marking,
    TrainingJobRequest,
    TrainingService,
    TrainingSettings,
)
from gradbed.switch.compiler import compile_p4
from gradbed.topo.graph import Topology
from gradbed.topo.registry import parse_topology
from tests.examples import examples
from tests.unit.controller.networks import network, random_networks
from tests.unit.controller.plan_walker import PlanWalker

P4_SOURCES = Path(__file__).resolve().parents[4] / "p4src"
SHAPES = [
    "star:5",
    "fat-tree:4",
    "leaf-spine:4,3,2",
    "dragonfly:3,4,2",
    "torus:4,4,2",
    "bcube:3,1",
    "leaf-spine:2,35,1",
]
POLICIES = ["ecmp", "random-spraying", "round-robin-spraying", "least-loaded", "flowlets"]


def service(topology: Topology, **chosen: Any) -> TrainingService:
    return TrainingService(topology, shortest_routes(topology), TrainingSettings(**chosen))


class Walker:
    """Where packets go by a plan: all ways that a policy may take."""

    def __init__(self, topology: Topology, plan: Plan) -> None:
        self.topology = topology
        self.tables: dict[str, dict[str, list[TableEntry]]] = {}
        for name, switch in plan.switches.items():
            tables = self.tables.setdefault(name, {})
            for entry in switch.entries:
                tables.setdefault(entry.table, []).append(entry)
        self.far = {}
        for link in topology.links:
            self.far[link.a.node, link.a.port] = link.b.node
            self.far[link.b.node, link.b.port] = link.a.node

    def next_nodes(self, switch: str, address: int) -> list[str]:
        """Of every choice; with the MAC addresses checked. Empty: dropped."""
        found: TableEntry | None = None
        bits = -1
        for entry in self.tables[switch]["destinations"]:
            prefix = entry.match["hdr.ipv4.dst_addr"]
            assert isinstance(prefix, Lpm)
            shift = 32 - prefix.prefix_bits
            if address >> shift == prefix.value >> shift and prefix.prefix_bits > bits:
                found, bits = entry, prefix.prefix_bits
        if found is None:
            return []
        if found.action == "forward":
            return [self._to(switch, found)]
        params = found.params
        if found.action == "least_loaded":
            return [node for block in range(params["blocks"]) for node in self._block(switch, params, block)]
        members = range(params["next_hops"])
        return [self._member(switch, params["next_hop_set"], place) for place in members]

    def _block(self, switch: str, params: Any, block: int) -> list[str]:
        key = {"next_hop_set": params["next_hop_set"], "block": block}
        (entry,) = [e for e in self.tables[switch]["candidates"] if dict(e.match) == key]
        assert 1 <= sum(port > 0 for port in entry.params.values()) <= 16
        nodes = []
        for place, port in enumerate(entry.params.values()):
            if port:
                nodes.append(self._member(switch, params["next_hop_set"], block * 16 + place))
                assert self.far[switch, port] == nodes[-1]
        return nodes

    def _member(self, switch: str, number: int, place: int) -> str:
        key = {"next_hop_set": number, "next_hop": place}
        (entry,) = [e for e in self.tables[switch]["next_hops_of_sets"] if dict(e.match) == key]
        return self._to(switch, entry)

    def _to(self, switch: str, entry: TableEntry) -> str:
        node = self.far[switch, entry.params["port"]]
        hosts = {host.name: host.mac for host in self.topology.hosts}
        macs = hosts | {each.name: each.mac for each in self.topology.switches}
        assert entry.params["dst_mac"] == int(macs[node].replace(":", ""), 16)
        return node


def neighbours(topology: Topology) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for link in topology.links:
        found.setdefault(link.a.node, set()).add(link.b.node)
        found.setdefault(link.b.node, set()).add(link.a.node)
    return found


def distances(topology: Topology, to: str) -> dict[str, int]:
    """Links from every node; hosts do not forward."""
    around = neighbours(topology)
    found, waiting = {to: 0}, deque([to])
    hosts = {host.name for host in topology.hosts}
    while waiting:
        node = waiting.popleft()
        if node in hosts and node != to:
            continue
        for other in around[node] - found.keys():
            found[other] = found[node] + 1
            waiting.append(other)
    return found


def check_all_shortest_paths(topology: Topology, plan: Plan) -> None:
    """Every switch sends packets for every host to all neighbours that are nearer, and to no other."""
    walker = Walker(topology, plan)
    hosts = {host.name for host in topology.hosts}
    around = neighbours(topology)
    for host in topology.hosts:
        away = distances(topology, host.name)
        address = int(IPv4Address(host.ip))
        for switch in topology.switches:
            name = switch.name
            nearer = {n for n in around[name] if away[n] < away[name] and (n not in hosts or n == host.name)}
            taken = walker.next_nodes(name, address)
            assert sorted(taken) == sorted(nearer)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("policy", ["ecmp", "least-loaded"])
def test_packets_take_all_shortest_paths_and_no_other(shape: str, policy: str) -> None:
    topology = parse_topology(shape)
    check_all_shortest_paths(topology, service(topology, policy=policy).base())


@given(random_networks(), st.sampled_from(POLICIES))
@settings(max_examples=examples(30), deadline=None)
def test_on_random_networks_too(topology: Topology, policy: str) -> None:
    check_all_shortest_paths(topology, service(topology, policy=policy).base())


def test_addresses_of_nobody_have_no_route() -> None:
    topology = parse_topology("fat-tree:4")
    walker = Walker(topology, service(topology).base())
    for switch in topology.switches:
        assert walker.next_nodes(switch.name, int(IPv4Address("10.0.2.2"))) == []
        assert walker.next_nodes(switch.name, int(IPv4Address("11.0.0.2"))) == []


def test_links_that_go_down_are_left_out_and_come_back() -> None:
    topology = parse_topology("fat-tree:4")
    made = service(topology)
    before = made.base()
    down = {link_name(topology.link("e1", "a1")), link_name(topology.link("a3", "c1"))}
    left = remaining_network(topology, down)
    made.reroute(left, shortest_routes(left))
    check_all_shortest_paths(left, made.base())
    made.reroute(topology, shortest_routes(topology))
    assert made.base() == before


@pytest.mark.thorough
def test_a_thousand_hosts_need_few_entries_each() -> None:
    topology = parse_topology("fat-tree:16")
    assert len(topology.hosts) == 1024
    plan = service(topology).base()
    entries = {name: len(switch.entries) for name, switch in plan.switches.items()}
    # 8 hosts, 3 prefixes of the own pod, 15 pods, 8 next hops; 8 edges of the pod, 15 pods, 8 next hops.
    assert {entries[s.name] for s in topology.switches if s.tier == "edge"} == {8 + 3 + 15 + 8}
    assert {entries[s.name] for s in topology.switches if s.tier == "aggregation"} == {8 + 15 + 8}
    assert {entries[s.name] for s in topology.switches if s.tier == "core"} == {16}
    walker = Walker(topology, plan)
    for source, target in (("e1", "h1024"), ("e1", "h9"), ("a20", "h513"), ("c64", "h640")):
        away = distances(topology, target)
        nearer = {n for n in neighbours(topology)[source] if away.get(n, 99) < away[source]}
        assert set(walker.next_nodes(source, int(IPv4Address(topology.host(target).ip)))) == nearer


@pytest.mark.parametrize("policy", POLICIES)
def test_plans_name_what_the_program_has_and_fit_into_its_tables(policy: str) -> None:
    program = compile_p4(P4_SOURCES / "training.p4").json
    ingress, egress = program["pipelines"]
    tables = {table["name"].split(".")[-1]: table for table in (*ingress["tables"], *egress["tables"])}
    actions = {
        action["name"].split(".")[-1]: {data["name"]: 2 ** data["bitwidth"] for data in action["runtime_data"]}
        for action in program["actions"]
    }
    topology = parse_topology("leaf-spine:3,20,2")
    marking = Marking(k_min=10, k_max=40, p_max=0.5)
    made = service(topology, policy=policy, marking=marking)
    job = TrainingJobRequest(hosts=("h1", "h2", "h5"), groups=(GroupRequest(root="h1", members=("h2", "h5")),))
    plan = made.base().merged(made.plan(3, made.admit(3, job, {})))
    for switch in plan.switches.values():
        held = {entry.table for entry in switch.entries}
        assert all(sum(e.table == name for e in switch.entries) <= tables[name]["max_size"] for name in held)
        for entry in switch.entries:
            assert entry.action in {name.split(".")[-1] for name in tables[entry.table]["actions"]}
            assert entry.params.keys() == actions[entry.action].keys()
            assert all(value < actions[entry.action][name] for name, value in entry.params.items())


def test_every_switch_hashes_in_its_own_way_and_by_the_seed() -> None:
    topology = parse_topology("fat-tree:4")

    def seeds(seed: int) -> dict[str, set[int]]:
        plan = service(topology, seed=seed).base()
        return {
            name: {entry.params["seed"] for entry in switch.entries if "seed" in entry.params}
            for name, switch in plan.switches.items()
        }

    one, other = seeds(1), seeds(2)
    assert all(len(found) == (0 if name.startswith("c") else 1) for name, found in one.items())
    used = [seed for found in one.values() for seed in found]
    assert len(set(used)) == len(used) == 16
    assert not set(used) & {seed for found in other.values() for seed in found}


def test_marks_by_a_threshold_by_chance_and_in_bytes() -> None:
    topology = parse_topology("star:2")

    def marks(**chosen: Any) -> list[tuple[str, dict[str, int]]]:
        entries = service(topology, marking=Marking(**chosen)).base()["s1"].entries
        found = [entry for entry in entries if entry.table == "congestion_thresholds"]
        assert [entry.match for entry in found] == [{"egress_port": 1}, {"egress_port": 2}]
        return [(entry.action, dict(entry.params)) for entry in found][:1]

    assert marks(k_min=20) == [("mark_above", {"threshold": 20})]
    assert marks(k_min=20, k_max=20) == [("mark_above", {"threshold": 20})]
    assert marks(k_min=10, k_max=50, p_max=0.25) == [
        ("mark_between", {"k_min": 10, "k_max": 50, "slope": 2**32 // 4 // 40})
    ]
    assert marks(k_min=10, k_max=11)[0][1]["slope"] == 2**32 - 1
    # 100,001 bytes are a bit more than 24 frames of 4,166.
    assert marks(k_min=100_001, k_max=400_000, frame_bytes=4166)[0][1]["k_min"] == 25
    assert service(topology).base()["s1"].entries == tuple(
        entry
        for entry in service(topology, marking=Marking(k_min=3)).base()["s1"].entries
        if entry.table != "congestion_thresholds"
    )
    with pytest.raises(ValueError, match="k_max is at least k_min"):
        Marking(k_min=3, k_max=2)


def test_groups_reach_their_members_alone() -> None:
    topology = parse_topology("fat-tree:4")
    made = service(topology)
    groups = (GroupRequest(root="h1", members=("h3", "h9", "h16")), GroupRequest(root="h9", members=("h1", "h16")))
    job = TrainingJobRequest(hosts=("h1", "h3", "h9", "h16"), groups=groups)
    answer, plan = made.answer(5, job), made.plan(5, made.admit(5, job, {}))
    assert [address.ip for address in answer.groups] == ["239.66.0.80", "239.66.0.81"]
    walker = PlanWalker(topology, plan)
    for group, address in zip(groups, answer.groups, strict=True):
        arrivals = walker.multicast(group.root, address.ip)
        assert sorted(arrival.node for arrival in arrivals) == sorted(group.members)


def test_switches_that_only_forward_hold_the_groups_alone() -> None:
    topology = parse_topology("fat-tree:4")
    made = service(topology, marking=Marking(k_min=5))
    job = TrainingJobRequest(hosts=("h1", "h3"), groups=(GroupRequest(root="h1", members=("h3",)),))
    assert {made.plain("e1", entry) for entry in made.base()["e1"].entries} == {None}
    entries = [entry for switch in made.plan(1, job).switches.values() for entry in switch.entries]
    assert entries and [made.plain("e1", entry) for entry in entries] == entries


@pytest.mark.parametrize(
    ("job", "words"),
    [
        ({"hosts": ["h1", "h1"]}, "two ranks on one host: h1"),
        ({"hosts": ["h99"]}, "no host 'h99'"),
        ({"hosts": ["h1", "h2"], "groups": [{"root": "h1", "members": ["h3"]}]}, "not of h3"),
        ({"hosts": ["h1", "h2"], "groups": [{"root": "h1", "members": ["h2", "h2"]}]}, "names a member twice"),
        ({"hosts": ["h1", "h2"], "groups": [{"root": "h1", "members": ["h1", "h2"]}]}, "both root and member"),
    ],
)
def test_a_job_that_makes_no_sense_is_refused(job: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError, match=words):
        service(parse_topology("fat-tree:4")).admit(1, TrainingJobRequest.model_validate(job), {})


def test_more_ways_than_can_be_chosen_from_are_refused() -> None:
    middles = range(2, 258)
    topology = network([(end, middle) for middle in middles for end in (0, 1)], [1, 1] + [0] * len(middles))
    with pytest.raises(UserError, match="s1 has 256 equally short ways, it can choose among 255"):
        service(topology).base()


def test_each_pair_of_hosts_is_joined() -> None:
    """A packet that takes any way at each switch arrives."""
    topology = parse_topology("dragonfly:3,4,2")
    walker = Walker(topology, service(topology, policy="round-robin-spraying").base())
    for source, target in permutations([host.name for host in topology.hosts], 2):
        node, hops = topology.attachment(source).name, 0
        while node != target:
            node = walker.next_nodes(node, int(IPv4Address(topology.host(target).ip)))[-1]
            hops += 1
            assert hops < 10
