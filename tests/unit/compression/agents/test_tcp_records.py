"""Parts on a stream: put together again wherever the stream was cut."""

from __future__ import annotations

import numpy as np
import pytest

from gradbed.hosts.agents.config import AgentAddress
from gradbed.hosts.compressors.content import Content, written
from gradbed.hosts.systems.compression.frames import RECORD_BYTES, Route, end_frame, part_frames
from gradbed.hosts.systems.compression.gradients import Assembly
from gradbed.hosts.systems.compression.tcp import LENGTH_BYTES, RecordReader, records

OWN = AgentAddress(name="h2", ip="10.0.0.2", mac="02:00:00:00:00:02", gateway_mac="02:00:00:00:01:00")
ROUTE = Route(7, OWN, "10.0.0.1", OWN.gateway_mac)


@pytest.mark.parametrize("cut", [1, 7, 1000, 100_000])
def test_a_gradient_comes_whole_however_the_stream_is_cut(cut: int) -> None:
    values = np.random.default_rng(1).integers(-(2**31), 2**31, 2000)
    content = Content(9000, values, 32, 1, np.arange(0, 8000, 4))
    frames = part_frames(ROUTE, written(content, RECORD_BYTES + LENGTH_BYTES), 3, 0)
    data = records([*frames, end_frame(ROUTE, 3, len(frames))])
    reader, gradient = RecordReader(), Assembly(9000)
    for start in range(0, len(data), cut):
        assert gradient.end_sequence is None
        for record in reader.take(data[start : start + cut]):
            gradient.add(record)
    assert gradient.end_sequence == len(frames) and gradient.rejected == 0
    assert np.array_equal(gradient.values, content.decoded())


@pytest.mark.parametrize("data", [b"\0\5\1\2\3\4\5", RECORD_BYTES.to_bytes(2, "big") + bytes(RECORD_BYTES)])
def test_what_is_no_record_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="a record of"):
        RecordReader().take(data)
