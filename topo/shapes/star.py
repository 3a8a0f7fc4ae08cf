"""One switch (s1) with all hosts on it: h1 on port 1, h2 on port 2, and so on, in 10.0.0.0/24."""

from __future__ import annotations

from gradbed.common.errors import UserError
from gradbed.topo.addressing import MAX_HOSTS_PER_SWITCH, make_host, make_switch
from gradbed.topo.graph import Endpoint, Link, Topology
from gradbed.topo.link import UNLIMITED, LinkModel


def star(hosts: int, model: LinkModel = UNLIMITED) -> Topology:
    """The star of that many hosts; `model`: of every link. UserError if it cannot be."""
    if not 1 <= hosts <= MAX_HOSTS_PER_SWITCH:
        raise UserError(f"a star has 1 to {MAX_HOSTS_PER_SWITCH} hosts, got {hosts}")
    hub = make_switch("s1", 1, "hub")
    members = tuple(make_host(f"h{i + 1}", "10.0.0", i, hub) for i in range(hosts))
    links = tuple(
        Link(a=Endpoint(node=host.name, port=0), b=Endpoint(node=hub.name, port=port), model=model)
        for port, host in enumerate(members, start=1)
    )
    return Topology(name=f"star:{hosts}", hosts=members, switches=(hub,), links=links)
