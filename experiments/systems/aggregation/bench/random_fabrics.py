"""Small random networks for comparing planning methods on instances that nobody chose."""

from __future__ import annotations

import random

from gradbed.topo.addressing import make_host, make_switch
from gradbed.topo.graph import Endpoint, Host, Link, Topology
from gradbed.topo.link import LinkModel

LINK_RATES_BPS = (10_000_000, 20_000_000, 40_000_000)


def random_fabric(seed: int, switches: int = 7, extra_links: int = 3, hosts: int = 8) -> Topology:
    """A random tree of switches s1.. with some more links, hosts h1.. on random switches, and random rates.

    The same for the same arguments, everywhere.
    """
    draw = random.Random(seed)
    nodes = [make_switch(f"s{index + 1}", index + 1, "hub") for index in range(switches)]
    pairs = {(draw.randrange(index), index) for index in range(1, switches)}
    absent = [(a, b) for b in range(switches) for a in range(b) if (a, b) not in pairs]
    pairs |= set(draw.sample(absent, min(extra_links, len(absent))))
    ports = dict.fromkeys(range(switches), 0)

    def end(index: int) -> Endpoint:
        ports[index] += 1
        return Endpoint(node=nodes[index].name, port=ports[index])

    def model() -> LinkModel:
        return LinkModel(rate_bps=draw.choice(LINK_RATES_BPS))

    attached: list[Host] = []
    links = []
    for index in range(hosts):
        place = draw.randrange(switches)
        attached.append(make_host(f"h{index + 1}", f"10.0.{place}", index, nodes[place]))
        links.append(Link(a=Endpoint(node=attached[-1].name, port=0), b=end(place), model=model()))
    links += [Link(a=end(a), b=end(b), model=model()) for a, b in sorted(pairs)]
    return Topology(name=f"random:{seed}", hosts=tuple(attached), switches=tuple(nodes), links=tuple(links))
