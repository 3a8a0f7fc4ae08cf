"""Flows step by step, with the time that passes between their packets."""

from __future__ import annotations

from gradbed.experiments.exercises.bench import Bench, Refusal, ipv4, routed

PATHS = (3, 4)
PAUSE_US = 500


class Conversation:
    def __init__(self, bench: Bench) -> None:
        self.bench = bench

    def send(self, flow: int, size: int, about: str, path: int, passes_us: int = 50) -> None:
        """A packet of a flow, after which so much time passes. Refusal if it takes another path."""
        packet = ipv4("10.0.0.2", "10.0.1.2", (flow, 7011), bytes(size))
        outputs = self.bench.send(1, routed(packet), passes_us)
        ports = [port for port, _ in outputs]
        if ports != [PATHS[path]]:
            found = " and ".join(f"port {port}" for port in ports) or "no port"
            raise Refusal(about, f"path {path}, port {PATHS[path]}", found)


def check(bench: Bench) -> None:
    bench.do("add groups hdr.ipv4.dst_addr:0x0a000100/24 choose(group:1)")
    for path, port in enumerate(PATHS):
        bench.do(f"add paths meta.group:1 meta.path:{path} forward(port:{port}, dst_mac:0x020000000102)")
    bench.do("add routes hdr.ipv4.dst_addr:0x0a000000/24 forward(port:1, dst_mac:0x020000000002)")
    told = Conversation(bench)
    bench.send_together([], 1000)  # the switch's clock is not 0
    told.send(1000, 1000, "flow A begins, both paths are empty: path 0", 0)
    told.send(1000, 1000, "flow A goes on after 50 us: it stays, though path 1 is empty", 0)
    told.send(2000, 100, "flow B begins: path 1 has carried less", 1)
    told.send(3000, 100, "flow C begins: path 1 has still carried less", 1)
    told.send(1000, 1000, "flow A goes on after 150 us: it stays", 0, passes_us=450)
    for number in range(4):
        told.send(1000, 500, f"flow A goes on after 450 us, {number + 2} times in a row: it stays", 0, passes_us=450)
    told.send(1000, 100, "flow A goes on after 450 us: it stays", 0, passes_us=700)
    told.send(1000, 4000, "flow A paused for 700 us, and path 1 has carried less: it moves", 1)
    told.send(1000, 4000, "flow A goes on after 50 us: it stays on path 1, though path 0 has carried less", 1)
    told.send(4000, 1000, "flow D begins: path 0 has carried less", 0, passes_us=900)
    told.send(2000, 1000, "flow B paused, and path 0 has carried less: it moves", 0)
    if not bench.send(1, routed(ipv4("10.0.1.9", "10.0.0.2", (1, 2))), 50):
        raise Refusal("a packet for a host that has one path takes it", "port 1", "no port")
