"""BCube(n, k) of Guo et al., "BCube: A High Performance, Server-centric Network Architecture for Modular Data
Centers" (SIGCOMM 2009).

n^(k+1) servers of k+1 network cards, and k+1 levels of n^k switches of n ports. A server's address has k+1 digits to
the base n; a switch of level l joins the n servers whose addresses differ in digit l alone (digit 0 is the lowest).
Servers forward for each other. So a server is two nodes here: the host, and a small switch of its own (tier "relay")
which has the server's cards. The link between the two is inside the server: it has no rate, no delay and no loss, and
crossing it is no hop (gradbed.topo.hops). Ports:

    relay     1 to its host, 2+l to its switch of level l
    switch    1+d to the relay whose digit is d

Names count over the whole network: h1.. and their relays r1.. in the order of the addresses, switches s1.. level by
level, in the order of the addresses without digit l. Numbers: switches, then relays.
"""

from __future__ import annotations

from gradbed.common.errors import UserError
from gradbed.topo.addressing import make_host, make_switch
from gradbed.topo.graph import MAX_SWITCH_NUMBER, Endpoint, Link, Topology
from gradbed.topo.hops import RELAY
from gradbed.topo.link import UNLIMITED, LinkModel

MAX_PORTS = 509
"""Keeps port numbers below v1model's special ones."""


def bcube(n: int, k: int, model: LinkModel = UNLIMITED) -> Topology:
    """BCube(n, k); `model`: of every link but those inside servers. UserError for sizes that cannot be
    built."""
    if not 2 <= n <= MAX_PORTS or not 0 <= k < 16:
        raise UserError(f"a BCube has switches of 2 to {MAX_PORTS} ports and k from 0 to 15, got n={n}, k={k}")
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
