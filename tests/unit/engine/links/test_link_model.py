"""Rate, queue, delay, loss and duplication of links, on a manual clock: times are exact."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradbed.switch.engine import Engine, LinkStatistics
from gradbed.topo.link import LinkModel
from tests.examples import examples
from tests.unit.engine.instructed import Egress, exchange, instructed_program, pass_through, read_report


def host_port(link: LinkModel, seed: int = 0) -> Engine:
    """Switch 1 with a perfect port 1 and a port 2 with that link, in both directions."""
    engine = Engine(manual_clock=True)
    engine.add_switch(1).load(instructed_program())
    engine.add_open_port(1, 1)
    engine.add_open_port(1, 2, link, seed)
    return engine


def row(engine: Engine, port: int, direction: str) -> LinkStatistics:
    [found] = [r for r in engine.link_statistics() if (r.port, r.direction) == (port, direction)]
    return found


def arrivals_us(engine: Engine) -> list[float]:
    return [time_ns / 1000 for time_ns, *_ in engine.drain_with_times()]


def test_a_frame_takes_its_length_over_the_rate_and_then_the_delay() -> None:
    with host_port(LinkModel(rate_bps=8_000_000, delay_us=300)) as engine:
        engine.inject(1, 1, pass_through(2) + b"x" * 100)
        engine.advance(1000)
        assert arrivals_us(engine) == [100 + 300]
        # The other way, before the pipeline: 108 bytes.
        engine.inject(1, 2, pass_through(1) + b"x" * 100)
        engine.advance(1000)
        assert arrivals_us(engine) == [1000 + 108 + 300]


def test_frames_are_sent_one_after_the_other() -> None:
    with host_port(LinkModel(rate_bps=8_000_000, delay_us=50)) as engine:
        for length in (100, 10, 1000):
            engine.inject(1, 1, pass_through(2) + b"x" * length)
        engine.advance(0)
        assert arrivals_us(engine) == []
        engine.advance(10_000)
        assert arrivals_us(engine) == [150, 160, 1160]


@pytest.mark.parametrize(("rate_bps", "count"), [(400_000_000_000, 1000), (7_777_777, 100)])
def test_short_frames_on_a_fast_link_take_their_time_to_the_nanosecond(rate_bps: int, count: int) -> None:
    with host_port(LinkModel(rate_bps=rate_bps, queue_packets=count)) as engine:
        for _ in range(count):
            engine.inject(1, 1, pass_through(2) + b"x" * 64)
        engine.advance(10_000_000)
        times_ns = [time_ns for time_ns, *_ in engine.drain_with_times()]
    assert times_ns == [number * 64 * 8 * 10**9 // rate_bps for number in range(1, count + 1)]


def test_a_pause_or_another_rate_begins_at_a_whole_nanosecond() -> None:
    # 64 bytes take 1.28 ns.
    frame = pass_through(2) + b"x" * 64
    with host_port(LinkModel(rate_bps=400_000_000_000)) as engine:
        for count in (3, 4, 1):
            for _ in range(count):
                engine.inject(1, 1, frame)
            engine.advance(1)
        assert [ns for ns, *_ in engine.drain_with_times()] == [1, 2, 3, 1001, 1002, 1003, 1005, 2001]
        engine.inject(1, 1, frame)
        engine.advance(0.001)
        engine.set_link(1, 2, LinkModel(rate_bps=600_000_000_000))
        engine.inject(1, 1, frame)
        engine.advance(1)
        assert [ns for ns, *_ in engine.drain_with_times()] == [3001, 3001]


def test_links_that_are_alike_change_by_themselves() -> None:
    """Equal links share what is set of them; forty ports, so that there are more rates than are compared."""
    ports = range(2, 42)
    with host_port(LinkModel(rate_bps=8_000_000)) as engine:
        for port in ports[1:]:
            engine.add_open_port(1, port, LinkModel(rate_bps=8_000_000))
        for rates in (dict.fromkeys(ports, 8), {port: port for port in ports}, dict.fromkeys(ports, 4), {7: 2}):
            for port, rate in rates.items():
                engine.set_link(1, port, LinkModel(rate_bps=1_000_000 * rate), ["out"])
            now_us = engine.now_ns() / 1000
            for port in ports:
                engine.inject(1, 1, pass_through(port) + bytes(100))
            engine.advance(1000)
            took_us = {port: time_ns / 1000 - now_us for time_ns, _, port, _ in engine.drain_with_times()}
            wanted = {port: 800 / rates.get(port, 4) for port in ports}
            assert took_us == {port: pytest.approx(wanted[port], abs=0.001) for port in ports}


def test_an_idle_link_does_not_save_up_its_rate() -> None:
    with host_port(LinkModel(rate_bps=8_000_000)) as engine:
        for _ in range(2):
            engine.advance(5000)
            for _ in range(2):
                engine.inject(1, 1, pass_through(2) + b"x" * 100)
        engine.advance(5000)
        assert arrivals_us(engine) == [5100, 5200, 10_100, 10_200]


def test_a_full_queue_drops_the_newest_before_egress() -> None:
    with host_port(LinkModel(rate_bps=8_000_000, queue_packets=3)) as engine:
        for number in range(10):
            engine.inject(1, 1, pass_through(2, egress=Egress.DROP if number > 7 else Egress.PASS) + bytes([number]))
        engine.advance(10_000)
        # One being sent and three waiting.
        assert [frame for *_, frame in engine.drain()] == [b"\0", b"\1", b"\2", b"\3"]
        statistics = row(engine, 2, "out")
        assert (statistics.packets, statistics.queue_drops) == (4, 6)
        assert (statistics.bytes, statistics.queue_drop_bytes) == (4, 6 * 9)


def test_the_queue_of_the_way_in_drops_before_the_pipeline() -> None:
    with host_port(LinkModel(rate_bps=8_000_000, queue_packets=2)) as engine:
        sent = exchange(engine, *(pass_through(1) + bytes([number]) for number in range(5)), port=2, after_us=10_000)
        assert [frame for *_, frame in sent] == [b"\0", b"\1", b"\2"]
        assert row(engine, 2, "in").queue_drops == 2


def test_queueing_metadata_are_true() -> None:
    # 8 + 92 bytes in, 144 + 92 bytes out: 236 us each on the link.
    frame = pass_through(2, egress=Egress.REPORT) + b"x" * 92
    with host_port(LinkModel(rate_bps=8_000_000)) as engine:
        engine.advance(1000)
        for _ in range(3):
            engine.inject(1, 1, frame)
        engine.advance(50)
        reports = [read_report(frame) for *_, frame in exchange(engine, frame, after_us=10_000)]
    assert [r.enq_timestamp for r in reports] == [1000, 1000, 1000, 1050]
    assert [r.enq_qdepth for r in reports] == [0, 0, 1, 2]
    assert [r.deq_timedelta for r in reports] == [0, 236, 472, 658]
    assert [r.deq_qdepth for r in reports] == [0, 2, 1, 0]
    assert [r.egress_global_timestamp for r in reports] == [1000, 1236, 1472, 1708]


def test_what_egress_drops_takes_no_time_on_the_link() -> None:
    with host_port(LinkModel(rate_bps=8_000_000)) as engine:
        engine.inject(1, 1, pass_through(2) + b"x" * 100)
        for _ in range(5):
            engine.inject(1, 1, pass_through(2, egress=Egress.DROP) + b"x" * 1000)
        engine.inject(1, 1, pass_through(2) + b"x" * 100)
        engine.advance(10_000)
        assert arrivals_us(engine) == [100, 200]


def test_delay_keeps_the_order_and_holds_many_packets() -> None:
    with host_port(LinkModel(delay_us=10_000)) as engine:
        for number in range(200):
            engine.inject(1, 1, pass_through(2) + bytes([number]))
            engine.advance(10)
        assert not engine.quiesce()
        engine.advance(20_000)
        drained = engine.drain_with_times()
    assert [frame[0] for *_, frame in drained] == list(range(200))
    assert [time_ns for time_ns, *_ in drained] == [(10 * i + 10_000) * 1000 for i in range(200)]


def test_a_path_of_links_adds_up() -> None:
    link = LinkModel(rate_bps=1_000_000_000, delay_us=5)
    with Engine(manual_clock=True) as engine:
        for number in range(3):
            engine.add_switch(number).load(instructed_program())
        engine.add_open_port(0, 1, link)
        engine.add_link((0, 2), (1, 1), link, seed=1)
        engine.add_link((1, 2), (2, 1), link, seed=2)
        engine.add_open_port(2, 2, link)
        engine.inject(0, 1, pass_through(2) * 3 + b"x" * 1000)
        engine.advance(1000)
        [(time_ns, *_)] = engine.drain_with_times()
    # 8 ns per byte; an instruction less on each link.
    assert time_ns == 4 * 5000 + 8 * (1024 + 1016 + 1008 + 1000)


def test_advancing_in_small_steps_makes_no_difference() -> None:
    link = LinkModel(rate_bps=3_333_333, delay_us=7, loss=0.1, duplicate=0.1, queue_packets=8)

    def run(step_us: float) -> list[tuple[int, int, int, bytes]]:
        with host_port(link, seed=5) as engine:
            for number in range(50):
                engine.inject(1, 1, pass_through(2) + bytes([number]) * (1 + number * 7 % 90))
                elapsed = 0.0
                while elapsed < 100:
                    engine.advance(step_us)
                    elapsed += step_us
            engine.advance(100_000)
            return engine.drain_with_times()

    assert run(100) == run(12.5)


def test_loss_and_duplication_keep_the_books() -> None:
    count = 4000
    with host_port(LinkModel(loss=0.1, duplicate=0.2), seed=42) as engine:
        for number in range(count):
            engine.inject(1, 1, pass_through(2) + number.to_bytes(2, "big") + b"x" * (number % 50))
        engine.advance(0)
        frames = [frame for *_, frame in engine.drain()]
        statistics = row(engine, 2, "out")
    times = Counter(frame[:2] for frame in frames)
    assert statistics.packets == len(frames)
    assert statistics.bytes == sum(map(len, frames))
    assert statistics.losses == count - len(times)
    assert statistics.duplicates == sum(n == 2 for n in times.values())
    assert statistics.offered == count
    assert statistics.offered_bytes == sum(2 + number % 50 for number in range(count))
    assert set(times.values()) == {1, 2}
    # A duplicate comes right after its original.
    assert [f for i, f in enumerate(frames) if i == 0 or frames[i - 1] != f] == sorted(set(frames))
    # Five standard deviations.
    assert abs(statistics.losses - 400) < 95
    assert abs(statistics.duplicates - 720) < 125


@pytest.mark.parametrize("length", [40, 1000])
def test_bit_errors_hit_long_frames_more_often(length: int) -> None:
    count, rate = 4000, 5e-5
    with host_port(LinkModel(bit_error_rate=rate), seed=42) as engine:
        for _ in range(count):
            engine.inject(1, 1, pass_through(2) + b"x" * length)
        engine.advance(0)
        assert len(engine.drain()) == count - row(engine, 2, "out").losses
        losses = row(engine, 2, "out").losses
    damaged = 1 - (1 - rate) ** (8 * length)
    # Five standard deviations.
    assert abs(losses - count * damaged) < 5 * (count * damaged * (1 - damaged)) ** 0.5


def test_a_bit_error_rate_holds_from_when_it_is_set() -> None:
    with host_port(LinkModel(bit_error_rate=1e-12)) as engine:
        frames = [pass_through(2) + b"x" * 100] * 1000
        assert len(exchange(engine, *frames)) == 1000
        engine.set_link(1, 2, LinkModel(bit_error_rate=0.1))
        assert exchange(engine, *frames) == []
        engine.set_link(1, 2, LinkModel())
        assert len(exchange(engine, *frames)) == 1000


def decisions(seed: int, direction: str, link: LinkModel) -> list[bytes]:
    with host_port(link, seed) as engine:
        into, out = (1, 2) if direction == "out" else (2, 1)
        for number in range(300):
            engine.inject(1, into, pass_through(out) + number.to_bytes(2, "big"))
        engine.advance(1_000_000)
        return [frame for *_, frame in engine.drain()]


def test_the_same_seed_decides_the_same() -> None:
    lossy = LinkModel(loss=0.2, duplicate=0.2)
    assert decisions(7, "out", lossy) == decisions(7, "out", lossy)
    different = {tuple(decisions(seed, way, lossy)) for seed in (7, 8, -1, 2**70) for way in ("out", "in")}
    assert len(different) == 8


def test_decisions_do_not_depend_on_rate_delay_or_the_other_probability() -> None:
    kept = set(decisions(3, "out", LinkModel(loss=0.2)))
    assert kept == set(decisions(3, "out", LinkModel(loss=0.2, duplicate=0.9)))
    assert kept == set(decisions(3, "out", LinkModel(loss=0.2, rate_bps=10_000_000, delay_us=9)))


def test_the_two_directions_of_a_link_in_memory_decide_for_themselves() -> None:
    with Engine(manual_clock=True) as engine:
        for number in (1, 2):
            engine.add_switch(number).load(instructed_program())
            engine.add_open_port(number, 1)
        engine.add_link((1, 2), (2, 2), LinkModel(loss=0.3), seed=4)
        for number in range(200):
            for device_id in (1, 2):
                engine.inject(device_id, 1, pass_through(2) + pass_through(1) + bytes([number]))
        engine.advance(0)
        frames = engine.drain()
        forth = [frame for device_id, _, frame in frames if device_id == 2]
        back = [frame for device_id, _, frame in frames if device_id == 1]
        losses = {r.device_id: r.losses for r in engine.link_statistics() if r.port == 2}
    assert forth != back
    assert losses == {1: 200 - len(forth), 2: 200 - len(back)}


@settings(max_examples=examples(60), deadline=None)
@given(
    rate_bps=st.sampled_from([64_000, 1_000_000, 33_333_333, 10_000_000_000]),
    delay_us=st.integers(0, 2000),
    queue_packets=st.integers(1, 6),
    frames=st.lists(st.tuples(st.integers(0, 3000), st.integers(1, 1400)), min_size=1, max_size=40),
)
def test_against_a_model_of_the_link(
    rate_bps: int, delay_us: int, queue_packets: int, frames: list[tuple[int, int]]
) -> None:
    """frames: microseconds since the one before, bytes."""
    expected_ns, drops, now_ns = [], 0, 0
    # When the transmitter is free, exactly; the clock has whole nanoseconds.
    free_ns = Fraction(0)
    starts: list[int] = []
    for gap_us, length in frames:
        now_ns += gap_us * 1000
        waiting = sum(start > now_ns for start in starts)
        if waiting >= queue_packets and int(free_ns) > now_ns:
            drops += 1
            continue
        starts.append(max(now_ns, int(free_ns)))
        if now_ns > int(free_ns):
            free_ns = Fraction(now_ns)
        free_ns += Fraction(length * 8 * 10**9, rate_bps)
        expected_ns.append(int(free_ns) + delay_us * 1000)
    with host_port(LinkModel(rate_bps=rate_bps, delay_us=delay_us, queue_packets=queue_packets)) as engine:
        for gap_us, length in frames:
            engine.advance(gap_us)
            engine.inject(1, 1, pass_through(2) + b"x" * length)
        engine.advance(60_000_000)
        assert [time_ns for time_ns, *_ in engine.drain_with_times()] == expected_ns
        assert row(engine, 2, "out").queue_drops == drops
        assert engine.quiesce()


@pytest.mark.parametrize("loss", [1 - 2**-53, 2**-60])
def test_extreme_probabilities_are_exact(loss: float) -> None:
    with host_port(LinkModel(loss=loss)) as engine:
        assert len(exchange(engine, *(pass_through(2) + b"x" for _ in range(100)))) == (0 if loss > 0.5 else 100)


def test_the_rate_achieved_while_packets_waited() -> None:
    with host_port(LinkModel(rate_bps=8_000_000)) as engine:
        for _ in range(41):
            engine.inject(1, 1, pass_through(2) + b"x" * 1000)
        for _ in range(60):
            engine.advance(1000)
        found = row(engine, 2, "out")
        assert found.backlogged_ns == 30_000_000  # whole stretches of 10 ms; 9 of the waiting packets are left over
        assert 8e9 * found.backlogged_bytes / found.backlogged_ns == 8_000_000


def test_a_machine_that_is_late_does_not_achieve_the_rate() -> None:
    with host_port(LinkModel(rate_bps=8_000_000)) as engine:
        for _ in range(13):
            engine.inject(1, 1, pass_through(2) + b"x" * 1000)
        engine.advance(1000)
        engine.advance(29_000)  # the data plane slept
        found = row(engine, 2, "out")
        assert 8e9 * found.backlogged_bytes / found.backlogged_ns < 1_000_000
        assert engine.statistics().late_counts[15] > 0  # 16,384 to 32,768 us


def test_short_stretches_of_backlog_say_nothing_about_the_rate() -> None:
    with host_port(LinkModel(rate_bps=8_000_000)) as engine:
        for _ in range(20):
            for _ in range(3):
                engine.inject(1, 1, pass_through(2) + b"x" * 1000)
            for _ in range(5):
                engine.advance(1000)
        assert row(engine, 2, "out").backlogged_ns == 0
