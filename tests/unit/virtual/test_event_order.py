"""Events of one time are worked on in the order in which they were caused, as an independent model has it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gradbed.switch.engine_network import InterfaceConfig, LinkConfig, NetworkConfig, SwitchConfig
from gradbed.switch.virtual import HostInterface, SimulatedNetwork
from gradbed.topo.link import LinkModel
from tests.examples import examples
from tests.unit.engine.instructed import instructed_program, pass_through
from tests.unit.virtual.event_model import Cable, EventModel, Frame
from tests.unit.virtual.test_hosts import rows, texts

HOST_PORTS = (3, 4)
"""Of each of three switches; port 1 leads to the next one round, port 2 to the one before."""
HOSTS = tuple((switch, port) for switch in (1, 2, 3) for port in HOST_PORTS)
US = 1000
BYTE_US = (0, 1, 2)
DELAYS_US = (0, 1, 8, 16, 32)
"""Small multiples of what a frame takes, so that many events share their time."""


@dataclass(frozen=True)
class Links:
    """(microseconds of a byte, delay in microseconds): of the links between switches 1-2, 2-3, 3-1, and of hosts."""

    between: tuple[tuple[int, int], ...]
    hosts: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Sending:
    """A frame from a host: when, over which links between switches (1 or 2: see HOST_PORTS), to which of a switch's
    hosts, how long."""

    host: int
    at_us: int
    way: tuple[int, ...]
    to_port: int
    payload_bytes: int


def link_model(byte_us: int, delay_us: int) -> LinkModel:
    return LinkModel(rate_bps=8_000_000 // byte_us if byte_us else None, delay_us=delay_us, queue_packets=1000)


def network_of(links: Links, threads: int = 1, **of_switches: int) -> SimulatedNetwork:
    simulated = SimulatedNetwork(
        NetworkConfig(
            switches=tuple(SwitchConfig(device_id=number, **of_switches) for number in (1, 2, 3)),
            interfaces=tuple(
                InterfaceConfig(device_id=switch, port=port, interface=f"s{switch}-eth{port}", link=link_model(*each))
                for (switch, port), each in zip(HOSTS, links.hosts, strict=True)
            ),
            links=tuple(
                LinkConfig(a=(switch, 1), b=(switch % 3 + 1, 2), link=link_model(*each))
                for switch, each in enumerate(links.between, 1)
            ),
        ),
        threads=threads,
    )
    for device in simulated.devices.values():
        device.load(instructed_program())
    return simulated


def model_of(links: Links) -> EventModel:
    cables: dict[tuple[str, int], Cable] = {}
    for (switch, port), (byte_us, delay_us) in zip(HOSTS, links.hosts, strict=True):
        cables[f"h{switch}{port}", 0] = Cable(US * byte_us, US * delay_us, f"s{switch}")
        cables[f"s{switch}", port] = Cable(US * byte_us, US * delay_us, f"h{switch}{port}")
    for switch, (byte_us, delay_us) in enumerate(links.between, 1):
        following = switch % 3 + 1
        cables[f"s{switch}", 1] = Cable(US * byte_us, US * delay_us, f"s{following}")
        cables[f"s{following}", 2] = Cable(US * byte_us, US * delay_us, f"s{switch}")
    return EventModel(cables)


def arrivals_in_network(links: Links, sendings: list[Sending]) -> list[list[tuple[int, str, list[int]]]]:
    """For each moment at which hosts are told: when, and in their order what came to whom."""
    with network_of(links) as simulated:
        interfaces = [simulated.interface(*place) for place in HOSTS]
        names = {interface.number: f"h{s}{p}" for interface, (s, p) in zip(interfaces, HOSTS, strict=True)}
        for number, sending in enumerate(sendings):
            frame = b"".join(pass_through(port) for port in (*sending.way, sending.to_port))
            frame += bytes([number]) * sending.payload_bytes
            send(interfaces[sending.host], frame, sending.at_us * US)
        found = []
        while (stop := simulated.run_until(None)).interfaces:
            told = [(stop.time_ns, each, [text[0] for text in texts(each)]) for each in stop.interfaces]
            found.append([(time_ns, names[each.number], numbers) for time_ns, each, numbers in told])
    return found


def send(interface: HostInterface, frame: bytes, at_ns: int) -> None:
    interface.send(rows(frame), times_ns=np.array([at_ns], np.int64))


def arrivals_in_model(links: Links, sendings: list[Sending]) -> list[list[tuple[int, str, list[int]]]]:
    model = model_of(links)
    for number, each in enumerate(sendings):
        switch, port = HOSTS[each.host]
        ports = (*each.way, each.to_port)
        model.send(f"h{switch}{port}", each.at_us * US, Frame(number, 8 * len(ports) + each.payload_bytes, ports))
    model.run()
    moments: dict[int, dict[str, list[int]]] = {}
    for time_ns, host, number in model.arrived:
        moments.setdefault(time_ns, {}).setdefault(host, []).append(number)
    return [[(time_ns, host, numbers) for host, numbers in of.items()] for time_ns, of in moments.items()]


BEHIND_ANOTHER = (
    Links(between=((0, 8), (0, 8), (0, 8)), hosts=((0, 8), (0, 8)) + 4 * ((0, 8),)),
    # The second of host 0 was sent before that of host 1, and arrives with it.
    [Sending(0, 1, (), 4, 8), Sending(0, 2, (), 4, 8), Sending(1, 2, (), 4, 8)],
)
BETWEEN_TWO = (BEHIND_ANOTHER[0], [Sending(host, 1, (), 4, 8) for host in (0, 1, 0)])

PAIRS = st.tuples(st.sampled_from(BYTE_US), st.sampled_from(DELAYS_US))
SENDINGS = st.builds(
    Sending,
    host=st.integers(0, len(HOSTS) - 1),
    at_us=st.sampled_from((0, 0, 0, 1, 2, 8, 16, 24)),
    way=st.lists(st.sampled_from((1, 2)), max_size=3).map(tuple),
    to_port=st.sampled_from(HOST_PORTS),
    payload_bytes=st.sampled_from((8, 16)),
)
LINKS = st.builds(Links, between=st.tuples(PAIRS, PAIRS, PAIRS), hosts=st.tuples(*(PAIRS for _ in HOSTS)))


def compare(links: Links, sendings: list[Sending]) -> None:
    assert arrivals_in_network(links, sendings) == arrivals_in_model(links, sendings)


@settings(max_examples=examples(150), deadline=None, derandomize=True)
@example(*BEHIND_ANOTHER)
@example(*BETWEEN_TWO)
@given(links=LINKS, sendings=st.lists(SENDINGS, min_size=2, max_size=25))
def test_events_of_one_time_happen_in_the_order_of_their_causes(links: Links, sendings: list[Sending]) -> None:
    compare(links, sendings)


@pytest.mark.nightly
@settings(max_examples=examples(3000), deadline=None, derandomize=True)
@given(links=LINKS, sendings=st.lists(SENDINGS, min_size=2, max_size=60))
def test_many_events_of_one_time_happen_in_the_order_of_their_causes(links: Links, sendings: list[Sending]) -> None:
    compare(links, sendings)
