"""Unicast, drops, and frames through several switches."""

from __future__ import annotations

from gradbed.switch.engine import Engine, EngineDevice
from gradbed.topo.link import LinkModel
from tests.unit.engine.instructed import (
    DROP,
    Egress,
    Ingress,
    exchange,
    instructed_program,
    pass_through,
    read_report,
)


def test_unicast_runs_ingress_egress_and_deparser(engine: Engine, device: EngineDevice) -> None:
    [(device_id, port, frame)] = exchange(engine, pass_through(2, egress=Egress.REPORT) + b"payload")
    assert (device_id, port) == (1, 2)
    report = read_report(frame)
    assert (report.ingress_port, report.egress_port, report.instance_type) == (1, 2, 0)
    assert report.packet_length == 8 + len(b"payload")
    assert report.payload == b"payload"


def test_a_packet_may_leave_through_the_port_it_came_in(engine: Engine, device: EngineDevice) -> None:
    assert exchange(engine, pass_through(3) + b"back", port=3) == [(1, 3, b"back")]


def test_drop_in_ingress_drop_in_egress_and_a_port_that_does_not_exist(engine: Engine, device: EngineDevice) -> None:
    assert exchange(engine, pass_through(DROP), pass_through(2, egress=Egress.DROP), pass_through(77) + b"x") == []
    statistics = device.statistics()
    assert statistics.received == 3
    assert (statistics.ingress_drops, statistics.egress_drops, statistics.no_port_drops) == (1, 1, 1)


def test_a_frame_too_short_to_parse_reaches_ingress_with_a_parser_error(engine: Engine, device: EngineDevice) -> None:
    assert exchange(engine, b"short") == []
    assert device.statistics().ingress_drops == 1


def test_without_program_packets_are_dropped_and_counted(engine: Engine) -> None:
    bare = engine.add_switch(7)
    engine.add_open_port(7, 1)
    assert exchange(engine, pass_through(1), device_id=7) == []
    assert bare.program is None
    assert bare.statistics().no_program_drops == 1
    assert bare.statistics().received == 0


def test_frames_pass_a_line_of_switches_in_memory(engine: Engine) -> None:
    hops = 6
    for number in range(hops):
        engine.add_switch(number).load(instructed_program())
    for number in range(hops - 1):
        engine.add_link((number, 2), (number + 1, 1), LinkModel(), seed=number)
    engine.add_open_port(0, 1)
    engine.add_open_port(hops - 1, 2)
    engine.inject(0, 1, pass_through(2) * hops + b"there")
    sent = exchange(engine, pass_through(1) * hops + b"and back", device_id=hops - 1, port=2)
    assert sorted(sent) == [(0, 1, b"and back"), (hops - 1, 2, b"there")]
    out = {(row.device_id, row.port): row for row in engine.link_statistics() if row.direction == "out"}
    assert out[0, 2].packets == 1
    assert out[0, 2].bytes == 8 * (hops - 1) + len(b"there")
    assert out[1, 1].packets == 1


def test_a_link_may_connect_two_ports_of_one_switch(engine: Engine, device: EngineDevice) -> None:
    engine.add_link((1, 8), (1, 9), LinkModel(), seed=0)
    [(_, port, frame)] = exchange(engine, pass_through(8) + pass_through(2, egress=Egress.REPORT))
    assert port == 2
    assert read_report(frame).ingress_port == 9


def test_timestamps_count_microseconds_since_the_switch_was_added(engine: Engine) -> None:
    engine.advance(1000)
    engine.add_switch(1).load(instructed_program())
    engine.add_open_port(1, 1)
    engine.advance(234.9)
    [(_, _, frame)] = exchange(engine, pass_through(1, egress=Egress.REPORT))
    report = read_report(frame)
    assert report.ingress_global_timestamp == report.egress_global_timestamp == 234


def test_several_instructions_at_once_keep_their_order(engine: Engine, device: EngineDevice) -> None:
    sent = exchange(engine, *(pass_through(2) + bytes([number]) for number in range(100)))
    assert [frame for _, _, frame in sent] == [bytes([number]) for number in range(100)]


def test_log_and_digest_without_a_listener_cost_nothing(engine: Engine, device: EngineDevice) -> None:
    assert len(exchange(engine, pass_through(2, Ingress.LOG) + b"x", pass_through(2, Ingress.DIGEST) + b"x")) == 2
    assert device.statistics().host_event_drops == 0
