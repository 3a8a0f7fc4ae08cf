"""Pcap files of ports, on a manual clock; read back by Scapy."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest
from scapy.utils import RawPcapReader

from gradbed.common.errors import UserError
from gradbed.switch.engine import Engine, EngineDevice
from gradbed.topo.link import LinkModel
from tests.unit.engine.instructed import exchange, instructed_program, pass_through


def read(path: Path) -> list[tuple[int, bytes]]:
    """(nanoseconds, frame) of each record."""
    with RawPcapReader(str(path)) as reader:
        assert reader.nano
        assert reader.linktype == 1
        return [(meta.sec * 10**9 + meta.usec, frame) for frame, meta in reader]


def test_both_directions_of_a_port(tmp_path: Path) -> None:
    with Engine(manual_clock=True) as engine:
        engine.add_switch(1).load(instructed_program())
        engine.add_open_port(1, 1, LinkModel(delay_us=1_500_000))
        engine.add_open_port(1, 2)
        came, left = tmp_path / "in.pcap", tmp_path / "out.pcap"
        with engine.capture(came, [(1, 1, "in")]), engine.capture(left, [(1, 1, "out")]):
            engine.inject(1, 1, pass_through(2) + b"hello")
            engine.advance(1_000_000)
            engine.inject(1, 2, pass_through(1) + b"world!")
            engine.inject(1, 2, pass_through(2) + b"not there")
            engine.advance(3_000_000)
    # What arrives is recorded at its arrival, what leaves when it leaves.
    assert read(came) == [(1_500_000_000, pass_through(2) + b"hello")]
    assert read(left) == [(1_000_000_000, b"world!")]


def test_a_link_in_memory_and_the_cpu_port(tmp_path: Path) -> None:
    with Engine(manual_clock=True) as engine:
        devices = [engine.add_switch(number, cpu_port=200) for number in (1, 2)]
        for device in devices:
            device.load(instructed_program())
        engine.add_link((1, 8), (2, 8), LinkModel(delay_us=5), 0)
        arrivals = engine.capture(tmp_path / "arrivals.pcap", [(2, 8, "in"), (2, 200, "out")])
        departures = engine.capture(tmp_path / "departures.pcap", [(1, 8, "out"), (1, 200, "in")])
        packet_out = pass_through(8) + pass_through(200) + b"payload"
        devices[0].packet_out(packet_out)
        engine.advance(100)
        assert (arrivals.close(), departures.close()) == (2, 2)
    assert read(departures.file) == [(0, packet_out), (0, packet_out[8:])]
    assert read(arrivals.file) == [(5000, packet_out[8:]), (5000, b"payload")]


def test_what_the_link_loses_has_left(tmp_path: Path) -> None:
    with Engine(manual_clock=True) as engine:
        engine.add_switch(1).load(instructed_program())
        engine.add_open_port(1, 1)
        engine.add_open_port(1, 2, LinkModel(loss=0.5, duplicate=0.5))
        capture = engine.capture(tmp_path / "out.pcap", [(1, 2, "out")])
        assert len(exchange(engine, *(pass_through(2) + bytes([number]) for number in range(100)))) != 100
        assert capture.close() == 100
    assert [frame for _, frame in read(capture.file)] == [bytes([number]) for number in range(100)]


def test_the_file_can_be_watched_and_outgrows_the_buffer(
    engine: Engine, device: EngineDevice, tmp_path: Path
) -> None:
    path = tmp_path / "out.pcap"
    capture = engine.capture(path, [(1, 2, "out")])
    assert read(path) == []
    sent = []
    for number in range(60):
        sent.append(os.urandom(1400) * (6 if number % 9 == 0 else 1))
        engine.inject(1, 1, pass_through(2) + sent[-1])
        if number % 20 == 19:
            engine.advance(1)
            # Capturing goes on, and what has passed is there.
            assert [frame for _, frame in read(path)] == sent
    capture.close()
    assert [frame for _, frame in read(path)] == sent


def test_the_wall_clock(tmp_path: Path) -> None:
    import time

    with Engine() as engine:
        engine.add_switch(1).load(instructed_program())
        engine.add_open_port(1, 1)
        capture = engine.capture(tmp_path / "in.pcap", [(1, 1, "in")])
        engine.start()
        before_ns = time.time_ns()
        engine.inject(1, 1, pass_through(1) + b"now")
        assert engine.quiesce(10) or engine.drain()
        after_ns = time.time_ns()
        capture.close()
    [(time_ns, _)] = read(capture.file)
    # Clocks of the machine may be adjusted meanwhile.
    assert before_ns - 10**9 < time_ns < after_ns + 10**9


def test_a_direction_can_be_in_several_captures_and_once_in_each(
    engine: Engine, device: EngineDevice, tmp_path: Path
) -> None:
    first, second = (engine.capture(tmp_path / f"{name}.pcap", [(1, 2, "out")]) for name in ("first", "second"))
    exchange(engine, pass_through(2) + b"both", after_us=1)
    assert first.close() == 1
    exchange(engine, pass_through(2) + b"one", after_us=1)
    assert second.close() == 2
    assert [[frame for _, frame in read(each.file)] for each in (first, second)] == [[b"both"], [b"both", b"one"]]
    with pytest.raises(UserError, match="'in' of port 1 of switch 1: it is named twice"):
        engine.capture(tmp_path / "third.pcap", [(1, 1, "in"), (1, 2, "in"), (1, 1, "in")])


def test_mistakes(engine: Engine, device: EngineDevice, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="port 9 of switch 1: it does not exist"):
        engine.capture(tmp_path / "x.pcap", [(1, 9, "out")])
    with pytest.raises(UserError, match="no switch with device id 7"):
        engine.capture(tmp_path / "x.pcap", [(7, 1, "out")])
    with pytest.raises(UserError, match=r"cannot write the capture .*: No such file or directory"):
        engine.capture(tmp_path / "missing" / "x.pcap", [(1, 1, "out")])


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk_ends_the_capture_and_not_the_packets(engine: Engine, device: EngineDevice) -> None:
    capture = engine.capture(Path("/dev/full"), [(1, 2, "out")])
    assert exchange(engine, pass_through(2) + b"x", after_us=1) == [(1, 2, b"x")]
    with pytest.raises(UserError, match="is not complete: No space left on device"):
        capture.close()
    assert capture.close() == 0


def test_the_file_is_complete_when_the_engine_closes(tmp_path: Path) -> None:
    path = tmp_path / "out.pcap"
    with Engine(manual_clock=True) as engine:
        engine.add_switch(1).load(instructed_program())
        engine.add_open_port(1, 1)
        engine.capture(path, [(1, 1, "out")])
        engine.inject(1, 1, pass_through(1) + b"last words")
        engine.advance(1)
    # Also in the classic format's words: magic, version 2.4, Ethernet.
    data = path.read_bytes()
    assert struct.unpack("=IHHIIII", data[:24]) == (0xA1B23C4D, 2, 4, 0, 0, 262144, 1)
    assert [frame for _, frame in read(path)] == [b"last words"]
