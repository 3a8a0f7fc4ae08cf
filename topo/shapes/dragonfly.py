"""The dragonfly of Kim, Dally, Scott and Abts, "Technology-Driven, Highly-Scalable Dragonfly Topology" (ISCA 2008):
groups of routers; the routers of a group are linked to each other, and every two groups by one global link.

Global link k of group g, 0 <= k < GROUPS-1, leads to group (g + 1 + k) mod GROUPS and hangs on the group's router
k // ceil((GROUPS-1) / ROUTERS): the routers of a group have equally many, but for the last. Ports:

    1..HOSTS hosts; then the other routers of the group in order; then its global links in order

Names: routers r0_0, r0_1, .. (group, router); hosts h1... Router r of group g has 10.g.r.0/24.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations, product

from gradbed.common.errors import UserError
from gradbed.topo.addressing import MAX_HOSTS_PER_SWITCH, make_host, make_switch
from gradbed.topo.graph import Endpoint, Host, Link, Topology
from gradbed.topo.link import UNLIMITED, LinkModel

MOST = 250
"""Groups, and routers of a group: they are a byte of an address each."""


def dragonfly(groups: int, routers: int, hosts: int, model: LinkModel = UNLIMITED) -> Topology:
    """The network of so many groups, routers of a group and hosts of a router; `model`: of every link. UserError for
    sizes that cannot be built."""
    for what, count, limit in (
        ("groups", groups, MOST),
        ("routers in a group", routers, MOST),
        ("hosts per router", hosts, MAX_HOSTS_PER_SWITCH),
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
        for x in range(hosts):
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
        name=f"dragonfly:{groups},{routers},{hosts}",
        hosts=tuple(members),
        switches=tuple(switches.values()),
        links=tuple(links),
    )
