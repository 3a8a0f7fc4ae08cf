"""A P4 program on a network of one's own, whose tables change while packets pass; on the virtual clock.

./gradbed python examples/python/live_tables.py
"""

from pathlib import Path

import networkx as nx
from scapy.layers.inet import IP, UDP

import gradbed as gb

HERE = Path(__file__).parent

ring = nx.cycle_graph(["north", "east", "south", "west"])
ring.add_nodes_from(["alice", "bob"], kind="host")
ring.add_edges_from([("alice", "north"), ("bob", "south")], delay_us=10)
topology = gb.from_networkx(ring, rate_mbps=100, delay_us=1000)

with gb.virtual(topology, gb.Program(HERE / "gate.p4", entries=HERE / "gate.yaml")) as net:
    alice, bob = net.hosts["alice"], net.hosts["bob"]
    to_bob = IP(dst=bob.ip) / UDP(dport=4242)

    def counts() -> dict[str, int]:
        """Packets that each switch has seen."""
        return {name: switch.counters["arrived"].total.packets for name, switch in net.switches.items()}

    def way() -> str:
        """The switches that a packet from alice to bob passes, and how long it takes."""
        before, begun_us = counts(), net.now_us
        alice.send(to_bob)
        arrived = bob.receive() is not None
        passed = sorted(name for name, count in counts().items() if count > before[name])
        return f"{', '.join(passed)}: {f'{net.now_us - begun_us} us' if arrived else 'lost'}"

    print("shortest way through", way())

    routes = net.switches["north"].tables["routes"]
    other = {"east": "west", "west": "east"}
    now = next(name for name in other if counts()[name])
    routes.modify({"dst_addr": bob.ip}, "forward", {"port": net.topology.port("north", other[now])})
    print("the other way through", way())

    net.link("north", other[now]).down()
    print("with that link cut, through", way())

    net.link("north", other[now]).up()
    net.switches["north"].tables["refused"].insert({"src_addr": alice.ip}, "drop", priority=1)
    print("with alice refused, through", way())
    print("last UDP port seen at south:", max(cell or 0 for cell in net.switches["south"].registers["last_udp_port"]))
