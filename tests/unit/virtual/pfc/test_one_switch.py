"""One switch with PFC against a model of its own, to the nanosecond."""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest

from gradbed.topo.link import LinkModel
from tests.unit.virtual.pfc.networks import frame, number_of, quiet_interfaces, rows, run, send, star
from tests.unit.virtual.pfc.switch_model import Cable, Packet, SwitchModel


@dataclass(frozen=True)
class Case:
    links: tuple[LinkModel, ...]
    packets: tuple[tuple[int, Packet], ...]
    """When each is offered to its host's NIC."""


def link(byte_ns: int, delay_us: int, xoff: int, xon: int, limit: int) -> LinkModel:
    return LinkModel(
        rate_bps=8_000_000_000 // byte_ns,
        delay_us=delay_us,
        queue_packets=limit,
        pfc_xoff_bytes=xoff,
        pfc_xon_bytes=xon,
    )


def random_case(seed: int) -> Case:
    """Two hosts that send to a third one, over rates and thresholds at random, and it back to them."""
    draw = random.Random(seed)
    links = []
    for host in range(3):
        xoff = draw.choice((0, 1500, 4000, 9000)) if host < 2 else draw.choice((0, 3000))
        xon = draw.randint(0, xoff)
        byte_ns = draw.choice((1, 2, 4)) if host < 2 else draw.choice((2, 4, 8))
        links.append(link(byte_ns, draw.choice((0, 1, 3)), xoff, xon, draw.choice((12, 1000))))
    priorities = draw.sample(range(8), draw.choice((1, 2, 3)))
    packets = []
    for number in range(draw.choice((80, 250))):
        source, target = draw.choice(((0, 2), (0, 2), (1, 2), (1, 2), (2, 0), (2, 1), (0, 1)))
        packet = Packet(number, source, target, draw.randint(50, 1500), draw.choice(priorities))
        packets.append((draw.randrange(60_000), packet))
    return Case(tuple(links), tuple(sorted(packets, key=lambda each: each[0])))


def by_model(case: Case) -> SwitchModel:
    def cable(of: LinkModel, to_switch: bool) -> Cable:
        assert of.rate_bps is not None
        byte_ns = 8_000_000_000 // of.rate_bps
        return Cable(byte_ns, 1000 * of.delay_us, of.pfc_xoff_bytes, of.pfc_xon_bytes, of.queue_packets, to_switch)

    model = SwitchModel([cable(each, True) for each in case.links], [cable(each, False) for each in case.links])
    for at_ns, packet in case.packets:
        model.send(at_ns, packet)
    model.run()
    return model


@pytest.mark.parametrize("seed", range(60))
def test_every_packet_arrives_when_it_should(seed: int) -> None:
    case = random_case(seed)
    model = by_model(case)
    with star(case.links) as simulated:
        interfaces = quiet_interfaces(simulated, [(1, host) for host in range(1, len(case.links) + 1)])
        for host, interface in enumerate(interfaces):
            own = [(at_ns, packet) for at_ns, packet in case.packets if packet.source == host]
            frames = [frame(p.target + 1, p.length, p.priority, p.number) for _, p in own]
            send(interface, frames, [at_ns for at_ns, _ in own])
        run(simulated)
        arrived = []
        for host, interface in enumerate(interfaces):
            texts, _ = interface.receive()
            times = interface.times_ns.tolist()
            arrived += [(at, host, number_of(bytes(text))) for at, text in zip(times, texts, strict=True)]
        assert sorted(arrived) == sorted(model.arrived)
        found = rows(simulated)
        for host, (up, down) in enumerate(zip(model.up, model.down, strict=True), 1):
            row = found[1, host, "in"]
            assert row.pauses_sent == tuple(up.pauses_sent)
            assert row.pauses_received == tuple(up.pauses_received)
            assert row.paused_ns == tuple(up.paused_ns)
            assert row.queue_drops == up.drops
            assert found[1, host, "out"].queue_drops == down.drops
            # Hosts take all that comes: nobody pauses what leads to them.
            assert sum(found[1, host, "out"].pauses_sent) == 0


def test_the_cases_pause_and_drop() -> None:
    """What the model is compared by is worth something."""
    models = [by_model(random_case(seed)) for seed in range(60)]
    assert sum(sum(map(sum, (up.pauses_sent for up in model.up))) > 3 for model in models) > 20
    assert sum(any(cable.drops for cable in (*model.up, *model.down)) for model in models) > 5


def test_a_pause_that_goes_on_counts_up_to_now() -> None:
    slow = LinkModel(rate_bps=8_000_000, delay_us=1)
    fast = link(1, 1, 1000, 0, 1000)
    with star((fast, slow)) as simulated:
        (interface,) = quiet_interfaces(simulated, [(1, 1)])
        send(interface, [frame(2, 1000, 5, number) for number in range(5)])
        # The second packet that waits is held at 3 * 1000 + 1000 ns; the pause takes 60 + 1000 ns.
        for time_ns in (5059, 5060, 5061, 9000):
            simulated.run_until(time_ns)
            row = rows(simulated)[1, 1, "in"]
            assert row.paused_ns[5] == max(0, time_ns - 5060)
            assert (row.pauses_sent[5], row.pauses_received[5]) == (1, int(time_ns >= 5060))


def test_other_priorities_go_on() -> None:
    slow = LinkModel(rate_bps=8_000_000, delay_us=1)
    fast = link(1, 1, 1000, 0, 1000)
    with star((fast, slow, fast)) as simulated:
        sender, _, taker = quiet_interfaces(simulated, [(1, 1), (1, 2), (1, 3)])
        send(sender, [frame(2, 1000, 5, number) for number in range(20)])
        send(sender, [frame(3, 1000, 4, number) for number in range(20)], [20_000] * 20)
        send(sender, [frame(3, 1000, 5, number) for number in range(20)], [20_000] * 20)
        simulated.run_until(100_000)
        texts, _ = taker.receive()
        # Those of the paused priority wait behind the others of it, whereever they go.
        assert [text[15] >> 5 for text in texts] == [4] * 20


@pytest.mark.parametrize("tagged", [False, True])
def test_a_host_pauses_by_dscp_or_by_tag(tagged: bool) -> None:
    """What is not IPv4 has priority 0, unless a VLAN tag says more; the program drops it here, so nothing is held."""
    with star((link(1, 1, 1000, 0, 3),) * 2) as simulated:
        (sender,) = quiet_interfaces(simulated, [(1, 1)])
        ether = b"\x81\x00\x60\x01" if tagged else b"\x88\xcc"
        # Seven at one moment: one is sent, three wait in each queue.
        frames = [bytes(12) + ether + b"\xff" * 50] * 7 + [frame(2, 1000, 3, 1)] * 2
        send(sender, frames)
        run(simulated)
        # Tagged frames share the queue of priority 3, which is full when the others come.
        assert rows(simulated)[1, 1, "in"].queue_drops == (3 + 2 if tagged else 3)
