"""Load is what waits in the queues, also in the moments between departures."""

from __future__ import annotations

import pytest

from tests.unit.interconnect.network import FRAME_BYTES, Interconnect

CHANNELS_OF_A_PORT = 8


def waiting(network: Interconnect, switch: str) -> dict[int, int]:
    return {i: value for i, value in enumerate(network.southbound.registers(switch, "waiting")) if value}


@pytest.mark.parametrize("channels", [True, False])
def test_a_burst_is_spread_over_both_planes(channels: bool) -> None:
    """Hosts 1 and 2 of M(0,0) send at once, twice as fast as a light path. To M(1,0) there are two ways."""
    with Interconnect(2, channels=channels) as network:
        for sender, receiver in (("h1", "h5"), ("h2", "h6")):
            network.send(sender, [receiver] * 50)
        network.settle()
        carried = network.carried()
        planes = [carried["m0_0", "a0"], carried["m0_0", "a2"]]
        assert sum(planes) == 100
        assert abs(planes[0] - planes[1]) <= 2
        assert waiting(network, "m0_0") == {}


def test_the_third_of_three_at_once_goes_where_none_waits() -> None:
    """What is being sent does not wait. If the second waits for the first, the third is told of it before anything
    has left: never do all three take one plane, which coins alone would do one time in four."""
    with Interconnect(3) as network:
        for _ in range(30):
            before = network.carried()
            for sender, receiver in (("h1", "h10"), ("h2", "h11"), ("h3", "h12")):
                network.send(sender, [receiver])
            network.settle()
            taken = network.carried() - before
            assert sorted((taken["m0_0", "a0"], taken["m0_0", "a3"])) == [1, 2]


def test_what_does_not_fit_the_mesh_goes_by_light_first() -> None:
    """Hosts 1 and 2 of M(0,0) send to M(1,1), twice as fast as the mesh link carries."""
    with Interconnect(2) as network:
        for sender, receiver in (("h1", "h7"), ("h2", "h8")):
            network.send(sender, [receiver] * 50)
        network.settle()
        carried = network.carried()
        by_order = {"mesh": carried["m0_0", "m0_1"], "light": carried["m1_0", "m1_1"]}
        assert sum(by_order.values()) == 100
        assert 35 <= by_order["light"] <= 65
        assert len(network.received("h7")) == len(network.received("h8")) == 50


def test_queues_that_ran_dry_read_zero_after_drops() -> None:
    """A full queue drops what was counted already: the next departure puts it right."""
    with Interconnect(2, queue_packets=4) as network:
        for sender in ("h5", "h6", "h7", "h8"):
            network.send(sender, ["h1"] * 4)
        before = len(network.received("h1"))
        network.settle()
        received = before + len(network.received("h1"))
        assert received < 16
        assert all(waiting(network, switch) == {} for switch in ("m0_0", "m0_1", "m1_0", "m1_1"))


def test_what_waits_is_told_while_it_waits() -> None:
    """h1 to h4 send to M(1,0) at once; the fixed plane gets everything of M(0,0)'s hosts."""
    with Interconnect(2, policy="fixed-plane") as network:
        for sender, receiver in (("h1", "h5"), ("h2", "h6")):
            network.send(sender, [receiver] * 20)
        # Ten packets of each host have come in and about ten have left, one of them being sent.
        network.settle(until_us=10 * FRAME_BYTES + 50)
        [(index, packets)] = waiting(network, "m0_0").items()
        assert divmod(index, CHANNELS_OF_A_PORT) == (4, 1)
        assert 9 <= packets <= 11
        network.settle()
        assert waiting(network, "m0_0") == {}


def test_a_flowlet_keeps_its_way_and_a_pause_ends_it() -> None:
    with Interconnect(2, flowlet_us=1000) as network:
        planes = []
        for _ in range(30):
            before = network.carried()
            for _ in range(4):
                network.send("h1", ["h5"])
                network.settle(until_us=network.simulated.now_ns // 1000 + 500)
            taken = network.carried() - before
            planes.append((taken["m0_0", "a0"], taken["m0_0", "a2"]))
            network.settle(until_us=network.simulated.now_ns // 1000 + 5000)
        assert set(planes) == {(4, 0), (0, 4)}
