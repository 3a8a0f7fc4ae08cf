"""200 flows to one host, over four paths."""

from __future__ import annotations

import random
from collections import Counter

from gradbed.experiments.exercises.bench import TCP, UDP, Bench, Refusal, ipv4, routed

PATHS, FLOWS, PACKETS = 4, 200, 3
HOST = "10.0.1.2"
Flow = tuple[str, int, tuple[int, int]]
"""Source address, protocol, ports."""


def port_of(bench: Bench, frame: bytes, flow: str) -> int:
    outputs = bench.send(1, frame)
    if len(outputs) != 1:
        raise Refusal(f"a packet of {flow} leaves once", "one packet", f"{len(outputs)} packets")
    return outputs[0][0]


def spread(bench: Bench, flows: dict[str, Flow], what: str) -> None:
    ports: Counter[int] = Counter()
    for name, (source, protocol, numbers) in flows.items():
        frames = [routed(ipv4(source, HOST, numbers, bytes(10 * n), protocol=protocol)) for n in range(PACKETS)]
        used = {port_of(bench, frame, name) for frame in frames}
        if len(used) > 1:
            raise Refusal(f"the packets of {name} take one path", "one port", f"ports {sorted(used)}")
        ports[used.pop()] += 1
    found = ", ".join(f"{ports[10 + n]} by port {10 + n}" for n in range(PATHS))
    low, high = len(flows) // PATHS // 2, 2 * len(flows) // PATHS
    if not all(low <= ports[10 + n] <= high for n in range(PATHS)):
        raise Refusal(f"{len(flows)} flows {what} are spread", f"{low} to {high} by each of four ports", found)


def check(bench: Bench) -> None:
    bench.do(f"add groups hdr.ipv4.dst_addr:0x0a000102/32 choose(group:9, choices:{PATHS})")
    for n in range(PATHS):
        bench.do(f"add paths meta.group:9 meta.choice:{n} forward(port:{10 + n}, dst_mac:0x020000000102)")
    draw = random.Random(1)
    ports = draw.sample(range(1024, 65536), FLOWS)
    addresses = [f"10.0.{draw.randrange(2, 200)}.{draw.randrange(2, 250)}" for _ in range(FLOWS)]
    by_address: dict[str, Flow] = {f"the flow from {each}": (each, UDP, (7000, 7011)) for each in addresses}
    spread(bench, by_address, "of different senders")
    by_source: dict[str, Flow] = {f"the flow from port {each}": ("10.0.0.2", UDP, (each, 7011)) for each in ports}
    spread(bench, by_source, "of one sender, from different UDP ports,")
    even = range(32768, 32768 + 2 * 64, 2)  # as Linux gives them to those who connect
    by_even: dict[str, Flow] = {f"the flow from port {each}": ("10.0.0.2", UDP, (each, 7011)) for each in even}
    spread(bench, by_even, "of one sender, from even UDP ports in a row,")
    by_target: dict[str, Flow] = {f"the flow to port {each}": ("10.0.0.2", TCP, (7000, each)) for each in ports}
    spread(bench, by_target, "of one sender, to different TCP ports,")
