"""An agent's end of a job over a socket of the test's own: what is wanted, and what is counted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from gradbed.formats.aggregation import Flags
from gradbed.formats.lanes import frame_bytes
from gradbed.hosts.agents.config import parse_config
from gradbed.hosts.systems.aggregation.config import AggregationJob
from gradbed.hosts.systems.aggregation.endpoint import GradientEndpoint, label_array
from gradbed.hosts.systems.aggregation.gradient import Gradient, gradient_frame

LANES = 32
SERVER, WORKER_0, WORKER_1, STRANGER, GROUP = "10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.9", "239.66.0.5"


class FakeSocket:
    """Keeps what is sent; receives what the test puts in, one batch per call."""

    def __init__(self, takes: int = 1000) -> None:
        self.sent: list[bytes] = []
        self.batches: list[list[bytes]] = []
        self._takes = takes

    def send(self, frames: np.ndarray) -> int:
        taken = frames[: self._takes]
        self.sent += [row.tobytes() for row in taken]
        return len(taken)

    def receive(self) -> tuple[np.ndarray, np.ndarray]:
        buffer = np.zeros((8, 2048), np.uint8)
        batch = self.batches.pop(0) if self.batches else []
        for row, frame in zip(buffer, batch, strict=False):
            row[: len(frame)] = np.frombuffer(frame, np.uint8)
        return buffer, np.array([len(frame) for frame in batch], np.uint32)

    def drops(self) -> int:
        return 3


def address(name: str, ip: str) -> dict[str, str]:
    last = int(ip.rsplit(".", 1)[1])
    return {"name": name, "ip": ip, "mac": f"02:00:00:00:00:{last:02x}", "gateway_mac": "02:00:00:00:01:00"}


JOB = parse_config(
    AggregationJob,
    {
        "job": 5,
        "lanes": LANES,
        "designations": [
            [
                {"switch_number": 11, "fan_in": 1, "next_switch": 12, "next_fan_in": 2},
                {"switch_number": 12, "fan_in": 2},
            ]
        ]
        * 2,
        "workers": [{"index": index, **address(f"w{index}", ip)} for index, ip in enumerate((WORKER_0, WORKER_1))],
        "server": address("s", SERVER),
    },
)


def server_endpoint(fake: FakeSocket) -> GradientEndpoint:
    return GradientEndpoint(JOB, JOB.server, JOB.workers, fake, sends_acknowledgements=True)  # type: ignore[arg-type]


def worker_endpoint(fake: FakeSocket) -> GradientEndpoint:
    return GradientEndpoint(
        JOB,
        JOB.workers[1],
        [JOB.server],
        fake,  # type: ignore[arg-type]
        sends_acknowledgements=False,
        group_ips=[GROUP],
    )


def frame(src_ip: str, dst_ip: str, **fields: Any) -> bytes:
    values = {"job": 5, "packet_number": 0, "worker_bitmap": 1, "lanes": [0] * LANES, **fields}
    mac = "02:00:00:00:00:77"
    return bytes(gradient_frame(src_mac=mac, dst_mac=mac, src_ip=src_ip, dst_ip=dst_ip, **values))


def test_a_worker_sends_through_its_gateway_towards_the_designated_switches() -> None:
    fake = FakeSocket()
    endpoint = worker_endpoint(fake)
    lanes = np.arange(2 * LANES, dtype=np.int32).reshape(2, LANES)
    labels = label_array(JOB.designations_of(1))
    endpoint.send(lanes, packet_numbers=[6, 7], worker_bitmap=2, dst_ip=0x0A000001, flags=[0, 2], labels=labels)
    first, second = map(Ether, fake.sent)
    assert (first.src, first.dst) == ("02:00:00:00:00:03", "02:00:00:00:01:00")
    assert (first[IP].src, first[IP].dst, first[UDP].sport, first[UDP].dport) == (WORKER_1, SERVER, 11, 0x4742)
    assert first[IP].tos == 0b10  # ECT(0)
    assert [f[Gradient].packet_number for f in (first, second)] == [6, 7]
    assert [f[Gradient].switch_number for f in (first, second)] == [11, 12]
    assert [int(f[Gradient].flags) for f in (first, second)] == [0, 2]
    assert [(f[Gradient].fan_in, f[Gradient].next_switch, f[Gradient].next_fan_in) for f in (first, second)] == [
        (1, 12, 2),
        (2, 0, 0),
    ]
    assert (second[Gradient].job, second[Gradient].worker_bitmap) == (5, 2)
    assert second[Gradient].magnitude == 2 * LANES - 1
    assert second[Gradient].lanes == list(range(LANES, 2 * LANES))
    assert endpoint.report()["gradient_sent"] == {"frames": 2, "bytes": 2 * frame_bytes(LANES)}


def test_frames_that_begin_like_wanted_ones_are_taken_as_if_they_were_the_first() -> None:
    wanted = frame(SERVER, WORKER_1, flags=Flags.ACK)
    flipped = [bytes(byte ^ (place == at) for place, byte in enumerate(wanted)) for at in range(60)]
    nack = frame(SERVER, WORKER_1, flags=Flags.ACK | Flags.NACK, packet_number=9, lanes=[])
    fake = FakeSocket()
    endpoint = worker_endpoint(fake)
    fake.batches.append([wanted, wanted])
    assert endpoint.receive() is not None
    taken = 0
    for each in (*flipped, *flipped, wanted[:-4], wanted + bytes(4), nack):
        fake.batches.append([wanted, each, wanted])
        alone = FakeSocket()
        first = worker_endpoint(alone)
        alone.batches.append([wanted, each, wanted])
        before = endpoint.report()
        received, expected = endpoint.receive(), first.receive()
        assert received is not None and expected is not None
        assert (received.frames.tobytes(), received.requests) == (expected.frames.tobytes(), expected.requests)
        for name in ("malformed", "misdirected"):
            assert endpoint.report()[name] - before[name] == first.report()[name]
        frames = endpoint.report()["acknowledgement_received"]["frames"]
        assert (
            frames - before["acknowledgement_received"]["frames"]
            == (first.report()["acknowledgement_received"]["frames"])
        )
        taken += len(received.frames) == 3
    assert 0 < taken < 2 * len(flipped)


def test_frames_that_the_kernel_refuses_are_failures_not_traffic() -> None:
    endpoint = server_endpoint(FakeSocket(takes=1))
    lanes = np.zeros((3, LANES), np.int32)
    endpoint.send(lanes, packet_numbers=[0, 1, 2], worker_bitmap=3, dst_ip=[1, 2, 3], flags=1)
    report = endpoint.report()
    assert report["acknowledgement_sent"] == {"frames": 1, "bytes": frame_bytes(LANES)}
    assert report["send_failures"] == 2
    assert report["socket_drops"] == 3


@pytest.mark.parametrize(
    "unwanted",
    [
        frame(WORKER_0, SERVER, job=6),
        frame(WORKER_0, SERVER, flags=1),
        frame(STRANGER, SERVER),
        frame(WORKER_0, STRANGER),
    ],
)
def test_a_server_takes_gradients_of_its_workers_only(unwanted: bytes) -> None:
    fake = FakeSocket()
    endpoint = server_endpoint(fake)
    fake.batches = [[frame(WORKER_0, SERVER, packet_number=1), unwanted, frame(WORKER_1, SERVER, packet_number=2)]]
    received = endpoint.receive()
    assert received is not None
    assert received.frames["packet_number"].tolist() == [1, 2]
    report = endpoint.report()
    assert report["misdirected"] == 1
    # Unwanted or not, it came through the switch's port.
    assert report["gradient_received"]["frames"] + report["acknowledgement_received"]["frames"] == 3


def test_a_worker_takes_sums_of_its_server_to_itself_and_the_group() -> None:
    fake = FakeSocket()
    endpoint = worker_endpoint(fake)
    fake.batches = [
        [
            frame(SERVER, WORKER_1, flags=1, packet_number=1),
            frame(SERVER, GROUP, flags=1, packet_number=2),
            frame(SERVER, WORKER_0, flags=1, packet_number=3),
            frame(SERVER, WORKER_1, flags=0, packet_number=4),
            b"rubbish",
        ],
        [frame(SERVER, GROUP, flags=1)] * 2,
    ]
    received = endpoint.receive()
    assert received is not None
    assert received.frames["packet_number"].tolist() == [1, 2]
    endpoint.drain()
    assert endpoint.receive() is None
    report = endpoint.report()
    assert (report["acknowledgement_received"]["frames"], report["gradient_received"]["frames"]) == (5, 1)
    assert (report["misdirected"], report["malformed"]) == (2, 1)


def test_requests_of_the_server_are_short_acknowledgements() -> None:
    fake = FakeSocket()
    server = server_endpoint(fake)
    server.send(
        np.empty((1, 0), np.int32),
        packet_numbers=[7],
        worker_bitmap=3,
        dst_ip=0x0A000003,
        flags=Flags.ACK | Flags.NACK,
    )
    assert server.report()["acknowledgement_sent"] == {"frames": 1, "bytes": frame_bytes(0)}
    other = frame(SERVER, WORKER_0, flags=9, lanes=[], packet_number=8)
    fake.batches = [[fake.sent[0], frame(SERVER, WORKER_1, flags=1, packet_number=1), other]]
    endpoint = worker_endpoint(fake)
    received = endpoint.receive()
    assert received is not None
    assert received.requests == [7]
    assert received.frames["packet_number"].tolist() == [1]
    report = endpoint.report()
    assert report["acknowledgement_received"] == {"frames": 3, "bytes": 2 * frame_bytes(0) + frame_bytes(LANES)}
    assert (report["misdirected"], report["malformed"]) == (1, 0)
