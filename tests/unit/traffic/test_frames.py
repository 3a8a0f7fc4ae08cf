"""Frames of the traffic: headers as Scapy reads them, and the trailer, wherever the frame ends."""

from __future__ import annotations

import numpy as np
import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from gradbed.common.errors import UserError
from gradbed.formats.traffic import TRAILER_BYTES, WARM_UP
from gradbed.hosts.traffic.config import Sizes, TrafficStream
from gradbed.hosts.traffic.frames import FIRST_PORT, FrameMaker, trailers
from gradbed.hosts.traffic.schedule import TrafficSchedule
from tests.unit.traffic.test_schedule import all_packets, config, host, stream


@pytest.mark.parametrize("sizes", [Sizes(frame_bytes=64), Sizes(kind="uniform", frame_bytes=1514)])
def test_frames_are_datagrams_to_their_receiver(sizes: Sizes) -> None:
    told = config(stream(packets=20, flows=2, tos=3), stream(packets=20, number=3), sizes=sizes, udp_port=7012)
    packets = all_packets(TrafficSchedule(told, 0))
    rows, lengths = FrameMaker(told).frames(packets)
    assert (lengths is None) == (sizes.kind == "fixed")
    for place, row in enumerate(rows):
        length = int(packets.frame_bytes[place])
        text = row[:length].tobytes()
        read = Ether(text)
        receiver = host(2 if packets.stream[place] == 0 else 3)
        assert (read.src, read.dst) == (host(1)["mac"], host(1)["gateway_mac"])
        assert (read[IP].src, read[IP].dst, read[IP].len) == (host(1)["ip"], receiver["ip"], length - 14)
        assert read[IP].tos == (3 if packets.stream[place] == 0 else 0)
        assert (read[UDP].sport, read[UDP].dport) == (FIRST_PORT + packets.flow[place], 7012)
        assert read[UDP].len == length - 34
        checksum = read[IP].chksum
        del read[IP].chksum
        assert Ether(bytes(read))[IP].chksum == checksum


def test_trailers_are_found_from_the_end() -> None:
    told = config(stream(packets=9), sizes=Sizes(kind="uniform", frame_bytes=900), warm_up_us=3000)
    packets = all_packets(TrafficSchedule(told, 0))
    rows, lengths = FrameMaker(told).frames(packets)
    assert lengths is not None
    buffer = np.zeros((12, 2048), np.uint8)
    sizes = np.zeros(11, np.uint32)
    # A header of 30 bytes came on the way; two foreign frames are among them, one too short for a trailer.
    for place, (row, length) in enumerate(zip(rows, lengths, strict=True)):
        buffer[place, 30 : 30 + length] = row[:length]
        sizes[place] = 30 + length
    sizes[9], sizes[10] = 200, TRAILER_BYTES - 1
    found, chosen = trailers(buffer, sizes)
    assert chosen.tolist() == [True] * 9 + [False] * 2
    assert found["sequence"].tolist() == list(range(9))
    assert set(found["receiver"].tolist()) == {2}
    assert (found["source"] >= WARM_UP).tolist() == (packets.measured == 0).tolist()
    assert 0 < packets.measured.sum() < 9


def test_headers_of_ones_own_are_kept() -> None:
    headers = ("ab" * 30, "cd" * 30)
    told = config(TrafficStream(destination=host(2), receiver=2, rate_bps=8e6, packets=4, flows=2, headers=headers))
    rows, _ = FrameMaker(told).frames(all_packets(TrafficSchedule(told, 0)))
    assert [row[:30].tobytes().hex() for row in rows] == [headers[0], headers[1]] * 2
    assert (rows[:, 30:-TRAILER_BYTES] == 0).all()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"sizes": Sizes(kind="uniform")}, "a fixed size"),
        ({"sizes": Sizes(frame_bytes=64)}, "no room for headers of 50"),
    ],
)
def test_headers_that_do_not_fit_are_refused(fields: dict[str, Sizes], message: str) -> None:
    told = config(
        TrafficStream(destination=host(2), receiver=2, rate_bps=8e6, packets=4, headers=("ab" * 50,)), **fields
    )
    with pytest.raises(UserError, match=message):
        FrameMaker(told)
