"""500 ports in a row from inside, and 2,000 strangers with the ports that follow: hardly any come in."""

from __future__ import annotations

from gradbed.experiments.exercises.bench import Bench, Refusal, ipv4, routed

INSIDE, OUTSIDE, FIRST_PORT, FAR_PORT = "10.0.0.2", "10.1.0.2", 32768, 443
FLOWS, STRANGERS = 500, 2000
MOST = 80
"""Of the strangers. Two random hashes let (500 / 4096)^2 in: about 28."""


def check(bench: Bench) -> None:
    bench.do("add routes hdr.ipv4.dst_addr:0x0a000000/24 forward(port:1, dst_mac:0x020000000002)")
    bench.do("add routes hdr.ipv4.dst_addr:0x0a010000/16 forward(port:2, dst_mac:0x020000000102)")
    bench.do("add inside std.ingress_port:1 NoAction()")
    for port in range(FIRST_PORT, FIRST_PORT + FLOWS):
        if not bench.send(1, routed(ipv4(INSIDE, OUTSIDE, (port, FAR_PORT))), 10):
            raise Refusal("packets from inside are forwarded, however many flows there are", "one packet", "none")
    strangers = range(FIRST_PORT + FLOWS, FIRST_PORT + FLOWS + STRANGERS)
    came_in = sum(bool(bench.send(2, routed(ipv4(OUTSIDE, INSIDE, (FAR_PORT, port))), 10)) for port in strangers)
    if came_in > MOST:
        raise Refusal(
            f"after flows from {FLOWS} ports in a row, hardly any of the {STRANGERS} ports that follow come in: are "
            "the hashes mixed, each with a seed of its own?",
            f"at most {MOST}",
            f"{came_in}",
        )
