"""A three-dimensional torus: a switch with one host at every place, linked to the next one in each dimension, and the
last to the first (Dally and Towles, "Principles and Practices of Interconnection Networks", chapter 5).

Ports: 1 the host; then, for x, y and z in turn, the links to the places beside it. In a dimension of two places these
are one link, in a dimension of one there is none. Names: t0_0_0, t0_0_1, ..; hosts h1... The i-th switch has the i-th
/24.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import product

from gradbed.common.errors import UserError
from gradbed.topo.addressing import make_host, make_switch
from gradbed.topo.graph import Endpoint, Link, Topology
from gradbed.topo.link import UNLIMITED, LinkModel

MOST = 62_500
"""Places: 10.0.0.0/24 to 10.249.249.0/24."""


def torus(x: int, y: int, z: int, model: LinkModel = UNLIMITED) -> Topology:
    """The torus of these sizes; `model`: of every link. UserError for sizes that cannot be built."""
    sizes = (x, y, z)
    if min(sizes) < 1 or x * y * z > MOST:
        raise UserError(f"a torus has at least one place in each dimension and at most {MOST}, got {x},{y},{z}")
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
