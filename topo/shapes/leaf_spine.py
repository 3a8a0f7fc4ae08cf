"""A two-tier Clos network: every leaf is linked to every spine, hosts hang on leaves.

Ports: a leaf's 1..n lead to its n hosts and n+1.. to the spines in order; spine port i+1 leads to leaf i.
Names: spines s1.., leaves l1.., hosts h1..; numbers count the spines first. Leaf i (from 0) has 10.0.i.0/24.
"""

from __future__ import annotations

from gradbed.common.errors import UserError
from gradbed.topo.addressing import MAX_HOSTS_PER_SWITCH, make_host, make_switch
from gradbed.topo.graph import Endpoint, Host, Link, Topology
from gradbed.topo.link import UNLIMITED, LinkModel

MAX_SWITCHES_PER_TIER = 250
"""Keeps every port number below v1model's special ones (510 and 511)."""


def leaf_spine(leaves: int, spines: int, hosts_per_leaf: int, model: LinkModel = UNLIMITED) -> Topology:
    """The network; `model`: of every link. UserError for sizes that cannot be built."""
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
