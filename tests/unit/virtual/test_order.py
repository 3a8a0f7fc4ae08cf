"""Events happen at their times and in order, whether they are nanoseconds or minutes ahead."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from gradbed.switch.device import Replica
from gradbed.switch.engine_network import InterfaceConfig, NetworkConfig, SwitchConfig
from gradbed.switch.virtual import SimulatedNetwork
from gradbed.topo.link import LinkModel
from tests.examples import examples
from tests.unit.engine.instructed import Ingress, instructed_program, pass_through
from tests.unit.virtual.test_hosts import rows, texts

DELAYS_US = (0, 1, 31, 64, 524, 525, 1048, 1049, 5_000, 60_000_000)
"""Around the granularities and the horizon of the queue of events (switch/runtime/engine/timer.c)."""
PAUSES_NS = (0, 1, 63, 64, 65, 4095, 4096, 1_048_575, 1_048_576, 1_048_640, 3_000_000_000)


def network_of(delays_us: Sequence[int]) -> SimulatedNetwork:
    """A switch with a host at each port, whose link has that delay."""
    config = NetworkConfig(
        switches=(SwitchConfig(device_id=1),),
        interfaces=tuple(
            InterfaceConfig(device_id=1, port=port, interface=f"s1-eth{port}", link=LinkModel(delay_us=delay_us))
            for port, delay_us in enumerate(delays_us)
        ),
    )
    simulated = SimulatedNetwork(config)
    simulated.devices[1].load(instructed_program())
    return simulated


def test_what_waits_for_long_comes_before_what_was_caused_later() -> None:
    """Copies that are 5 ms under way, two of the same time, and what arrives 40 ns and 24 us after them."""
    with network_of([0, 5000, 5000, 524, 524]) as simulated:
        hosts = [simulated.interface(1, port) for port in range(5)]
        simulated.devices[1].replication.set_group(1, [Replica(1), Replica(2)])
        hosts[0].send(rows(pass_through(0, Ingress.MULTICAST, 1) + b"copy"))
        for port, at_ns in ((3, 4_476_040), (4, 4_500_000)):
            assert simulated.run_until(at_ns).interfaces == ()
            hosts[port].send(rows(pass_through(0) + b"later"))
        order = []
        while (stop := simulated.run_until(None)).interfaces:
            order += [(stop.time_ns, interface.port) for interface in stop.interfaces]
    assert order == [(5_000_000, 1), (5_000_000, 2), (5_000_040, 0), (5_024_000, 0)]


@settings(max_examples=examples(40), deadline=None)
@given(sends=st.lists(st.tuples(st.sampled_from(PAUSES_NS), st.sampled_from(range(len(DELAYS_US)))), max_size=40))
def test_frames_arrive_at_their_times_in_order(sends: list[tuple[int, int]]) -> None:
    with network_of(DELAYS_US) as simulated:
        hosts = [simulated.interface(1, port) for port in range(len(DELAYS_US))]
        arrived: list[tuple[int, int]] = []

        def run(until_ns: int | None) -> None:
            while True:
                stop = simulated.run_until(until_ns)
                for interface in stop.interfaces:
                    numbers = [frame[0] for frame in texts(interface)]
                    assert interface.times_ns.tolist() == [stop.time_ns] * len(numbers)
                    arrived.extend((stop.time_ns, number) for number in numbers)
                if stop.time_ns == until_ns or (stop.idle and not stop.interfaces):
                    return

        expected = []
        for number, (pause_ns, port) in enumerate(sends):
            run(simulated.now_ns + pause_ns)
            # There and back.
            hosts[port].send(rows(pass_through(port) + bytes([number])))
            expected.append((simulated.now_ns + 2 * DELAYS_US[port] * 1000, number))
        run(None)
    assert sorted(arrived) == sorted(expected)
    assert [time_ns for time_ns, _ in arrived] == sorted(time_ns for time_ns, _ in expected)
