"""Workers, three switches and a server on a network that loses, repeats and reorders whatever it likes.

The switches are real: p4src/aggregation.p4 behind open ports of an engine whose clock stands still. Everything else
is a model of what the packets' description promises: workers that send and resend, a server that merges by bitmap and
asks for single copies. The network is a bag of frames under way; a test says which comes next, and what of it.

A worker's gradient is a power of 16, so that the hexadecimal digits of a sum say how often it contains each worker.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from gradbed.formats.aggregation import Flags
from gradbed.formats.lanes import frame_bytes
from gradbed.hosts.protocols.frames import Frames, as_bytes
from gradbed.hosts.systems.aggregation.gradient_frames import pack_frames, parse_frames
from gradbed.switch.codegen import BuiltProgram
from gradbed.switch.device import ActionCall, KeyMatch
from gradbed.switch.engine import Engine
from tests.unit.hosts.aggregation.labels import labels as designation_labels
from tests.unit.hosts.aggregation.slot_model import Label

LANES, SLOTS = 32, 2
WORKERS, FRAGMENTS = 4, 3
NEAR, FAR = (1, 2), 3
"""Switch numbers: two of the first level, and the server's ToR."""
JOB, OTHER_JOB = 1, 2
SERVER_IP = 0x0A000002
RECLAIM_DISTANCE = 4096
IN_PORT, OUT_PORT = 0, 1
EVERYBODY = (1 << WORKERS) - 1
SERVER = "server"


def labels(first: Sequence[int], second: bool) -> list[Label]:
    """Of the workers whose first switches these are (0: none); `second`: sums of NEAR go on to FAR."""
    return [label for (label,) in designation_labels([[number] for number in first], FAR if second else 0)]


def digits(bitmap: int) -> int:
    """The sum of the gradients of the workers in the bitmap, each once."""
    return sum(16**worker for worker in range(WORKERS) if bitmap >> worker & 1)


@dataclass
class Server:
    """Merges by bitmap (hosts/systems/aggregation/collector.py says how and why)."""

    bitmaps: list[int] = field(default_factory=lambda: [0] * FRAGMENTS)
    sums: list[int] = field(default_factory=lambda: [0] * FRAGMENTS)

    def accept(self, number: int, bitmap: int, lane: int, flags: int) -> tuple[bool, int]:
        """(whether the sum is newly complete, bitmap of the workers to be asked for single copies)."""
        have = self.bitmaps[number]
        if have & bitmap and (have & ~bitmap or have == bitmap):
            dropped_for = bitmap & ~have
            return False, dropped_for
        self.sums[number] = lane + (0 if have & bitmap else self.sums[number])
        self.bitmaps[number] |= bitmap
        missing = EVERYBODY & ~self.bitmaps[number]
        return missing == 0, missing if flags & Flags.OVERFLOW else 0


class LossyNetwork:
    """Use as a context manager. under_way: (place, frame); places are switch numbers, SERVER or "worker 2". past: all
    that ever were under way."""

    def __init__(
        self,
        program: BuiltProgram,
        label: Mapping[tuple[int, int], Label],
        *,
        static: bool,
        magnitudes: Sequence[int],
    ) -> None:
        """label: by worker and fragment; magnitudes: what the workers say of their lanes."""
        self.label = label
        self.magnitudes = magnitudes
        self.server = Server()
        self.under_way: list[tuple[int | str, bytes]] = []
        self.past: list[tuple[int | str, bytes]] = []
        self.sent: set[tuple[int, int]] = set()
        self.answered: set[tuple[int, int]] = set()
        self._engine = Engine(manual_clock=True)
        self._switches = {number: self._engine.add_switch(number) for number in (*NEAR, FAR)}
        for number, device in self._switches.items():
            for port in (IN_PORT, OUT_PORT):
                self._engine.add_open_port(number, port)
            device.load(program)
            device.state.tables.insert(
                "AggregationIngress.forwarding.ipv4_routes",
                [KeyMatch(0, prefix_bits=0)],
                ActionCall("AggregationIngress.forwarding.forward", (OUT_PORT, 0x020000000001)),
                0,
            )
            for job in (JOB, OTHER_JOB):
                action = "aggregate_indexed" if static else "aggregate_hashed"
                device.state.tables.insert(
                    "AggregationIngress.aggregation.policy.roles",
                    [KeyMatch(job)],
                    ActionCall(
                        f"AggregationIngress.aggregation.policy.{action}", (number, 0, SLOTS, RECLAIM_DISTANCE)
                    ),
                    0,
                )

    def __enter__(self) -> LossyNetwork:
        return self

    def __exit__(self, *exception: object) -> None:
        self._engine.close()

    # ---- What workers do ----

    def send(self, worker: int, number: int) -> None:
        """First a plain packet, then resends, until the sum is there."""
        self._send_again(worker, number, Flags.RESEND)

    def retry(self, worker: int, number: int) -> None:
        """As `send`, but what is not the first leaves sums in their slots."""
        self._send_again(worker, number, Flags.RETRY)

    def _send_again(self, worker: int, number: int, again: Flags) -> None:
        if (worker, number) in self.answered:
            return
        flags = again if (worker, number) in self.sent else 0
        self.sent.add((worker, number))
        self._send_gradient(worker, number, flags, self.label[worker, number])

    def _send_gradient(self, worker: int, number: int, flags: int, label: Label, job: int = JOB) -> None:
        lanes = np.full((1, LANES), 16**worker, np.int32)
        frame = _frame(
            lanes,
            job=job,
            packet_number=number,
            worker_bitmap=1 << worker,
            flags=flags,
            switch_number=label.switch_number,
            fan_in=label.fan_in,
            next_switch=label.next_switch,
            next_fan_in=label.next_fan_in,
            magnitude=self.magnitudes[worker],
        )
        self._put_under_way((label.switch_number or SERVER, frame))

    def _put_under_way(self, flight: tuple[int | str, bytes]) -> None:
        self.under_way.append(flight)
        self.past.append(flight)

    # ---- What the network does ----

    def deliver_all(self) -> None:
        while self.under_way:
            self.deliver(0)

    def deliver(self, index: int) -> None:
        """Let a frame arrive, and put what it brings about under way."""
        place, frame = self.under_way.pop(index)
        if place == SERVER:
            self._at_server(_parsed(frame))
        elif isinstance(place, int):
            for out in self._through(place, frame):
                self._towards_server(out)
        else:
            self._at_worker(int(place.removeprefix("worker ")), frame)

    def _through(self, number: int, frame: bytes) -> list[bytes]:
        self._engine.inject(number, IN_PORT, frame)
        self._engine.advance(1)
        return [out for _, _, out in self._engine.drain()]

    def _towards_server(self, frame: bytes) -> None:
        header = _parsed(frame)
        if header["flags"] & Flags.ACK:
            return  # to the workers it goes by itself
        if header["job"] == JOB:
            assert set(header["lanes"].tolist()) == {digits(int(header["worker_bitmap"]))}
            self._put_under_way((int(header["switch_number"]) or SERVER, frame))

    # ---- What the server does ----

    def _at_server(self, header: np.void) -> None:
        number, flags = int(header["packet_number"]), int(header["flags"])
        bitmap = int(header["worker_bitmap"])
        complete, ask = self.server.accept(number, bitmap, int(header["lanes"][0]), flags)
        if complete or (flags & Flags.RESEND and self.server.bitmaps[number] == EVERYBODY):
            self._acknowledge(number)
        for worker in range(WORKERS):
            if ask >> worker & 1:
                request = _frame(
                    np.empty((1, 0), np.int32),
                    job=JOB,
                    packet_number=number,
                    worker_bitmap=1 << worker,
                    flags=Flags.ACK | Flags.NACK,
                )
                self._put_under_way((f"worker {worker}", request))

    def _acknowledge(self, number: int) -> None:
        lanes = np.full((1, LANES), self.server.sums[number], np.int32)
        frame = _frame(lanes, job=JOB, packet_number=number, worker_bitmap=EVERYBODY, flags=Flags.ACK)
        for place in (*NEAR, FAR, *(f"worker {worker}" for worker in range(WORKERS))):
            self._put_under_way((place, frame))

    def _at_worker(self, worker: int, frame: bytes) -> None:
        header = _parsed(frame)
        number = int(header["packet_number"])
        if not header["flags"] & Flags.NACK:
            assert set(header["lanes"].tolist()) == {digits(EVERYBODY)}
            self.answered.add((worker, number))
        elif (worker, number) not in self.answered:
            self._send_gradient(worker, number, Flags.RESEND, Label())

    # ---- What else may happen ----

    def forget(self, number: int) -> None:
        """A switch loses its slots."""
        for slot in range(SLOTS):
            self._switches[number].state.registers.write("AggregationIngress.aggregation.slot_owner", slot, 0)

    def occupy(self, number: int, packet_number: int) -> None:
        """Another job's fragment comes by, and stays if there is room."""
        self._send_gradient(0, packet_number, 0, Label(number, fan_in=WORKERS), job=OTHER_JOB)

    def vacate(self, number: int, packet_number: int) -> None:
        """Another job's fragment is answered."""
        frame = _frame(
            np.zeros((1, LANES), np.int32),
            job=OTHER_JOB,
            packet_number=packet_number,
            worker_bitmap=1,
            flags=Flags.ACK,
        )
        self._put_under_way((number, frame))

    # ---- And in the end ----

    def settle(self, patience: int) -> bool:
        """From here on nothing is lost, and workers are patient: whether all sums get to everybody."""
        for _ in range(patience):
            self.deliver_all()
            waiting = [
                (worker, number)
                for number in range(FRAGMENTS)
                for worker in range(WORKERS)
                if (worker, number) not in self.answered
            ]
            if not waiting:
                return True
            for worker, number in waiting:
                self.send(worker, number)
        return False


def _frame(lanes: np.ndarray, **fields: int) -> bytes:
    mac = np.zeros(6, np.uint8)
    frames = pack_frames(lanes, src_mac=mac, dst_mac=mac, src_ip=0x0A000101, dst_ip=SERVER_IP, **fields)
    return as_bytes(frames)[0].tobytes()


def _parsed(frame: bytes) -> np.void:
    buffer = np.frombuffer(frame.ljust(frame_bytes(LANES), b"\0"), np.uint8)[np.newaxis]
    parsed = parse_frames(buffer, np.array([len(frame)]), LANES)
    frames: Frames = parsed.with_lanes if len(parsed.with_lanes) else parsed.without_lanes
    header: np.void = frames[0]
    return header
