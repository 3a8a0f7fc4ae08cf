"""Circuits: an optical switch joins its fibres by one permutation at a time."""

from __future__ import annotations

import pytest

from gradbed.experiments.systems.interconnect.bounds import light_share
from gradbed.experiments.systems.interconnect.links import open_ns
from gradbed.topo.link import LinkModel
from gradbed.topo.optical_electrical import optical_electrical, optical_name, with_circuits, with_wavelengths
from tests.unit.interconnect.network import Interconnect

SLOT_US, GUARD_US = 1000, 200
"""Light of 104 us that begins before the guard time has come to the optical switch, and gone on, in the slot."""


# Planes begin at different turns with 3 as with 4, of which packets are five times as many.
@pytest.mark.commit_cases(1)
@pytest.mark.parametrize("n", [2, 3, pytest.param(4, marks=pytest.mark.nightly)])
def test_one_permutation_for_each_slot_and_everything_arrives(n: int) -> None:
    """Slot s: wavelength 1 + s mod (N-1) in the first plane, half a cycle later in the second."""
    with Interconnect(n, circuits=(SLOT_US, GUARD_US)) as network:
        for sender in network.hosts:
            network.send(sender, [host for host in network.hosts if host != sender] * (8 if n == 2 else 2))
        sent = len(network.hosts) * (len(network.hosts) - 1) * (8 if n == 2 else 2)
        before = {optical_name(i): network.counter(optical_name(i), "light") for i in range(2 * n)}
        busy = 0
        for slot in range(40):
            network.settle(until_us=(slot + 1) * SLOT_US)
            for plane in range(2):
                wavelength = 1 + (slot + plane * ((n - 1) // 2)) % (n - 1)
                for optical in (optical_name(i + n * plane) for i in range(n)):
                    now = network.counter(optical, "light")
                    crossed = {index: count - before[optical].get(index, 0) for index, count in now.items()}
                    assert {index % n for index, count in crossed.items() if count} <= {wavelength}
                    # A fibre begins to send 8 times in 800 us, of 104 us each.
                    assert max(crossed.values(), default=0) <= 8
                    busy += max(crossed.values(), default=0) == 8
                    before[optical] = now
        network.settle()
        assert busy > 0
        assert sum(len(network.received(host)) for host in network.hosts) == sent
        assert not network.dropped()


def test_a_light_path_has_its_part_of_the_time() -> None:
    """Light of 104 us begins 8 times in the 800 us of a slot before the guard time."""
    network = optical_electrical(4, LinkModel(rate_bps=8_000_000))
    assert light_share(network, 100) is None
    assert light_share(with_wavelengths(network), 100) == pytest.approx(100 / 104)
    assert light_share(with_circuits(network, SLOT_US, GUARD_US), 100) == pytest.approx(8 * 100 / SLOT_US / 3)


@pytest.mark.parametrize("first_turn", [0, 2])
def test_the_time_in_which_a_channel_may_send_is_that_of_its_turns(first_turn: int) -> None:
    """Against every microsecond of a time that begins and ends within turns."""
    model = LinkModel(rate_bps=8_000_000, channels=4, turn_us=70, guard_us=20, first_turn=first_turn)
    for channel in (1, 2, 3):
        open_us = sum(
            (us // 70 + first_turn) % 3 + 1 == channel and us % 70 < 70 - 20 + 5 for us in range(33, 33 + 611)
        )
        assert open_ns(model, channel, 33_000, 644_000, 5_000) == 1000 * open_us
