"""Pcap files as ports."""

from __future__ import annotations

import os
import re
import struct
import time
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradbed.common.errors import UserError
from gradbed.switch.engine import Engine
from gradbed.switch.simple_switch.options import SwitchOptions, read_options
from gradbed.switch.simple_switch.packet_files import PacketFiles, read_pcap
from tests.unit.engine.instructed import instructed_program, pass_through

HEADER = struct.pack("<IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
PATIENCE_S = 10.0


def record(time_s: float, frame: bytes) -> bytes:
    seconds, fraction = divmod(round(time_s * 1e6), 1_000_000)
    return struct.pack("<4I", seconds, fraction, len(frame), len(frame)) + frame


class Stream(BytesIO):
    name = "x.pcap"


@pytest.mark.parametrize(("magic", "unit"), [(0xA1B2C3D4, 1e-6), (0xA1B23C4D, 1e-9)])
@pytest.mark.parametrize("order", "<>")
def test_all_four_formats(magic: int, unit: float, order: str) -> None:
    data = struct.pack(order + "IHHIIII", magic, 2, 4, 0, 0, 65535, 1)
    data += struct.pack(order + "4I", 5, 7, 3, 3) + b"abc" + struct.pack(order + "4I", 6, 0, 0, 1500)
    assert list(read_pcap(Stream(data))) == [(5 + 7 * unit, b"abc"), (6.0, b"")]


@given(st.binary(max_size=60), st.booleans())
def test_other_bytes_are_an_error(data: bytes, with_header: bool) -> None:
    stream = Stream((HEADER if with_header else b"") + data)
    try:
        frames = list(read_pcap(stream))
    except UserError as error:
        assert re.fullmatch(
            r"x.pcap (is not a pcap file|ends in the middle of a packet|has a packet .* damaged)", str(error)
        )
    else:
        assert sum(16 + len(frame) for _, frame in frames) == len(data)


@pytest.fixture
def options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SwitchOptions:
    monkeypatch.chdir(tmp_path)
    return read_options("simple_switch", ["x.json", "--device-id", "3", "--use-files", "0"])


def read_frames(path: Path) -> list[bytes]:
    with path.open("rb") as stream:
        return [frame for _, frame in read_pcap(stream)]


def sent(path: Path, count: int) -> list[bytes]:
    """Frames of an output file, once it has so many."""
    deadline = time.monotonic() + PATIENCE_S
    while len(frames := read_frames(path)) < count and time.monotonic() < deadline:
        time.sleep(0.002)
    return frames


def test_files_are_replayed_together_in_order_of_time(options: SwitchOptions, tmp_path: Path) -> None:
    one = b"".join(record(10 + t, pass_through(2) + text) for t, text in ((0, b"first"), (2000, b"third")))
    two = b"".join(record(10 + t, pass_through(2) + text) for t, text in ((1000, b"second"), (3000, b"fourth")))
    (tmp_path / "a_in.pcap").write_bytes(HEADER + one)
    (tmp_path / "b_in.pcap").write_bytes(HEADER + two)
    with Engine() as engine:
        engine.add_switch(3).load(instructed_program())
        files = PacketFiles(engine, options, 0)
        files.add_port(1, "a")
        files.add_port(2, "b")
        engine.start()
        with files:
            frames = sent(tmp_path / "b_out.pcap", 4)
        assert frames == [b"first", b"second", b"third", b"fourth"]
        assert sent(tmp_path / "a_out.pcap", 0) == []


def test_packets_through_pipes_wait_for_earlier_ones(options: SwitchOptions, tmp_path: Path) -> None:
    for name in "ab":
        os.mkfifo(tmp_path / f"{name}_in.pcap")
    with Engine() as engine:
        engine.add_switch(3).load(instructed_program())
        files = PacketFiles(engine, options, 0)
        files.add_port(1, "a")
        files.add_port(2, "b")
        engine.start()
        with files:
            a = (tmp_path / "a_in.pcap").open("wb", buffering=0)
            b = (tmp_path / "b_in.pcap").open("wb", buffering=0)
            a.write(HEADER + record(10, pass_through(1) + b"second"))
            # Something earlier may still come.
            assert read_frames(tmp_path / "a_out.pcap") == []
            b.write(HEADER + record(9.99, pass_through(1) + b"first"))
            b.close()
            assert sent(tmp_path / "a_out.pcap", 2) == [b"first", b"second"]
            a.write(record(10.01, pass_through(1) + b"third"))
            assert sent(tmp_path / "a_out.pcap", 3)[-1] == b"third"
            a.close()


def test_it_ends_while_it_waits_for_a_pipe(options: SwitchOptions, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a_in.pcap")
    with Engine() as engine:
        engine.add_switch(3)
        files = PacketFiles(engine, options, 0)
        files.add_port(1, "a")
        with files:
            pass


def test_a_file_that_is_not_there(options: SwitchOptions) -> None:
    with Engine() as engine:
        engine.add_switch(3)
        with pytest.raises(UserError, match=r"there is no a_in\.pcap"):
            PacketFiles(engine, options, 0).add_port(1, "a")
