"""Building an engine, running it, and what it says to mistakes."""

from __future__ import annotations

import itertools
import threading

import pytest

from gradbed.common.errors import UserError
from gradbed.switch.device import ActionCall, Replica
from gradbed.switch.engine import Engine, EngineDevice
from gradbed.topo.link import LinkModel
from tests.unit.engine.instructed import Egress, Ingress, instructed_program, pass_through

LINK = LinkModel()


def test_mistakes_in_building_get_one_clear_line(engine: Engine, device: EngineDevice) -> None:
    engine.add_switch(2, "s2")
    with pytest.raises(UserError, match="two switches with device id 1"):
        engine.add_switch(1)
    with pytest.raises(UserError, match="no switch with device id 9"):
        engine.add_open_port(9, 1)
    with pytest.raises(UserError, match="no switch with device id 9"):
        engine.add_link((1, 8), (9, 1), LINK, 0)
    with pytest.raises(UserError, match="port 1 of switch s1 is in use"):
        engine.add_open_port(1, 1)
    with pytest.raises(UserError, match="port 5 of switch s2 or port 1 of switch s1 is in use"):
        engine.add_link((2, 5), (1, 1), LINK, 0)
    with pytest.raises(UserError, match="in use"):
        engine.add_link((2, 5), (2, 5), LINK, 0)
    with pytest.raises(UserError, match="port 510 of switch s1 is in use"):
        engine.add_open_port(1, 510)
    for port in (511, 512, 100_000):
        with pytest.raises(UserError, match=r"ports are 0\.\.511, but for the drop port"):
            engine.add_open_port(1, port)
    with pytest.raises(UserError, match=r"CPU port 511 is not in 0\.\.511, or is the drop port 511"):
        engine.add_switch(3, cpu_port=511)
    with pytest.raises(UserError, match="drop port 512 is not in"):
        engine.add_switch(3, drop_port=512)
    with pytest.raises(UserError, match=r"1\.\.8 priority queues, not 9"):
        engine.add_switch(3, priorities=9)
    # Nothing of that took a port.
    engine.add_open_port(2, 5)


def test_frames_go_into_open_ports_alone(engine: Engine, device: EngineDevice) -> None:
    engine.add_switch(2, "s2")
    engine.add_link((1, 8), (2, 1), LINK, 0)
    with pytest.raises(UserError, match="no switch with device id 3"):
        engine.inject(3, 1, b"frame")
    for device_id, port in ((1, 8), (1, 9), (1, 510), (1, 5000), (2, 1)):
        with pytest.raises(UserError, match=f"has no open port {port}"):
            engine.inject(device_id, port, b"frame")


def test_an_interface_that_does_not_exist(engine: Engine, device: EngineDevice) -> None:
    with pytest.raises(UserError, match=r"interface no-such-if: there is no such interface|needs root"):
        engine.add_interface(1, 8, "no-such-if", LINK, 0)
    # The port is still free.
    engine.add_open_port(1, 8)


def test_a_switch_without_program_has_no_tables(engine: Engine) -> None:
    device = engine.add_switch(1, "s1")
    with pytest.raises(KeyError, match="no program"):
        device.state.tables.set_default("table", ActionCall("action"))
    with pytest.raises(KeyError, match="no program"):
        device.state.counters.read_all("counter")


def test_the_manual_clock_and_the_thread_exclude_each_other(engine: Engine) -> None:
    with pytest.raises(RuntimeError, match="advance"):
        engine.start()
    with Engine() as threaded, pytest.raises(RuntimeError, match="manual clock"):
        threaded.advance(1)


def test_a_closed_engine_says_so() -> None:
    engine = Engine()
    device = engine.add_switch(1)
    device.load(instructed_program())
    engine.start()
    engine.close()
    engine.close()
    with pytest.raises(RuntimeError, match="closed"):
        engine.link_statistics()
    with pytest.raises(RuntimeError, match="closed"):
        device.packet_out(b"frame")
    with pytest.raises(RuntimeError, match="closed"):
        device.load(instructed_program())


def test_closing_gives_back_what_is_still_under_way() -> None:
    engine = Engine(manual_clock=True)
    device = engine.add_switch(1)
    device.load(instructed_program())
    engine.add_open_port(1, 1)
    engine.add_open_port(1, 2, LinkModel(rate_bps=1000, delay_us=10**6))
    for _ in range(10):
        engine.inject(1, 1, pass_through(2) + b"x")
    engine.advance(10_000)
    assert engine.statistics().live_packets == 10
    engine.close()


def test_start_and_stop_keep_the_packets() -> None:
    with Engine() as engine:
        engine.add_switch(1).load(instructed_program())
        engine.add_open_port(1, 1)
        engine.inject(1, 1, pass_through(1) + b"before")
        assert not engine.quiesce(0)
        engine.start()
        engine.start()
        assert engine.quiesce(10)
        engine.stop()
        engine.stop()
        engine.inject(1, 1, pass_through(1) + b"between")
        assert [frame for *_, frame in engine.drain()] == [b"before"]
        engine.start()
        assert engine.quiesce(10)
        assert [frame for *_, frame in engine.drain()] == [b"between"]


def test_quiesce_waits_for_what_is_in_flight() -> None:
    with Engine() as engine:
        engine.add_switch(1).load(instructed_program())
        engine.add_open_port(1, 1)
        engine.add_open_port(1, 2, LinkModel(rate_bps=10_000_000, delay_us=20_000))
        engine.start()
        started_ns = engine.now_ns()
        for number in range(20):
            engine.inject(1, 1, pass_through(2) + bytes([number]))
        assert not engine.quiesce(0)
        assert engine.quiesce(10)
        assert engine.now_ns() - started_ns >= 20_000_000
        drained = engine.drain_with_times()
        assert [frame[0] for *_, frame in drained] == list(range(20))
        # 1 byte at 10 Mb/s: the events keep their distance however late the thread was.
        assert all(b - a >= 800 for (a, *_), (b, *_) in itertools.pairwise(drained))


def test_control_calls_get_in_while_packets_circle() -> None:
    """Without a turn for control calls this test would not end."""
    with Engine() as engine:
        devices = [engine.add_switch(number) for number in range(2)]
        for device in devices:
            device.load(instructed_program())
        engine.add_link((0, 1), (1, 1), LINK, 0)
        engine.add_open_port(0, 2)
        engine.start()
        engine.inject(0, 2, pass_through(1, egress=Egress.KEEP))
        before = engine.link_statistics()[0].packets
        while engine.link_statistics()[0].packets < before + 1000:
            pass

        def work(device: EngineDevice) -> None:
            for group in range(1, 200):
                device.replication.set_group(group, [])
                device.replication.delete_group(group)

        threads = [threading.Thread(target=work, args=(device,)) for device in devices]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        devices[0].load(instructed_program())
        assert not engine.quiesce(0.01)


def test_packets_are_served_in_turn_with_one_that_circles() -> None:
    with Engine() as engine:
        for number in range(2):
            engine.add_switch(number).load(instructed_program())
        engine.add_link((0, 1), (1, 1), LINK, 0)
        engine.add_open_port(0, 2)
        engine.start()
        engine.inject(0, 2, pass_through(1, egress=Egress.KEEP))
        engine.inject(0, 2, pass_through(2) + b"served")
        frames: list[tuple[int, int, bytes]] = []
        while not frames:
            frames = engine.drain()
        assert frames == [(0, 2, b"served")]


@pytest.mark.thorough
def test_a_storm_is_limited_by_memory_and_counted() -> None:
    """Two copies of each packet for ever: the pool's limit of 1 GiB holds."""
    with Engine(manual_clock=True) as engine:
        device = engine.add_switch(1)
        device.load(instructed_program())
        engine.add_open_port(1, 1)
        engine.add_link((1, 8), (1, 9), LINK, 0)
        device.replication.set_group(1, [Replica(8), Replica(9)])
        engine.inject(1, 1, pass_through(ingress=Ingress.MULTICAST, argument=1, egress=Egress.KEEP))
        with pytest.raises(RuntimeError, match="circles"):
            engine.advance(0, max_events=60_000)
        statistics = engine.statistics()
        assert statistics.pool_bytes <= 2**30
        assert device.statistics().buffer_drops > 0
