"""The optical and electrical interconnect of Gu, Lu, Yu, Wang and Ren (Xidian University, Chinese patent application
201911117588.8, 2019): N units of N sub-units; a sub-unit is one hybrid switch M(x,y) with N hosts.

The hybrid switches of a unit are linked to each other (mesh). Optical switch A_i, 0 <= i < 2N, is linked to the N
hybrid switches M(x,y) with y = i mod N, one of each unit: so M(x,y) has two uplinks, to A_y and A_(y+N), its two
planes. N^3 hosts, N^2 hybrid switches, 2N optical switches; N^3 + N^2 (N-1)/2 + 2N^2 links. Ports:

    hybrid M(x,y)   1..N hosts; N+1..2N-1 the other hybrid switches of the unit, in order; 2N to A_y, 2N+1 to A_(y+N)
    optical A_i     x+1 to M(x, i mod N)

Names: hybrid m0_0, m0_1, ..; optical a0..; hosts h1... Numbers count the hybrid switches first. M(x,y) has
10.x.y.0/24.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations, product

from gradbed.common.errors import UserError
from gradbed.topo.addressing import MAX_HOSTS_PER_SWITCH, make_host, make_switch
from gradbed.topo.generators import topology_generator
from gradbed.topo.graph import Endpoint, Link, Topology
from gradbed.topo.link import UNLIMITED, LinkModel

KIND = "optical-electrical"
PLANES = 2
WAVELENGTH_BYTES = 4
"""Of light, more than of the packet: a VLAN tag."""
HYBRID, OPTICAL = "hybrid", "optical"


def hybrid_name(unit: int, sub_unit: int) -> str:
    """M(x,y)."""
    return f"m{unit}_{sub_unit}"


def optical_name(index: int) -> str:
    """A_i."""
    return f"a{index}"


def mesh_port(n: int, sub_unit: int, other: int) -> int:
    """Return the port of a hybrid switch to another one of its unit."""
    return n + 1 + other - (other > sub_unit)


def uplink_port(n: int, plane: int) -> int:
    """Return the port of a hybrid switch to the optical switch of one of its planes, 0 or 1."""
    return 2 * n + plane


@topology_generator(KIND)
def optical_electrical(n: int, model: LinkModel = UNLIMITED) -> Topology:
    """Return the network of N = n, with `model` for every link.

    Raises:
        UserError: It cannot be built with so many units.
    """
    if not 1 <= n <= MAX_HOSTS_PER_SWITCH:
        raise UserError(f"an optical and electrical network has 1 to {MAX_HOSTS_PER_SWITCH} units, got {n}")
    places = list(product(range(n), repeat=2))
    hybrids = {(x, y): make_switch(hybrid_name(x, y), 1 + x * n + y, HYBRID) for x, y in places}
    opticals = [make_switch(optical_name(i), 1 + n * n + i, OPTICAL) for i in range(PLANES * n)]
    hosts = [
        make_host(f"h{1 + (x * n + y) * n + z}", f"10.{x}.{y}", z, hybrid)
        for (x, y), hybrid in hybrids.items()
        for z in range(n)
    ]
    ends = [
        *(((host.name, 0), (hybrid_name(*places[i // n]), 1 + i % n)) for i, host in enumerate(hosts)),
        *(
            ((hybrid_name(x, y), mesh_port(n, y, other)), (hybrid_name(x, other), mesh_port(n, other, y)))
            for x in range(n)
            for y, other in combinations(range(n), 2)
        ),
        *(
            ((hybrid_name(x, y), uplink_port(n, plane)), (optical_name(y + n * plane), x + 1))
            for (x, y), plane in product(places, range(PLANES))
        ),
    ]
    return Topology(
        name=f"{KIND}:{n}",
        hosts=tuple(hosts),
        switches=(*hybrids.values(), *opticals),
        links=tuple(Link(a=_end(*a), b=_end(*b), model=model) for a, b in ends),
    )


def _end(node: str, port: int) -> Endpoint:
    return Endpoint(node=node, port=port)


def size_of(topology: Topology) -> int:
    """N of such a network, all links of which need not be there. UserError for any other."""
    kind, _, size = topology.name.partition(":")
    if kind != KIND:
        raise UserError(f"{topology.name} is not of the kind {KIND}:N")
    return int(size)


def place_of(switch: str) -> tuple[int, int]:
    """Return (unit, sub-unit) of a hybrid switch."""
    unit, sub_unit = switch.removeprefix("m").split("_")
    return int(unit), int(sub_unit)


def light_links(topology: Topology, plane: int | None = None) -> Iterable[tuple[str, str]]:
    """Yield the links (hybrid, optical) between hybrid and optical switches, of one plane or of both."""
    n = size_of(topology)
    for link in topology.switch_links:
        ends = link.a.node, link.b.node
        for hybrid, optical in (ends, ends[::-1]):
            if topology.switch(optical).tier == OPTICAL and plane in (None, int(optical[1:]) // n):
                yield hybrid, optical


def with_wavelengths(topology: Topology) -> Topology:
    """Return the network in which each wavelength of a fibre is a channel of its own, with the link's rate."""
    return topology.with_links(light_links(topology), channels=size_of(topology))


def with_circuits(topology: Topology, slot_us: int, guard_us: int) -> Topology:
    """Return the topology with circuit switching: one wavelength of a fibre can be sent at a time.

    In slot s it is wavelength W = 1 + s mod (N-1): light that arrives by fibre i leaves by fibre i + W, one
    permutation for the whole switch. In the guard time at the end of a slot the switch is reconfigured and no frame
    begins. The slots of the planes are shifted, so that circuits of a pair of units are spread more evenly in time.
    """
    n = size_of(topology)
    for plane in range(PLANES):
        first_turn = plane * ((n - 1) // PLANES)
        topology = topology.with_links(
            light_links(topology, plane), channels=n, turn_us=slot_us, guard_us=guard_us, first_turn=first_turn
        )
    return topology
