"""Topology generators: star, leaf-spine, fat-tree, dragonfly, torus and BCube by their sizes.

A generator takes whole numbers and, last, the model of every link. `topology_generator` registers it under the word
before the colon of "fat-tree:4": command line, experiment files and messages take it from there (topo/registry.py).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from itertools import combinations, product
from typing import TypeVar

from gradbed.common.errors import UserError
from gradbed.topo.addressing import MAX_HOSTS_PER_SWITCH, make_host, make_switch
from gradbed.topo.graph import MAX_SWITCH_NUMBER, RELAY, Endpoint, Host, Link, Topology
from gradbed.topo.link import UNLIMITED, LinkModel

Generator = TypeVar("Generator", bound=Callable[..., Topology])

GENERATORS: dict[str, Callable[..., Topology]] = {}
"""Topology generators by the word before the colon, in the order in which they are registered."""


def topology_generator(word: str) -> Callable[[Generator], Generator]:
    """Register a generator under a word, so that `WORD:SIZES` names its topologies."""

    def register(generator: Generator) -> Generator:
        GENERATORS[word] = generator
        return generator

    return register


# ---- Star ----
#
# One switch (s1) with all hosts on it: h1 on port 1, h2 on port 2, and so on, in 10.0.0.0/24.


@topology_generator("star")
def star(hosts: int, model: LinkModel = UNLIMITED) -> Topology:
    """Return the star of that many hosts, with `model` for every link.

    Raises:
        UserError: There cannot be so many.
    """
    if not 1 <= hosts <= MAX_HOSTS_PER_SWITCH:
        raise UserError(f"a star has 1 to {MAX_HOSTS_PER_SWITCH} hosts, got {hosts}")
    hub = make_switch("s1", 1, "hub")
    members = tuple(make_host(f"h{i + 1}", "10.0.0", i, hub) for i in range(hosts))
    links = tuple(
        Link(a=Endpoint(node=host.name, port=0), b=Endpoint(node=hub.name, port=port), model=model)
        for port, host in enumerate(members, start=1)
    )
    return Topology(name=f"star:{hosts}", hosts=members, switches=(hub,), links=links)


# ---- Leaf-spine ----
#
# A two-tier Clos network: every leaf is linked to every spine, hosts hang on leaves.
#
# Ports: a leaf's 1..n lead to its n hosts and n+1.. to the spines in order; spine port i+1 leads to leaf i.
# Names: spines s1.., leaves l1.., hosts h1..; numbers count the spines first. Leaf i (from 0) has 10.0.i.0/24.


MAX_SWITCHES_PER_TIER = 250
"""Keeps every port number below v1model's special ones (510 and 511)."""


@topology_generator("leaf-spine")
def leaf_spine(leaves: int, spines: int, hosts_per_leaf: int, model: LinkModel = UNLIMITED) -> Topology:
    """Return the leaf-spine network of these sizes, with `model` for every link.

    Raises:
        UserError: It cannot be built in these sizes.
    """
    for what, count, limit in (
        ("leaves", leaves, MAX_SWITCHES_PER_TIER),
        ("spines", spines, MAX_SWITCHES_PER_TIER),
        ("hosts per leaf", hosts_per_leaf, MAX_HOSTS_PER_SWITCH),
    ):
        if not 1 <= count <= limit:
            raise UserError(f"a leaf-spine network has 1 to {limit} {what}, got {count}")
    spine_switches = [make_switch(f"s{i + 1}", i + 1, "spine") for i in range(spines)]
    leaf_switches = [make_switch(f"l{i + 1}", spines + i + 1, "leaf") for i in range(leaves)]
    hosts: list[Host] = []
    links: list[Link] = []

    def connect(a: str, a_port: int, b: str, b_port: int) -> None:
        links.append(Link(a=Endpoint(node=a, port=a_port), b=Endpoint(node=b, port=b_port), model=model))

    for i, leaf in enumerate(leaf_switches):
        for x in range(hosts_per_leaf):
            host = make_host(f"h{len(hosts) + 1}", f"10.0.{i}", x, leaf)
            hosts.append(host)
            connect(host.name, 0, leaf.name, 1 + x)
        for j, spine in enumerate(spine_switches):
            connect(leaf.name, 1 + hosts_per_leaf + j, spine.name, 1 + i)
    return Topology(
        name=f"leaf-spine:{leaves},{spines},{hosts_per_leaf}",
        hosts=tuple(hosts),
        switches=(*spine_switches, *leaf_switches),
        links=tuple(links),
    )


# ---- Fat-tree ----
#
# The k-ary fat-tree of Al-Fares, Loukissas and Vahdat, "A Scalable, Commodity Data Center Network Architecture"
# (SIGCOMM 2008).
#
# k pods of k/2 edge and k/2 aggregation switches, (k/2)^2 core switches, k^3/4 hosts. Host x of edge switch e in pod
# p has address 10.p.e.x, x from 2. Ports, with half = k/2:
#
#     edge          1..half down to its hosts, half+1..k up to the aggregation switches of its pod
#     aggregation   1..half down to the edge switches of its pod, half+1..k up to its group of core switches
#     core          port p+1 down to pod p; core switches j*half..j*half+half-1 hang on aggregation switch j of each
# pod
#
# Names count over the whole network (c1.., a1.., e1.., h1..); so do the numbers: core, then aggregation, then edge.


@topology_generator("fat-tree")
def fat_tree(k: int, model: LinkModel = UNLIMITED) -> Topology:
    """Return the fat-tree of k-port switches, with `model` for every link.

    Raises:
        UserError: There is no such fat-tree.
    """
    if k < 2 or k % 2:
        raise UserError(f"a fat-tree needs an even k >= 2, got {k}")
    if 5 * k * k // 4 > MAX_SWITCH_NUMBER:
        raise UserError(f"a fat-tree's switches are numbered with 16 bits, so k is at most 228, got {k}")
    half = k // 2
    cores = [make_switch(f"c{i + 1}", i + 1, "core") for i in range(half * half)]
    aggregations = [make_switch(f"a{i + 1}", len(cores) + i + 1, "aggregation") for i in range(k * half)]
    edges = [make_switch(f"e{i + 1}", len(cores) + len(aggregations) + i + 1, "edge") for i in range(k * half)]
    hosts: list[Host] = []
    links: list[Link] = []

    def connect(a: str, a_port: int, b: str, b_port: int) -> None:
        links.append(Link(a=Endpoint(node=a, port=a_port), b=Endpoint(node=b, port=b_port), model=model))

    for pod in range(k):
        for e in range(half):
            edge = edges[pod * half + e]
            for x in range(half):
                host = make_host(f"h{len(hosts) + 1}", f"10.{pod}.{e}", x, edge)
                hosts.append(host)
                connect(host.name, 0, edge.name, 1 + x)
            for j in range(half):
                connect(edge.name, 1 + half + j, aggregations[pod * half + j].name, 1 + e)
        for j in range(half):
            for i in range(half):
                connect(aggregations[pod * half + j].name, 1 + half + i, cores[j * half + i].name, 1 + pod)
    return Topology(
        name=f"fat-tree:{k}",
        hosts=tuple(hosts),
        switches=(*cores, *aggregations, *edges),
        links=tuple(links),
    )


# ---- Dragonfly ----
#
# The dragonfly of Kim, Dally, Scott and Abts, "Technology-Driven, Highly-Scalable Dragonfly Topology" (ISCA 2008):
# groups of routers; the routers of a group are linked to each other, and every two groups by one global link.
#
# Global link k of group g, 0 <= k < GROUPS-1, leads to group (g + 1 + k) mod GROUPS and hangs on the group's router
# k // ceil((GROUPS-1) / ROUTERS): the routers of a group have equally many, but for the last. Ports:
#
#     1..HOSTS hosts; then the other routers of the group in order; then its global links in order
#
# Names: routers r0_0, r0_1, .. (group, router); hosts h1... Router r of group g has 10.g.r.0/24.


MAX_GROUPS = 250
"""Group and router number are a byte of an address each."""


@topology_generator("dragonfly")
def dragonfly(groups: int, routers: int, hosts_per_router: int, model: LinkModel = UNLIMITED) -> Topology:
    """Return the dragonfly of so many groups, routers in each group and hosts at each router.

    Raises:
        UserError: It cannot be built in these sizes.
    """
    for what, count, limit in (
        ("groups", groups, MAX_GROUPS),
        ("routers in a group", routers, MAX_GROUPS),
        ("hosts per router", hosts_per_router, MAX_HOSTS_PER_SWITCH),
    ):
        if not 1 <= count <= limit:
            raise UserError(f"a dragonfly has 1 to {limit} {what}, got {count}")
    if groups * routers > 65535:
        raise UserError(f"a dragonfly's routers are numbered with 16 bits, {groups * routers} are too many")
    switches = {
        place: make_switch(f"r{place[0]}_{place[1]}", number, "router")
        for number, place in enumerate(product(range(groups), range(routers)), start=1)
    }
    members: list[Host] = []
    links: list[Link] = []
    used: defaultdict[str, int] = defaultdict(int)

    def end(node: str) -> Endpoint:
        used[node] += 1
        return Endpoint(node=node, port=used[node])

    for (g, r), switch in switches.items():
        for x in range(hosts_per_router):
            members.append(make_host(f"h{len(members) + 1}", f"10.{g}.{r}", x, switch))
            links.append(Link(a=Endpoint(node=members[-1].name, port=0), b=end(switch.name), model=model))
    for g in range(groups):
        for a, b in combinations(range(routers), 2):
            links.append(Link(a=end(switches[g, a].name), b=end(switches[g, b].name), model=model))
    share = -(-(groups - 1) // routers)
    # By their place at the first of both groups, so that every router's come in order.
    for g, k in product(range(groups), range(groups - 1)):
        other = (g + 1 + k) % groups
        if g < other:
            ends = switches[g, k // share].name, switches[other, (groups - 2 - k) // share].name
            links.append(Link(a=end(ends[0]), b=end(ends[1]), model=model))
    return Topology(
        name=f"dragonfly:{groups},{routers},{hosts_per_router}",
        hosts=tuple(members),
        switches=tuple(switches.values()),
        links=tuple(links),
    )


# ---- Torus ----
#
# A three-dimensional torus: a switch with one host at every place, linked to the next one in each dimension, and the
# last to the first (Dally and Towles, "Principles and Practices of Interconnection Networks", chapter 5).
#
# Ports: 1 the host; then, for x, y and z in turn, the links to the places beside it. In a dimension of two places
# these are one link, in a dimension of one there is none. Names: t0_0_0, t0_0_1, ..; hosts h1... The i-th switch has
# the i-th /24.


MAX_PLACES = 62_500
"""Each place has a subnet of its own: 10.0.0.0/24 to 10.249.249.0/24."""


@topology_generator("torus")
def torus(x: int, y: int, z: int, model: LinkModel = UNLIMITED) -> Topology:
    """Return the torus of these sizes, with `model` for every link.

    Raises:
        UserError: It cannot be built in these sizes.
    """
    sizes = (x, y, z)
    if min(sizes) < 1 or x * y * z > MAX_PLACES:
        raise UserError(f"a torus has at least one place in each dimension and at most {MAX_PLACES}, got {x},{y},{z}")
    places = list(product(*map(range, sizes)))
    switches = {
        place: make_switch(f"t{'_'.join(map(str, place))}", i + 1, "router") for i, place in enumerate(places)
    }
    hosts = [
        make_host(f"h{i + 1}", f"10.{i // 250}.{i % 250}", 0, switch) for i, switch in enumerate(switches.values())
    ]
    links = [
        Link(a=Endpoint(node=host.name, port=0), b=Endpoint(node=switch.name, port=1), model=model)
        for host, switch in zip(hosts, switches.values(), strict=True)
    ]
    used: defaultdict[str, int] = defaultdict(lambda: 1)

    def end(node: str) -> Endpoint:
        used[node] += 1
        return Endpoint(node=node, port=used[node])

    for dimension, size in enumerate(sizes):
        for place in places:
            following = (*place[:dimension], (place[dimension] + 1) % size, *place[dimension + 1 :])
            if size > 2 or place < following:
                links.append(Link(a=end(switches[place].name), b=end(switches[following].name), model=model))
    return Topology(
        name=f"torus:{x},{y},{z}", hosts=tuple(hosts), switches=tuple(switches.values()), links=tuple(links)
    )


# ---- BCube ----
#
# BCube(n, k) of Guo et al., "BCube: A High Performance, Server-centric Network Architecture for Modular Data
# Centers" (SIGCOMM 2009).
#
# n^(k+1) servers of k+1 NICs, and k+1 levels of n^k switches of n ports. A server's address has k+1 digits
# to the base n; a switch of level l joins the n servers whose addresses differ in digit l alone (digit 0 is the
# lowest). Servers forward for each other. So a server is two nodes here: the host, and a small switch of its own
# (tier "relay") which has the server's NICs. The link between the two is inside the server: it has no rate, no delay
# and no loss, and crossing it is no hop (gradbed.topo.graph). Ports:
#
#     relay     1 to its host, 2+l to its switch of level l
#     switch    1+d to the relay whose digit is d
#
# Names count over the whole network: h1.. and their relays r1.. in the order of the addresses, switches s1.. level by
# level, in the order of the addresses without digit l. Numbers: switches, then relays.


MAX_BCUBE_PORTS = 509
"""Keeps port numbers below v1model's special ones."""


@topology_generator("bcube")
def bcube(n: int, k: int, model: LinkModel = UNLIMITED) -> Topology:
    """Return BCube(n, k), with `model` for every link but those inside servers.

    Raises:
        UserError: It cannot be built in these sizes.
    """
    if not 2 <= n <= MAX_BCUBE_PORTS or not 0 <= k < 16:
        raise UserError(f"a BCube has switches of 2 to {MAX_BCUBE_PORTS} ports and k from 0 to 15, got n={n}, k={k}")
    servers, per_level = n ** (k + 1), n**k
    if servers + (k + 1) * per_level > MAX_SWITCH_NUMBER:
        raise UserError(f"BCube({n}, {k}) has {servers} servers, too many for switch numbers of 16 bits")
    switches = [make_switch(f"s{i + 1}", i + 1, f"level-{i // per_level}") for i in range((k + 1) * per_level)]
    relays = [make_switch(f"r{i + 1}", len(switches) + i + 1, RELAY) for i in range(servers)]
    hosts = [make_host(f"h{i + 1}", f"10.{i >> 8}.{i & 0xFF}", 0, relay) for i, relay in enumerate(relays)]
    links = [
        Link(a=Endpoint(node=host.name, port=0), b=Endpoint(node=relay.name, port=1))
        for host, relay in zip(hosts, relays, strict=True)
    ]
    for address, relay in enumerate(relays):
        for level in range(k + 1):
            above, digit = divmod(address // n**level, n)
            switch = switches[level * per_level + above * n**level + address % n**level]
            links.append(
                Link(
                    a=Endpoint(node=relay.name, port=2 + level),
                    b=Endpoint(node=switch.name, port=1 + digit),
                    model=model,
                )
            )
    return Topology(name=f"bcube:{n},{k}", hosts=tuple(hosts), switches=(*switches, *relays), links=tuple(links))
