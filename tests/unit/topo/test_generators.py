"""Fat-tree, leaf-spine, star and BCube: sizes, wiring, addresses, limits."""

import math
from collections import Counter
from ipaddress import IPv4Address, IPv4Interface
from itertools import combinations

import networkx
import pytest

from gradbed.common.errors import UserError
from gradbed.topo.generators import GENERATORS, bcube, dragonfly, fat_tree, leaf_spine, star, torus
from gradbed.topo.graph import Topology, is_hop
from gradbed.topo.link import LinkModel
from gradbed.topo.optical_electrical import optical_electrical
from gradbed.topo.registry import parse_topology, usage


def _tier(topology: Topology, tier: str) -> list[str]:
    return [switch.name for switch in topology.switches if switch.tier == tier]


@pytest.mark.parametrize("k", [2, 4, 6, 8, 16])
def test_fat_tree_sizes(k: int) -> None:
    topology = fat_tree(k)
    half = k // 2
    assert len(topology.hosts) == k**3 // 4
    assert len(topology.switches) == 5 * k**2 // 4
    assert Counter(switch.tier for switch in topology.switches) == {
        "core": half * half,
        "aggregation": k * half,
        "edge": k * half,
    }
    assert len(topology.links) == 3 * k**3 // 4
    assert {topology.graph.degree[switch.name] for switch in topology.switches} == {k}
    assert networkx.is_connected(topology.graph)


@pytest.mark.parametrize("k", [2, 4, 6])
def test_fat_tree_distances_and_equal_cost_paths(k: int) -> None:
    """Al-Fares et al.: (k/2)^2 shortest paths between pods, k/2 inside one, one below the same edge switch."""
    topology = fat_tree(k)
    assert networkx.diameter(topology.graph) == 6
    for a, b in combinations(topology.hosts, 2):
        pod_a, edge_a = a.ip.split(".")[1:3]
        pod_b, edge_b = b.ip.split(".")[1:3]
        paths = list(networkx.all_shortest_paths(topology.graph, a.name, b.name))
        if pod_a != pod_b:
            expected = (k // 2) ** 2, 7
        elif edge_a != edge_b:
            expected = k // 2, 5
        else:
            expected = 1, 3
        assert (len(paths), len(paths[0])) == expected


@pytest.mark.parametrize("k", [4, 6])
def test_fat_tree_wiring_and_ports(k: int) -> None:
    topology = fat_tree(k)
    half = k // 2
    cores, aggregations, edges = (_tier(topology, tier) for tier in ("core", "aggregation", "edge"))
    for pod in range(k):
        for e in range(half):
            edge = edges[pod * half + e]
            hosts = [f"h{(pod * half + e) * half + x + 1}" for x in range(half)]
            uplinks = aggregations[pod * half : (pod + 1) * half]
            assert topology.neighbours(edge) == {n: i for i, n in enumerate([*hosts, *uplinks], start=1)}
            for x, host in enumerate(hosts):
                assert topology.host(host).ip == f"10.{pod}.{e}.{x + 2}"
                assert topology.host(host).gateway_ip == f"10.{pod}.{e}.1"
        for j in range(half):
            aggregation = aggregations[pod * half + j]
            below, above = edges[pod * half : (pod + 1) * half], cores[j * half : (j + 1) * half]
            assert topology.neighbours(aggregation) == {n: i for i, n in enumerate([*below, *above], start=1)}
    for i, core in enumerate(cores):
        j = i // half
        assert topology.neighbours(core) == {aggregations[pod * half + j]: pod + 1 for pod in range(k)}


@pytest.mark.parametrize(
    "topology",
    [
        fat_tree(16),
        leaf_spine(20, 3, 100),
        star(250),
        bcube(8, 2),
        dragonfly(9, 4, 2),
        torus(8, 8, 8),
        optical_electrical(7),
    ],
    ids=lambda topology: topology.name,
)
def test_addresses_numbers_and_macs(topology: Topology) -> None:
    """Uniqueness is the model's own check; here that the addresses are ones that a host can have."""
    assert [switch.number for switch in topology.switches] == list(range(1, len(topology.switches) + 1))
    assert [host.name for host in topology.hosts] == [f"h{i + 1}" for i in range(len(topology.hosts))]
    subnet_of = {}
    for host in topology.hosts:
        network = IPv4Interface(f"{host.ip}/{host.prefix_bits}").network
        assert IPv4Address(host.ip) not in (network.network_address, network.broadcast_address)
        assert IPv4Address(host.gateway_ip) in network
        assert host.ip != host.gateway_ip
        subnet_of.setdefault(topology.attachment(host.name).name, set()).add(network)
    subnets = [networks.pop() for networks in subnet_of.values()]
    assert not any(subnet_of.values()), "hosts of one switch share a subnet"
    assert len(set(subnets)) == len(subnets), "hosts of different switches do not"
    for node in (*topology.hosts, *topology.switches):
        first_byte = int(node.mac[:2], 16)
        assert first_byte & 0x02, "locally administered"
        assert not first_byte & 0x01, "unicast"


def test_leaf_spine() -> None:
    topology = leaf_spine(4, 3, 2)
    assert (len(topology.hosts), len(topology.switches), len(topology.links)) == (8, 7, 8 + 12)
    assert topology.neighbours("l2") == {"h3": 1, "h4": 2, "s1": 3, "s2": 4, "s3": 5}
    assert topology.neighbours("s3") == {"l1": 1, "l2": 2, "l3": 3, "l4": 4}
    assert topology.host("h4").ip == "10.0.1.3"
    assert networkx.diameter(topology.graph) == 4
    assert len(list(networkx.all_shortest_paths(topology.graph, "h1", "h8"))) == 3


def test_star() -> None:
    topology = star(9)
    assert (len(topology.hosts), len(topology.switches), len(topology.links)) == (9, 1, 9)
    assert topology.neighbours("s1") == {f"h{i}": i for i in range(1, 10)}
    assert topology.switch("s1").tier == "hub"


def digits(number: int, base: int, count: int) -> list[int]:
    return [number // base**place % base for place in range(count)]


@pytest.mark.parametrize(("n", "k"), [(2, 0), (4, 1), (3, 2)])
def test_bcube_joins_servers_that_differ_in_one_digit(n: int, k: int) -> None:
    """Guo et al., section 3.1; the links inside servers are as good as none."""
    topology = bcube(n, k, LinkModel(rate_bps=1_000_000, loss=0.1))
    servers = n ** (k + 1)
    assert (len(topology.hosts), len(topology.switches)) == (servers, servers + (k + 1) * n**k)
    assert len(topology.links) == servers * (k + 2)
    joined = set()
    for level in range(k + 1):
        for switch in _tier(topology, f"level-{level}"):
            members = [int(relay[1:]) - 1 for relay in topology.neighbours(switch)]
            assert [digits(member, n, k + 1)[level] for member in members] == list(range(n))
            assert len({tuple(d for i, d in enumerate(digits(m, n, k + 1)) if i != level) for m in members}) == 1
            assert [topology.port(f"r{member + 1}", switch) for member in members] == [2 + level] * n
            joined |= set(combinations(members, 2))
    for a, b in combinations(range(servers), 2):
        distance = sum(x != y for x, y in zip(digits(a, n, k + 1), digits(b, n, k + 1), strict=True))
        assert ((a, b) in joined) == (distance == 1)
        paths = list(networkx.all_shortest_paths(topology.graph, f"r{a + 1}", f"r{b + 1}"))
        assert (len(paths), len(paths[0]) - 1) == (math.factorial(distance), 2 * distance)
    inside = [link for link in topology.links if not is_hop(topology, link)]
    assert {(link.a.node, link.b.node) for link in inside} == {(f"h{i + 1}", f"r{i + 1}") for i in range(servers)}
    assert {link.model for link in inside} == {LinkModel()}
    assert {link.model for link in topology.links if link not in inside} == {LinkModel(rate_bps=1_000_000, loss=0.1)}


def test_every_link_of_other_topologies_is_a_hop() -> None:
    for topology in (fat_tree(4), leaf_spine(2, 2, 2), star(3)):
        assert all(is_hop(topology, link) for link in topology.links)


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: bcube(1, 1), "2 to 509 ports and k from 0 to 15, got n=1, k=1"),
        (lambda: bcube(4, -1), "got n=4, k=-1"),
        (lambda: bcube(2, 10**9), "k from 0 to 15"),
        (lambda: bcube(16, 3), "has 65536 servers"),
        (lambda: fat_tree(3), "a fat-tree needs an even k >= 2, got 3"),
        (lambda: fat_tree(0), "an even k >= 2, got 0"),
        (lambda: fat_tree(-4), "an even k >= 2, got -4"),
        (lambda: fat_tree(230), "k is at most 228, got 230"),
        (lambda: leaf_spine(0, 1, 1), "1 to 250 leaves, got 0"),
        (lambda: leaf_spine(1, -1, 1), "1 to 250 spines, got -1"),
        (lambda: leaf_spine(1, 1, 251), "1 to 250 hosts per leaf, got 251"),
        (lambda: star(0), "1 to 250 hosts, got 0"),
        (lambda: star(251), "1 to 250 hosts, got 251"),
        (lambda: star(2, LinkModel(rate_bps=0)), "link rate must be positive"),
        (lambda: star(2, LinkModel(delay_us=-1)), "must not be negative"),
        (lambda: fat_tree(2, LinkModel(loss=1.0)), "probability"),
        (lambda: leaf_spine(1, 1, 1, LinkModel(queue_packets=0)), "at least one packet"),
    ],
)
def test_impossible_sizes_and_models(build, words: str) -> None:
    with pytest.raises(UserError, match=words) as caught:
        build()
    assert "\n" not in str(caught.value)


def test_the_largest_fat_tree_has_numbers_of_16_bits() -> None:
    assert 5 * 228**2 // 4 <= 65535 < 5 * 230**2 // 4


def test_link_fields_reach_every_link() -> None:
    model = LinkModel(rate_bps=10_000_000, delay_us=50, loss=0.02, duplicate=0.01, queue_packets=64)
    for text in (
        "fat-tree:4",
        "leaf-spine:4,2,2",
        "star:9",
        "dragonfly:4,2,1",
        "torus:3,3,2",
        "optical-electrical:2",
    ):
        topology = parse_topology(text, model)
        assert topology.name == text
        assert {link.model for link in topology.links} == {model}


@pytest.mark.parametrize(
    "text",
    [
        "ring:3",
        "",
        "fat-tree",
        "fat-tree:",
        "fat-tree:x",
        "fat-tree:4,4",
        "fat-tree:4.0",
        "leaf-spine:4,2",
        "star:1:2",
    ],
)
def test_unknown_words_name_the_known_ones(text: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_topology(text)
    word = text.partition(":")[0]
    shown = [word] if word in GENERATORS else GENERATORS
    assert all(usage(shape) in str(caught.value) for shape in shown)
    assert "\n" not in str(caught.value)


def test_spaces_around_a_topology_do_not_matter() -> None:
    assert parse_topology(" star:2\n") == star(2)
