"""500 flows from inside: all of their answers come in, and of 2,000 strangers hardly any."""

from __future__ import annotations

import random

from gradbed.experiments.exercises.bench import TCP, UDP, Bench, Refusal, ipv4, routed

FLOWS, STRANGERS = 500, 2000
MOST = 80
"""Of the strangers. Two hashes let (500 / 4096)^2 in: about 28; one lets in about 230."""
Flow = tuple[str, str, int, int, int]
"""Near and far address, near and far port, protocol."""


def flow(draw: random.Random) -> Flow:
    near, far = f"10.0.0.{draw.randrange(2, 250)}", f"10.1.{draw.randrange(250)}.{draw.randrange(2, 250)}"
    return near, far, draw.randrange(1024, 65536), draw.randrange(1, 65536), draw.choice((TCP, UDP))


def goes(bench: Bench, each: Flow, inwards: bool) -> bool:
    near, far, near_port, far_port, protocol = each
    if inwards:
        packet = ipv4(far, near, (far_port, near_port), protocol=protocol)
    else:
        packet = ipv4(near, far, (near_port, far_port), protocol=protocol)
    return bool(bench.send(2 if inwards else 1, routed(packet), 10))


def check(bench: Bench) -> None:
    bench.do("add routes hdr.ipv4.dst_addr:0x0a000000/24 forward(port:1, dst_mac:0x020000000002)")
    bench.do("add routes hdr.ipv4.dst_addr:0x0a010000/16 forward(port:2, dst_mac:0x020000000102)")
    bench.do("add inside std.ingress_port:1 NoAction()")
    draw = random.Random(1)
    flows = [flow(draw) for _ in range(FLOWS)]
    for each in flows:
        if not goes(bench, each, inwards=False):
            raise Refusal("packets from inside are forwarded, however many flows there are", "one packet", "none")
    for each in flows:
        if not goes(bench, each, inwards=True):
            raise Refusal(f"the answers to all of {FLOWS} flows come in", "one packet", "none")
    strangers = [flow(draw) for _ in range(STRANGERS)]
    came_in = sum(goes(bench, each, inwards=True) for each in strangers)
    if came_in > MOST:
        raise Refusal(
            f"after {FLOWS} flows, hardly any of {STRANGERS} strangers come in: are both bits looked at, and do the "
            "hashes differ?",
            f"at most {MOST}",
            f"{came_in}",
        )
