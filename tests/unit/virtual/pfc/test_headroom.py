"""How much room a switch needs so that nothing is lost, by the formula of docs/lossless-ethernet.md, at its edge."""

from __future__ import annotations

import pytest

from gradbed.topo.link import LinkModel, packets_without_loss
from tests.unit.virtual.pfc.networks import frame, quiet_interfaces, rows, send, star

FAST_BPS = 8_000_000_000
FRAME_BYTES = 1000
FRAMES = 60
FOREVER = LinkModel(rate_bps=8000)
"""A second for each byte: what goes there waits."""


def most_drops(delay_us: int, xoff_bytes: int, queue_packets: int, senders: int = 1) -> int:
    """The most that is lost over all times at which the frame on the way back may have begun."""
    worst = 0
    model = LinkModel(
        rate_bps=FAST_BPS,
        delay_us=delay_us,
        queue_packets=1000,
        pfc_xoff_bytes=xoff_bytes,
    )
    for phase_ns in range(0, FRAME_BYTES, 20):
        # The last receiver's link has the queue in question; hosts without PFC keep the ways back busy.
        last = LinkModel(rate_bps=FOREVER.rate_bps, queue_packets=queue_packets)
        with star((*[model] * senders, last, *[LinkModel(rate_bps=FAST_BPS)] * senders)) as simulated:
            interfaces = quiet_interfaces(simulated, [(1, host) for host in range(1, 2 * senders + 2)])
            sending, noise = interfaces[:senders], interfaces[senders + 1 :]
            for host, (interface, other) in enumerate(zip(sending, noise, strict=True), 1):
                send(interface, [frame(senders + 1, FRAME_BYTES)] * FRAMES, [50_000] * FRAMES)
                send(other, [frame(host, FRAME_BYTES)] * 200, [phase_ns] * 200)
            simulated.run_until(1_000_000)
            worst = max(worst, rows(simulated)[1, senders + 1, "out"].queue_drops)
    return worst


@pytest.mark.parametrize("delay_us", [0, 1, 3])
def test_the_formula_holds_and_a_byte_less_loses(delay_us: int) -> None:
    # The last xoff that a queue of that many packets is enough for.
    xoff_bytes = 5 * FRAME_BYTES - 1
    model = LinkModel(rate_bps=FAST_BPS, delay_us=delay_us, pfc_xoff_bytes=xoff_bytes)
    packets = packets_without_loss([model], FRAME_BYTES, FRAME_BYTES)
    # The link's first packet goes out at once and needs no room.
    assert packets == 4 + 1 + 2 + 2 * delay_us
    assert most_drops(delay_us, xoff_bytes, packets) == 0
    assert most_drops(delay_us, xoff_bytes + 1, packets) > 0
    assert most_drops(delay_us, xoff_bytes, packets - 1) > 0


def test_links_add_up() -> None:
    model = LinkModel(rate_bps=FAST_BPS, delay_us=1, pfc_xoff_bytes=2500)
    packets = packets_without_loss([model] * 3, FRAME_BYTES, FRAME_BYTES)
    assert packets == 3 * packets_without_loss([model], FRAME_BYTES, FRAME_BYTES)
    assert most_drops(1, 2500, packets, senders=3) == 0
    assert most_drops(1, 2500, packets - 2, senders=3) > 0


def test_without_pauses_it_is_lost() -> None:
    assert most_drops(1, 0, 20) == FRAMES - 1 - 20
