"""A topology of one's own: `--topology circle:5`."""

from __future__ import annotations

from gradbed.plugin import UNLIMITED, Endpoint, Link, LinkModel, Topology, UserError, make_host, make_switch


def circle(switches: int, model: LinkModel = UNLIMITED) -> Topology:
    """Make a circle of switches with one host each. Ports: 1 the host, 2 the next switch, 3 the one before."""
    if not 3 <= switches <= 250:
        raise UserError(f"a circle has 3 to 250 switches, got {switches}")
    nodes = [make_switch(f"s{i + 1}", i + 1, "hub") for i in range(switches)]
    hosts = [make_host(f"h{i + 1}", f"10.0.{i}", 0, node) for i, node in enumerate(nodes)]
    cables = [
        *((host.name, 0, node.name, 1) for host, node in zip(hosts, nodes, strict=True)),
        *((node.name, 2, nodes[(i + 1) % switches].name, 3) for i, node in enumerate(nodes)),
    ]
    links = [
        Link(a=Endpoint(node=a, port=a_port), b=Endpoint(node=b, port=b_port), model=model)
        for a, a_port, b, b_port in cables
    ]
    return Topology(name=f"circle:{switches}", hosts=tuple(hosts), switches=tuple(nodes), links=tuple(links))
