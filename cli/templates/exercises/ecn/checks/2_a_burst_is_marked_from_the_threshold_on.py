"""Forty packets at one moment, to a slow link."""

from __future__ import annotations

from gradbed.experiments.exercises.bench import TCP, Bench, LinkModel, Refusal, ipv4, ones_sum, routed

BURST, THRESHOLD = 40, 10
SLOW = LinkModel(rate_bps=10_000_000, queue_packets=100)
DSCP = 0x2E


def ecn_of(bench: Bench, ecn: int) -> list[int]:
    """Return the ECN field of a burst's packets, in the order in which they leave."""
    packet = ipv4("10.0.0.2", "10.0.1.2", (7000, 7011), bytes(200), protocol=TCP, dscp_ecn=DSCP << 2 | ecn)
    outputs = bench.send_together([(1 + n % 3, routed(packet)) for n in range(BURST)], 1_000_000)
    frames = [frame for port, frame in outputs if port == 4]
    if len(frames) != BURST or len(outputs) != BURST:
        raise Refusal("a burst leaves whole", f"{BURST} packets by port 4", f"{len(frames)}, {len(outputs)} in all")
    for frame in frames:
        if ones_sum(frame[14:34]) != 0xFFFF:
            raise Refusal("every packet leaves with its right checksum", came=f"a header {frame[14:34].hex()}")
        if frame[15] >> 2 != DSCP:
            raise Refusal("the other six bits of the byte stay", f"DSCP {DSCP}", f"DSCP {frame[15] >> 2}")
    return [frame[15] & 3 for frame in frames]


def check(bench: Bench) -> None:
    bench.do("add routes hdr.ipv4.dst_addr:0x0a000102/32 forward(port:4, dst_mac:0x020000000102)")
    bench.slow_down(4, SLOW)
    about = f"of {BURST} packets at one moment, to a link of 10 Mbit/s"
    for ecn in (1, 2):
        found = ecn_of(bench, ecn)
        marks = [n for n, each in enumerate(found, 1) if each == 3]
        came = f"marked: {', '.join(map(str, marks)) or 'none'}"
        # The first is on the link at once, so that the queue has THRESHOLD packets before the one after these.
        if marks != [*range(THRESHOLD + 2, BURST + 1)]:
            raise Refusal(f"{about} with ECN {ecn}", f"marked: {THRESHOLD + 2} to {BURST}", came)
        if {*found} != {ecn, 3}:
            raise Refusal(
                f"{about} with ECN {ecn}", f"the others still say {ecn}", f"they say {sorted({*found} - {3})}"
            )
    found = ecn_of(bench, 0)
    if any(found):
        raise Refusal(f"{about} whose sender does not know ECN", "none is marked", f"{sum(map(bool, found))} are")
    bench.do(f"check_counter marked(4) packets == {2 * (BURST - THRESHOLD - 1)}")
