"""Queue pairs of hosts' NICs on links with PFC: a paused priority waits in the NIC, and nothing is lost."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gradbed.switch.device import ActionCall, KeyMatch
from gradbed.switch.engine.statistics import LinkStatistics
from gradbed.switch.virtual import SimulatedNetwork
from gradbed.topo.link import LinkModel, packets_without_loss
from tests.unit.virtual.pfc.networks import BALANCE, SOURCE
from tests.unit.virtual.transport.network import RECEIVED, Line, ip, mac

MOST_BYTES = 54 + 16 + 4 + 4096 + 4
RECEIVER, SENDERS = 1, (2, 3, 4)
SIZE_BYTES = 400_000
LINK = LinkModel(rate_bps=100 * 10**9, delay_us=1)


def routes(simulated: SimulatedNetwork) -> None:
    for host in (RECEIVER, *SENDERS):
        forward = ActionCall(f"{BALANCE}.forward", (host, int.from_bytes(mac(host), "big")))
        key = [KeyMatch(ip(host), prefix_bits=32)]
        simulated.devices[1].state.tables.insert(f"{BALANCE}.destinations", key, forward, 0)


def lossless(delay_us: int) -> LinkModel:
    """A queue takes what the senders' links may bring; acknowledgements go the other way. What is left at xon lasts
    until more comes."""
    xon = 10_000 + 12_500 * delay_us
    link = replace(LINK, delay_us=delay_us, pfc_xoff_bytes=2 * xon, pfc_xon_bytes=xon)
    least = MOST_BYTES - 20
    return replace(link, queue_packets=packets_without_loss([link] * len(SENDERS), least, MOST_BYTES))


def incast(link: LinkModel, **options: Any) -> tuple[dict[tuple[int, str], LinkStatistics], list[tuple[int, int]]]:
    """All senders at once: links by port and direction, and what was received (time, pair)."""
    with Line([1] * 4, link, file=SOURCE, prepare=routes) as line:
        for host in SENDERS:
            line.connect(host, RECEIVER, 1, host, priority=3, **options)
            line.open(host).send(1, host, SIZE_BYTES)
        line.run()
        rows = {(row.port, row.direction): row for row in line.simulated.engine.link_statistics()}
        return rows, [(each.time_ns, each.tag) for each in line.done[RECEIVER] if each.kind == RECEIVED]


@pytest.mark.parametrize("delay_us", [0, 1, 5])
def test_an_incast_loses_nothing_and_sends_nothing_twice(delay_us: int) -> None:
    rows, received = incast(lossless(delay_us))
    assert sorted(tag for _, tag in received) == list(SENDERS)
    assert not any(row.queue_drops for row in rows.values())
    packets = -(-SIZE_BYTES // 4096)
    for host in SENDERS:
        row = rows[host, "in"]
        assert row.packets == packets
        assert row.pauses_sent == row.pauses_received
        assert row.pauses_received[3] > 0 and row.paused_ns[3] > 0
        assert sum(row.pauses_received) == row.pauses_received[3]
    # The receiver's link never rests, so the last byte comes when it comes without flow control, of endless queues.
    _, endless = incast(replace(LINK, delay_us=delay_us, queue_packets=10_000))
    assert max(received)[0] == max(endless)[0]


def test_without_pauses_the_same_queues_lose_and_packets_are_sent_again() -> None:
    link = lossless(1)
    rows, received = incast(replace(link, pfc_xoff_bytes=0, pfc_xon_bytes=0), recovery="selective-repeat")
    assert rows[RECEIVER, "out"].queue_drops > 0
    assert sum(rows[host, "in"].packets for host in SENDERS) > 3 * -(-SIZE_BYTES // 4096)
    assert len(received) == 3


@pytest.mark.parametrize(("priority", "slower"), [(5, 1.1), (1, 2.0)])
def test_a_pair_of_another_priority_goes_on(priority: int, slower: float) -> None:
    """Hosts 3 and 4 fill the queue to host 1; host 2 sends there with priority 3, and with another to host 3: a
    larger one goes first, a smaller one has the time in which priority 3 is paused."""
    with Line([1] * 4, lossless(1), file=SOURCE, prepare=routes) as line:
        for host in SENDERS:
            line.connect(host, RECEIVER, 1, host, priority=3)
            line.open(host).send(1, host, 10 * SIZE_BYTES)
        line.connect(2, 3, 7, 7, priority=priority)
        line.run(40_000)
        before = {row.port: row for row in line.simulated.engine.link_statistics() if row.direction == "in"}
        assert before[2].paused_ns[3] > 10_000
        line.open(2).send(7, 99, SIZE_BYTES)
        line.run()
        (other,) = [each for each in line.done[3] if each.kind == RECEIVED]
        alone_ns = -(-SIZE_BYTES // 4096) * (MOST_BYTES - 20) * 8 / 100 + 2000
        assert alone_ns < other.time_ns - 40_000 < slower * alone_ns
        assert not any(row.queue_drops for row in line.simulated.engine.link_statistics())
