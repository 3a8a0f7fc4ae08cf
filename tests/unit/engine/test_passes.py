"""Resubmit, recirculate, truncate, and packets that grow."""

from __future__ import annotations

import pytest

from gradbed.switch.engine import Engine, EngineDevice
from gradbed.switch.engine.abi import MAX_FRAME_BYTES
from gradbed.topo.link import LinkModel
from tests.unit.engine.instructed import Egress, Ingress, exchange, instructed_program, pass_through, read_report

NORMAL = 0


@pytest.mark.parametrize(("ingress", "mark"), [(Ingress.RESUBMIT, 42), (Ingress.RESUBMIT_FORGETTING, 0)])
def test_resubmit_starts_again_with_the_same_frame(
    engine: Engine, device: EngineDevice, ingress: Ingress, mark: int
) -> None:
    frame = pass_through(2, ingress, 42, Egress.REPORT) + b"same"
    [(_, port, sent)] = exchange(engine, frame, port=3)
    report = read_report(sent)
    assert (port, report.payload, report.ingress_port) == (2, b"same", 3)
    assert report.packet_length == len(frame)
    # The preserved field is there when the parser begins; unicast makes a normal packet of it.
    assert (report.mark, report.mark_in_parser, report.instance_type) == (mark, mark, NORMAL)
    assert device.statistics().resubmitted == 1
    assert device.statistics().received == 1


@pytest.mark.parametrize(("egress", "mark"), [(Egress.RECIRCULATE, 43), (Egress.RECIRCULATE_FORGETTING, 0)])
def test_recirculate_starts_again_with_the_deparsed_frame(
    engine: Engine, device: EngineDevice, egress: Egress, mark: int
) -> None:
    second = pass_through(4, egress=Egress.REPORT) + b"inner"
    [(_, port, sent)] = exchange(engine, pass_through(2, egress=egress, egress_argument=43) + second, port=3)
    report = read_report(sent)
    assert (port, report.payload, report.ingress_port) == (4, b"inner", 3)
    assert report.packet_length == len(second)
    assert (report.mark, report.mark_in_parser) == (mark, mark)
    assert device.statistics().recirculated == 1
    # The port that it was queued for saw nothing of it.
    assert [row.packets for row in engine.link_statistics() if (row.port, row.direction) == (2, "out")] == [0]


def test_many_recirculations_of_a_growing_frame(engine: Engine, device: EngineDevice) -> None:
    grow = pass_through(2, egress=Egress.GROW, egress_argument=1)
    recirculate = pass_through(2, egress=Egress.RECIRCULATE)
    assert exchange(engine, recirculate * 100 + grow + b"end") == [(1, 2, b"g" * 1024 + b"end")]


def test_packets_going_round_in_circles_are_noticed() -> None:
    with Engine(manual_clock=True) as engine:
        engine.add_switch(1).load(instructed_program())
        engine.add_open_port(1, 1)
        engine.add_link((1, 8), (1, 9), LinkModel(), seed=0)
        engine.inject(1, 1, pass_through(8, egress=Egress.KEEP))
        with pytest.raises(RuntimeError, match="circles"):
            engine.advance(1, max_events=1000)
        assert not engine.quiesce()
        assert engine.statistics().live_packets == 1


@pytest.mark.parametrize(
    "instruction",
    [
        pass_through(2, Ingress.TRUNCATE, 5),
        pass_through(2, egress=Egress.TRUNCATE, egress_argument=5),
        pass_through(2, Ingress.TRUNCATE, 9, Egress.TRUNCATE, 5),
        pass_through(2, Ingress.TRUNCATE, 5, Egress.TRUNCATE, 9),
    ],
    ids=["ingress", "egress", "egress shorter", "ingress shorter"],
)
def test_truncate_shortens_the_deparsed_frame(engine: Engine, device: EngineDevice, instruction: bytes) -> None:
    assert exchange(engine, instruction + b"0123456789") == [(1, 2, b"01234")]


def test_truncate_does_not_lengthen(engine: Engine, device: EngineDevice) -> None:
    assert exchange(engine, pass_through(2, Ingress.TRUNCATE, 200) + b"0123") == [(1, 2, b"0123")]


def test_truncation_ends_with_the_switch(engine: Engine, device: EngineDevice) -> None:
    engine.add_link((1, 8), (1, 9), LinkModel(), seed=0)
    frame = pass_through(8, Ingress.TRUNCATE, 16) + pass_through(2, egress=Egress.REPORT) + b"12345678" + b"cut"
    [(_, _, sent)] = exchange(engine, frame)
    assert read_report(sent).payload == b"12345678"


@pytest.mark.parametrize(
    "first",
    [pass_through(2, Ingress.TRUNCATE, 40, Egress.RECIRCULATE), pass_through(2, egress=Egress.RECIRCULATE)],
    ids=["truncated before", "control"],
)
def test_truncation_ends_with_the_pass(engine: Engine, device: EngineDevice, first: bytes) -> None:
    """What was cut off is gone, but what the next pass adds is not cut off."""
    second = pass_through(2, egress=Egress.GROW, egress_argument=1)
    assert exchange(engine, first + second + b"12345678" * 4) == [(1, 2, b"g" * 1024 + b"12345678" * 4)]


@pytest.mark.parametrize("kilobytes", [1, 5, 8])
def test_packets_grow_into_larger_buffers(engine: Engine, device: EngineDevice, kilobytes: int) -> None:
    sent = exchange(engine, pass_through(2, egress=Egress.GROW, egress_argument=kilobytes) + b"x" * 1000)
    assert sent == [(1, 2, b"g" * 1024 * kilobytes + b"x" * 1000)]


def test_a_packet_that_outgrows_the_longest_frame_is_dropped(engine: Engine, device: EngineDevice) -> None:
    engine.inject(1, 1, pass_through(2, egress=Egress.GROW, egress_argument=9) + b"x" * 60_000)
    engine.inject(1, 1, pass_through(2, egress=Egress.GROW, egress_argument=200))
    engine.advance(0)
    assert engine.drain() == []
    assert device.statistics().buffer_drops == 2


def test_the_longest_frame_passes_and_a_longer_one_is_refused(engine: Engine, device: EngineDevice) -> None:
    longest = pass_through(2, egress=Egress.KEEP) + b"x" * (MAX_FRAME_BYTES - 8)
    assert exchange(engine, longest) == [(1, 2, longest)]
    with pytest.raises(ValueError, match="65553"):
        engine.inject(1, 1, longest + b"x")
    with pytest.raises(ValueError, match="65553"):
        device.packet_out(longest + b"x")


def test_memory_grows_with_what_is_waiting_and_no_further(engine: Engine, device: EngineDevice) -> None:
    def burst() -> int:
        assert len(exchange(engine, *(pass_through(2) + b"x" * 500 for _ in range(500)))) == 500
        return engine.statistics().pool_bytes

    first = burst()
    assert [burst() for _ in range(5)] == [first] * 5


def test_a_frame_of_no_bytes_is_not_sent(engine: Engine, device: EngineDevice) -> None:
    assert exchange(engine, pass_through(2)) == []
    assert device.statistics().buffer_drops == 1
