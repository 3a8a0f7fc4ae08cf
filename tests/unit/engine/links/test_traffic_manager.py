"""Jitter, priorities, changes of a link while it runs, and a switch's special ports, on a manual clock."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradbed.common.errors import UserError
from gradbed.switch.device import Replica
from gradbed.switch.engine import Engine, EngineDevice
from gradbed.topo.link import LinkModel
from tests.examples import examples
from tests.unit.engine.instructed import Egress, Ingress, exchange, instructed_program, pass_through, read_report
from tests.unit.engine.links.test_link_model import arrivals_us, host_port, row

# 100 bytes take 100 us.
SLOW = LinkModel(rate_bps=8_000_000)


def send(engine: Engine, number: int, priority: int = 0, length: int = 100) -> None:
    engine.inject(1, 1, pass_through(2, priority=priority) + bytes([number]) * length)


def numbers(engine: Engine) -> list[int]:
    return [frame[0] for *_, frame in engine.drain()]


# Jitter


def transit_us(link: LinkModel, seed: int, gap_us: float, count: int = 400) -> list[tuple[int, float]]:
    """(number, time on the link) of each packet, in order of arrival."""
    with host_port(link, seed) as engine:
        for number in range(count):
            engine.inject(1, 1, pass_through(2) + number.to_bytes(2, "big"))
            engine.advance(gap_us)
        engine.advance(1_000_000)
        arrived = [(int.from_bytes(frame, "big"), time_ns / 1000) for time_ns, *_, frame in engine.drain_with_times()]
    return [(number, time_us - number * gap_us) for number, time_us in arrived]


def test_jitter_spreads_delays_evenly_around_the_delay() -> None:
    times = [time for _, time in transit_us(LinkModel(delay_us=1000, jitter_us=400), seed=1, gap_us=2000)]
    assert all(600 <= time <= 1400 for time in times)
    assert min(times) < 650
    assert max(times) > 1350
    # Uniform: a standard deviation of 400 / sqrt(3), so five of the mean's are 58 us.
    assert abs(sum(times) / len(times) - 1000) < 58
    assert len(set(times)) > 300


@settings(max_examples=examples(30), deadline=None)
@given(delay_us=st.integers(0, 500), jitter=st.floats(0, 1), gap_us=st.integers(0, 100), seed=st.integers(0, 99))
def test_packets_keep_their_order_unless_they_may_overtake(
    delay_us: int, jitter: float, gap_us: int, seed: int
) -> None:
    jitter_us = int(jitter * delay_us)
    ordered = transit_us(LinkModel(delay_us=delay_us, jitter_us=jitter_us), seed, gap_us, 60)
    free = transit_us(LinkModel(delay_us=delay_us, jitter_us=jitter_us, reorder=True), seed, gap_us, 60)
    drawn = dict(free)
    assert [number for number, _ in ordered] == list(range(60))
    assert all(delay_us - jitter_us <= time <= delay_us + jitter_us for time in drawn.values())
    # A packet that may not overtake arrives with the latest of those before it.
    latest = 0.0
    for number, time in ordered:
        latest = max(latest, number * gap_us + drawn[number])
        assert number * gap_us + time == pytest.approx(latest)
    arrivals = [(number * gap_us + time, number) for number, time in free]
    assert arrivals == sorted(arrivals, key=lambda arrival: arrival[0])


def test_reordering_happens() -> None:
    link = LinkModel(delay_us=1000, jitter_us=1000, reorder=True)
    arrived = [number for number, _ in transit_us(link, seed=2, gap_us=10)]
    assert arrived != sorted(arrived)
    assert sorted(arrived) == list(range(400))


def test_jitter_is_seeded_and_leaves_losses_alone() -> None:
    link = LinkModel(delay_us=1000, jitter_us=900, loss=0.2)
    assert transit_us(link, 5, 10) == transit_us(link, 5, 10)
    assert transit_us(link, 5, 10) != transit_us(link, 6, 10)
    steady = LinkModel(delay_us=1000, loss=0.2)
    assert [number for number, _ in transit_us(link, 5, 10)] == [number for number, _ in transit_us(steady, 5, 10)]


@pytest.mark.parametrize(("delay_us", "jitter_us"), [(10, 11), (0, 1), (5, -1)])
def test_jitter_is_at_most_the_delay(delay_us: int, jitter_us: int) -> None:
    with pytest.raises(UserError, match=f"jitter is between 0 and the delay of {delay_us} us, got {jitter_us} us"):
        LinkModel(delay_us=delay_us, jitter_us=jitter_us)


# Priorities


def test_the_largest_priority_goes_first_and_nothing_is_interrupted() -> None:
    with host_port(SLOW) as engine:
        for number, priority in enumerate([0, 1, 0, 7, 1, 7]):
            send(engine, number, priority)
        # While number 3 is being sent, more urgent things come; it goes on.
        engine.advance(150)
        send(engine, 6, 7)
        engine.advance(10_000)
        assert numbers(engine) == [0, 3, 5, 6, 1, 4, 2]
        assert engine.quiesce()


def test_each_priority_has_a_queue_of_its_own() -> None:
    with host_port(LinkModel(rate_bps=8_000_000, queue_packets=2)) as engine:
        send(engine, 0)
        for number in range(1, 5):
            send(engine, number, priority=0)
            send(engine, 10 + number, priority=3)
        engine.advance(10_000)
        assert numbers(engine) == [0, 11, 12, 1, 2]
        assert row(engine, 2, "out").queue_drops == 4


def test_depths_are_those_of_the_packets_own_queue() -> None:
    with host_port(SLOW) as engine:
        send(engine, 0)
        for priority in (0, 0, 2, 0):
            engine.inject(1, 1, pass_through(2, egress=Egress.REPORT, priority=priority))
        engine.advance(10_000)
        reports = [read_report(frame) for *_, frame in engine.drain() if len(frame) > 100]
    assert [(r.priority, r.enq_qdepth, r.deq_qdepth) for r in reports] == [
        (2, 0, 0),
        (0, 0, 2),
        (0, 1, 1),
        (0, 2, 0),
    ]


def test_a_starved_queue_waits_as_long_as_there_is_something_more_urgent() -> None:
    with host_port(SLOW) as engine:
        send(engine, 99)
        send(engine, 0, priority=0)
        for number in range(1, 30):
            send(engine, number, priority=1)
            engine.advance(100)
        assert 0 not in numbers(engine)
        engine.advance(10_000)
        assert numbers(engine)[-1] == 0


def test_a_priority_without_queue_is_dropped_and_counted() -> None:
    with Engine(manual_clock=True) as engine:
        device = engine.add_switch(1, priorities=2)
        device.load(instructed_program())
        engine.add_open_port(1, 1)
        engine.add_open_port(1, 2)
        for priority in (1, 2, 7, 200, 0):
            send(engine, priority, priority)
        engine.advance(10)
        assert numbers(engine) == [1, 0]
        assert device.statistics().priority_drops == 3
        assert engine.quiesce()


def test_clones_have_the_class_of_service_of_their_session(engine: Engine, device: EngineDevice) -> None:
    device.replication.set_session(9, [Replica(3)], class_of_service=5)
    sent = exchange(engine, pass_through(2, Ingress.CLONE, 9, egress=Egress.REPORT, priority=2), after_us=10)
    assert {port: read_report(frame).priority for _, port, frame in sent} == {2: 2, 3: 5}


@settings(max_examples=examples(40), deadline=None)
@given(
    queue_packets=st.integers(1, 4),
    packets=st.lists(st.tuples(st.integers(0, 150), st.integers(0, 7), st.integers(1, 200)), max_size=40),
)
def test_against_a_model_of_strict_priority(queue_packets: int, packets: list[tuple[int, int, int]]) -> None:
    """packets: microseconds since the one before, priority, bytes (of 1 us each)."""
    waiting: list[list[tuple[int, int]]] = [[] for _ in range(8)]
    expected, now, free = [], 0, 0

    def transmit_until(time: int) -> None:
        nonlocal free
        while free <= time and any(waiting):
            number, length = next(queue for queue in reversed(waiting) if queue).pop(0)
            free += length
            expected.append((number, free))

    for number, (gap, priority, length) in enumerate(packets):
        now += gap
        transmit_until(now)
        if free <= now:
            free = now + length
            expected.append((number, free))
        elif len(waiting[priority]) < queue_packets:
            waiting[priority].append((number, length))
    transmit_until(10**9)
    with host_port(LinkModel(rate_bps=8_000_000, queue_packets=queue_packets)) as engine:
        for number, (gap, priority, length) in enumerate(packets):
            engine.advance(gap)
            send(engine, number, priority, length)
        engine.advance(100_000)
        assert [(frame[0], time_ns // 1000) for time_ns, *_, frame in engine.drain_with_times()] == expected


# Changes while it runs


def test_a_link_can_be_changed_while_packets_wait() -> None:
    with host_port(SLOW) as engine:
        for number in range(5):
            send(engine, number)
        engine.advance(150)
        engine.set_link(1, 2, LinkModel(rate_bps=80_000_000, delay_us=7, queue_packets=1))
        engine.advance(10_000)
        # The second was under way, and what waited leaves ten times as fast.
        assert arrivals_us(engine) == [100, 200, 217, 227, 237]
        for number in range(3):
            send(engine, number)
        engine.advance(10_000)
        assert row(engine, 2, "out").queue_drops == 1


def test_one_direction_can_be_changed_alone() -> None:
    with host_port(LinkModel()) as engine:
        engine.set_link(1, 2, LinkModel(delay_us=50), ["in"])
        engine.inject(1, 2, pass_through(1) + b"i")
        engine.inject(1, 1, pass_through(2) + b"o")
        engine.advance(1000)
        assert [(frame, time_ns // 1000) for time_ns, *_, frame in engine.drain_with_times()] == [
            (b"o", 0),
            (b"i", 50),
        ]


def test_a_link_in_memory_is_changed_at_the_end_that_sends() -> None:
    with Engine(manual_clock=True) as engine:
        for number in (1, 2):
            engine.add_switch(number).load(instructed_program())
            engine.add_open_port(number, 1)
        engine.add_link((1, 2), (2, 2), LinkModel(), 0)
        engine.set_link(1, 2, LinkModel(delay_us=30), ["out"])
        for number in (1, 2):
            engine.inject(number, 1, pass_through(2) + pass_through(1) + b"x")
        engine.advance(1000)
        assert [(device, time_ns // 1000) for time_ns, device, *_ in engine.drain_with_times()] == [(1, 0), (2, 30)]
        with pytest.raises(UserError, match="port 2 of switch 1 has no direction 'in'"):
            engine.set_link(1, 2, LinkModel())


def test_losses_go_on_where_they_were_when_a_link_changes() -> None:
    def losses(change: bool) -> list[int]:
        with host_port(LinkModel(loss=0.3), seed=4) as engine:
            for number in range(100):
                if change and number == 50:
                    engine.set_link(1, 2, LinkModel(loss=0.3, delay_us=1))
                send(engine, number)
            engine.advance(1000)
            return numbers(engine)

    assert losses(True) == losses(False)


@pytest.mark.parametrize("port", [9, 510, 511, 100_000])
def test_ports_without_a_link_cannot_be_changed(engine: Engine, device: EngineDevice, port: int) -> None:
    with pytest.raises(UserError, match=f"port {port} of switch s1 has no direction 'in'"):
        engine.set_link(1, port, LinkModel())
    with pytest.raises(UserError, match="no switch with device id 5"):
        engine.set_link(5, 1, LinkModel())


# Special ports


def test_another_drop_port_frees_511() -> None:
    with Engine(manual_clock=True) as engine:
        device = engine.add_switch(1, cpu_port=255, drop_port=0)
        device.load(instructed_program())
        engine.add_open_port(1, 1)
        engine.add_open_port(1, 511)
        with pytest.raises(UserError, match="but for the drop port"):
            engine.add_open_port(1, 0)
        engine.inject(1, 511, pass_through(1) + b"from 511")
        engine.inject(1, 1, pass_through(0) + b"dropped by ingress")
        engine.inject(1, 1, pass_through(1, egress=Egress.DROP) + b"dropped by egress")
        engine.advance(10)
        assert engine.drain() == [(1, 1, b"from 511")]
        statistics = device.statistics()
        assert (statistics.ingress_drops, statistics.egress_drops) == (1, 1)


def test_a_switch_without_cpu_port() -> None:
    with Engine(manual_clock=True) as engine:
        device = engine.add_switch(1, "s1", cpu_port=None)
        device.load(instructed_program())
        engine.add_open_port(1, 510)
        engine.inject(1, 510, pass_through(200) + b"x")
        engine.advance(10)
        assert device.statistics().no_port_drops == 1
        with pytest.raises(ValueError, match="switch s1 has no CPU port"):
            device.packet_out(b"x")


def test_egress_runs_for_ports_that_do_not_exist(engine: Engine, device: EngineDevice) -> None:
    """A program may send packets to such a port to have its egress recirculate or clone them."""
    device.replication.set_session(3, [Replica(4)])
    engine.inject(1, 1, pass_through(77, egress=Egress.RECIRCULATE) + pass_through(2) + b"again")
    engine.inject(1, 1, pass_through(78, egress=Egress.CLONE, egress_argument=3) + b"copied")
    engine.inject(1, 1, pass_through(79, egress=Egress.DROP) + b"dropped")
    engine.advance(10)
    frames = {port: frame for _, port, frame in engine.drain()}
    assert frames[2] == b"again"
    assert read_report(frames[4]).payload == b"copied"
    statistics = device.statistics()
    assert (statistics.no_port_drops, statistics.egress_drops) == (1, 1)
    assert statistics.recirculated == 1
    with pytest.raises(UserError, match="port 77 of switch s1 has no direction"):
        engine.set_link(1, 77, LinkModel())
    # The port can still be made.
    engine.add_open_port(1, 77)
    assert exchange(engine, pass_through(77) + b"now", after_us=10) == [(1, 77, b"now")]
