"""What happens to packets when links and optical switches go: with the controller, and without."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from gradbed.controller.systems.interconnect.entries import Reachability
from gradbed.topo.optical_electrical import PLANES, hybrid_name, mesh_port, optical_electrical, uplink_port
from tests.unit.interconnect.network import Interconnect

NO_WAY = 4


def cut(network: Interconnect, links: Sequence[tuple[str, str]], *, told: bool) -> None:
    """told: whether the controller is there to hear of it."""
    for a, b in links:
        network.simulated.engine.set_link_up(network.topology.switch(a).number, network.topology.port(a, b), False)
    if told:
        for a, b in links:
            network.controller.link_changed(a, b, up=False)


def lost(network: Interconnect) -> int:
    """Of a packet from every host to every other one, one after the other."""
    missing = 0
    for sender in network.hosts:
        for receiver in network.hosts:
            if sender != receiver:
                network.send(sender, [receiver])
                network.settle()
                missing += len(network.received(receiver)) != 1
    return missing


def fibres(network: Interconnect, optical: str) -> list[tuple[str, str]]:
    return [(name, optical) for name in network.topology.neighbours(optical)]


@pytest.mark.parametrize("policy", ["least-loaded", "random-plane", "fixed-plane", "mesh-first", "ecmp"])
@pytest.mark.parametrize("told", [False, True])
def test_when_an_optical_switch_is_cut_off_the_other_plane_takes_over(policy: str, told: bool) -> None:
    """At once, by the switches themselves: their ports are down. The controller need not be there."""
    with Interconnect(2, policy=policy) as network:
        cut(network, fibres(network, "a0"), told=told)
        before = network.carried()
        assert lost(network) == 0
        after = network.carried() - before
        assert not any("a0" in ends for ends in after)


def test_without_the_controller_a_far_link_is_not_noticed_and_with_it_nothing_is_lost() -> None:
    """M(1,0) loses its fibre to A_0: M(0,0) sees light of A_0 still."""
    link = ("m1_0", "a0")
    with Interconnect(2) as network:
        cut(network, [link], told=False)
        assert lost(network) > 0
        network.controller.link_changed(*link, up=False)
        assert lost(network) == 0


@pytest.mark.parametrize(
    "links",
    [
        [("m0_0", "m0_1")],
        [("m0_0", "m0_1"), ("m0_0", "a0")],
        [("m0_0", "a0"), ("m0_0", "a2")],
        [("m0_0", "a0"), ("m1_0", "a2")],
        [("m0_0", "m0_1"), ("m1_0", "a0"), ("m0_1", "a3")],
    ],
)
def test_nothing_is_lost_as_long_as_there_is_a_path(links: list[tuple[str, str]]) -> None:
    """Over detours, if need be: a mesh link of the unit is replaced by light to another unit, its mesh, and light
    back."""
    with Interconnect(2) as network:
        cut(network, links, told=True)
        assert lost(network) == 0
        for link in links:
            a, b = link
            network.simulated.engine.set_link_up(network.topology.switch(a).number, network.topology.port(a, b), True)
            network.controller.link_changed(a, b, up=True)
        assert lost(network) == 0


def test_what_has_no_way_is_counted() -> None:
    """Without the controller nobody plans a detour for a mesh link: its unit's own 8 packets are lost, and those that
    come to it by light first."""
    with Interconnect(2) as network:
        cut(network, [("m0_0", "m0_1")], told=False)
        missing = lost(network)
        assert missing >= 8
        assert network.dropped() == {NO_WAY: missing}


@pytest.mark.parametrize("n", [2, 3, 4])
def test_usable_ways_lead_to_the_end_and_detours_come_nearer(n: int) -> None:
    """Every single link of the switches down, every pair of hybrid switches: walk all ways that could be taken."""
    whole = optical_electrical(n)
    for link in [*whole.switch_links[:: max(1, n - 1)], None]:
        links = tuple(each for each in whole.links if each != link)
        reach = Reachability(whole.model_copy(update={"links": links}))
        for there in reach.places:
            for here in reach.places:
                if here != there:
                    assert walk(reach, here, there) <= (3 if link is None else 5)


def walk(reach: Reachability, here: tuple[int, int], there: tuple[int, int]) -> int:
    """The most mesh links and light paths that a packet may take, over links that are up alone."""
    n, topology = reach.n, reach.topology
    if here == there:
        return 0
    usable = reach.usable(here, there)
    if usable is None:
        neighbour = reach.detour(here, there)
        assert neighbour is not None
        return 1 + walk(reach, neighbour, there)
    steps = []
    if here[0] == there[0] or usable & 1 << PLANES:
        neighbour = here[0], there[1]
        assert topology.port(hybrid_name(*here), hybrid_name(*neighbour)) == mesh_port(n, here[1], there[1])
        steps.append(neighbour)
    for plane in range(PLANES):
        if usable >> plane & 1:
            neighbour, optical = (there[0], here[1]), f"a{here[1] + n * plane}"
            assert topology.port(hybrid_name(*here), optical) == uplink_port(n, plane)
            assert topology.port(hybrid_name(*neighbour), optical) == uplink_port(n, plane)
            steps.append(neighbour)
    return 1 + max(walk(reach, step, there) for step in steps)
