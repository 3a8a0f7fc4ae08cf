"""Channels of a cable: each priority has a queue and a transmitter of its own, on a manual clock."""

from __future__ import annotations

import pytest

from gradbed.common.errors import UserError
from gradbed.switch.engine import Engine, EngineDevice
from gradbed.topo.link import LinkModel
from tests.unit.engine.instructed import instructed_program, pass_through

# 100 bytes take 100 us.
RATE_BPS = 8_000_000


def cable(**fields: int) -> Engine:
    """Open port 1 of switch 1, the cable between their ports 2, open port 1 of switch 2."""
    return cable_and_sender(**fields)[0]


def cable_and_sender(**fields: int) -> tuple[Engine, EngineDevice]:
    """With switch 1."""
    engine = Engine(manual_clock=True)
    switches = [engine.add_switch(device_id) for device_id in (1, 2)]
    for switch in switches:
        switch.load(instructed_program())
        engine.add_open_port(switch.device_id, 1)
    engine.add_link((1, 2), (2, 2), LinkModel(rate_bps=RATE_BPS, **fields), seed=1)
    return engine, switches[0]


def send(engine: Engine, *priorities: int) -> None:
    """A frame of 100 bytes on the cable, each with its place as its last byte."""
    for place, priority in enumerate(priorities):
        header = pass_through(1)
        engine.inject(1, 1, pass_through(2, priority=priority) + header + bytes([place]) * (100 - len(header)))


def arrivals(engine: Engine) -> list[tuple[float, int]]:
    """(us, place) of what has come through."""
    engine.advance(10_000)
    return [(time_ns / 1000, frame[-1]) for time_ns, *_, frame in engine.drain_with_times()]


def test_every_channel_has_the_whole_rate() -> None:
    with cable(channels=3) as engine:
        send(engine, 0, 1, 2, 0, 1, 2)
        assert arrivals(engine) == [(100, 0), (100, 1), (100, 2), (200, 3), (200, 4), (200, 5)]


def test_one_channel_takes_the_largest_priority_first() -> None:
    with cable() as engine:
        send(engine, 0, 1, 2)
        assert arrivals(engine) == [(100, 0), (200, 2), (300, 1)]


def test_larger_priorities_share_the_last_channel() -> None:
    with cable(channels=2) as engine:
        send(engine, 0, 5, 1, 7)
        assert arrivals(engine) == [(100, 0), (100, 1), (200, 3), (300, 2)]


def test_every_channel_has_a_queue() -> None:
    with cable(channels=2, queue_packets=1) as engine:
        send(engine, 0, 0, 0, 1, 1, 1)
        assert [place for _, place in arrivals(engine)] == [0, 3, 1, 4]
        [row] = [row for row in engine.link_statistics() if (row.device_id, row.port, row.direction) == (1, 2, "out")]
        assert (row.packets, row.queue_drops) == (4, 2)


def test_statistics_tell_of_every_channel_and_of_what_is_on_its_way() -> None:
    """Sending three frames of channel 1 takes 300 us, of channel 2 100 us."""
    with cable(channels=3, duplicate=0.999, delay_us=50) as engine:
        send(engine, 1, 1, 1, 2)
        for time_us, sent, queued, in_flight in (
            (0, (0, 0), 2, 4),
            (149, (0, 0), 1, 6),
            (150, (100, 100), 1, 2),
            (260, (200, 100), 0, 2),
            (400, (300, 100), 0, 0),
        ):
            engine.advance(time_us - engine.now_ns() // 1000)
            [row] = [row for row in engine.link_statistics() if (row.device_id, row.port) == (1, 2)]
            assert row.channel_bytes == (0, *sent, 0, 0, 0, 0, 0)
            assert (row.queued, row.in_flight, row.time_ns) == (queued, in_flight, 1000 * time_us)
            assert row.duplicate_bytes == row.bytes - sum(sent) > 0 or not row.bytes


def test_what_enters_a_link_from_a_host_is_counted_when_it_does() -> None:
    with Engine(manual_clock=True) as engine:
        engine.add_switch(1).load(instructed_program())
        engine.add_open_port(1, 1, LinkModel(rate_bps=RATE_BPS, queue_packets=1))
        for _ in range(3):
            engine.inject(1, 1, pass_through(1) + bytes(60))
        [row] = [row for row in engine.link_statistics() if row.direction == "in"]
        assert (row.entered_bytes, row.bytes) == (3 * len(pass_through(1) + bytes(60)), 0)
        assert (row.queued, row.in_flight, row.queue_drops) == (1, 1, 1)


def test_a_cut_cable_loses_what_any_channel_sends_and_a_new_rate_holds_for_all() -> None:
    with cable(channels=2) as engine:
        engine.set_link_up(1, 2, False)
        send(engine, 0, 1)
        assert arrivals(engine) == []
        engine.set_link_up(1, 2, True)
        engine.set_link(1, 2, LinkModel(rate_bps=2 * RATE_BPS), ["out"])
        send(engine, 0, 1, 1)
        assert arrivals(engine) == [(10_050, 0), (10_050, 1), (10_100, 2)]
        [row] = [row for row in engine.link_statistics() if (row.device_id, row.port, row.direction) == (1, 2, "out")]
        assert (row.packets, row.losses) == (3, 2)


def test_another_program_loses_what_waits_in_any_channel() -> None:
    engine, sender = cable_and_sender(channels=2)
    with engine:
        send(engine, 0, 0, 1, 1)
        engine.advance(0)
        sender.load(instructed_program())
        assert [place for _, place in arrivals(engine)] == [0, 2]
        assert sender.statistics().swap_drops == 2


@pytest.mark.parametrize("first_turn", [0, 1])
def test_channels_take_turns(first_turn: int) -> None:
    """Two channels in turns of 1,000 us, in the last 150 of which nothing begins; channel 0 waits for nobody."""
    with cable(channels=3, turn_us=1000, guard_us=150, first_turn=first_turn) as engine:
        send(engine, *[1] * 10, 0, 2, 2)
        found = arrivals(engine)
    begins = {place: time_us - 100 for time_us, place in found}
    first, second = (0, 1000) if first_turn == 0 else (1000, 0)
    assert [begins[place] for place in range(9)] == [first + 100 * place for place in range(9)]
    assert begins[9] == first + 2000
    assert (begins[10], begins[11], begins[12]) == (0, second, second + 100)


def test_a_lone_channel_pauses_for_the_guard_time() -> None:
    with cable(channels=2, turn_us=300, guard_us=150) as engine:
        send(engine, 1, 1, 1)
        assert arrivals(engine) == [(100, 0), (200, 1), (400, 2)]
        # In the middle of a guard time.
        engine.advance(3100)
        send(engine, 1)
        assert arrivals(engine) == [(13_300, 0)]


def test_turns_are_longer_than_their_guard_time() -> None:
    with pytest.raises(UserError, match="turns are longer than their guard time, got 100 and 100 us"):
        LinkModel(channels=2, turn_us=100, guard_us=100)


def test_only_cables_between_switches_have_channels() -> None:
    with Engine(manual_clock=True) as engine:
        engine.add_switch(1)
        with pytest.raises(UserError, match="only links in memory between switches have channels"):
            engine.add_open_port(1, 1, LinkModel(channels=2))


@pytest.mark.parametrize("channels", [0, 9])
def test_as_many_as_there_are_priorities(channels: int) -> None:
    with pytest.raises(UserError, match=f"1 to 8 channels, got {channels}"):
        LinkModel(channels=channels)
