"""The agent of a host in the traffic: it sends its streams at their times, and keeps account of what comes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gradbed.hosts.agents.context import AgentContext, Interface
from gradbed.hosts.traffic.config import EndpointConfig
from gradbed.hosts.traffic.frames import FrameMaker
from gradbed.hosts.traffic.received_packets import ReceivedPackets
from gradbed.hosts.traffic.replay import replay_windows
from gradbed.hosts.traffic.schedule import TrafficSchedule, mean_frame_bytes

LOOK_US = 50_000
"""So often it takes in what has come, or more often, before there is more than it keeps."""

Frames = tuple[NDArray[np.int64], NDArray[np.uint8], NDArray[np.uint32] | None]
"""Times, rows, and their lengths if these differ."""


def endpoint(context: AgentContext, config: EndpointConfig) -> None:
    """Emits `sent` once all of its packets have left, and the time in which it sends is over."""
    arrived = ReceivedPackets(config.source)
    port = None if config.any_frame else config.udp_port
    with context.open(udp_port=port, except_udp_port=config.except_udp_port, quiet=True) as interface:
        context.emit("ready")
        if not context.wait_for_begin():
            return
        kept_us = 8e6 * config.kept_packets * mean_frame_bytes(config.sizes) / config.link_rate_bps
        intake = _Intake(context, interface, arrived, min(LOOK_US, max(1, round(kept_us))))
        schedule = TrafficSchedule(config, context.now_ns() + 1000 * config.begin_us)
        arrived.measured_ns = schedule.measured_ns
        packets, maker = 0, FrameMaker(config)
        if config.streams:
            packets = _send_all(intake, _made(schedule, maker), stamp=True)
        replayed = 0
        if config.replay is not None:
            windows = replay_windows(config.replay, context.now_ns())
            replayed = _send_all(intake, windows, stamp=False)
        intake.wait_until(schedule.measured_ns[1])
        context.emit("sent", packets=packets + replayed)
        while not context.stopped:
            intake.wait()
        intake.take()
        flows = schedule.flows
        context.emit(
            "final",
            statistics={
                "sent_flows": {
                    "stream": [flow.stream for flow in flows],
                    "begin_ns": [flow.begin_ns for flow in flows],
                    "packets": [flow.packets for flow in flows],
                    "bytes": [flow.bytes for flow in flows],
                },
                "warm_up_sent": maker.warm_up,
                "replayed": replayed,
                **arrived.statistics(),
            },
        )


def _made(schedule: TrafficSchedule, maker: FrameMaker) -> Iterator[tuple[int, Frames]]:
    for window_ns, packets in schedule.windows():
        if len(packets):
            yield window_ns, (packets.times_ns, *maker.frames(packets))


@dataclass(frozen=True)
class _Intake:
    """Takes in what comes while the agent waits."""

    context: AgentContext
    interface: Interface
    arrived: ReceivedPackets
    look_us: int
    """Interval at which it looks, before there is more than a host keeps."""

    def take(self) -> None:
        while True:
            buffer, lengths = self.interface.receive()
            if not len(lengths):
                return
            self.arrived.add(buffer, lengths, self.interface.times_ns)

    def wait(self, until_us: int | None = None) -> None:
        look_us = self.context.now_us() + self.look_us
        self.context.wait(look_us if until_us is None else min(until_us, look_us))
        self.take()

    def wait_until(self, time_ns: int, *, even_stopped: bool = False) -> None:
        until_us = -(-time_ns // 1000)
        while self.context.now_us() < until_us and (even_stopped or not self.context.stopped):
            self.wait(until_us)


def _send_all(intake: _Intake, windows: Iterator[tuple[int, Frames]], *, stamp: bool) -> int:
    """Send all frames and return how many. Each window is handed over when the one before it begins."""
    sent, last_ns, hand_over_ns = 0, 0, 0
    for window_ns, (times_ns, rows, lengths) in windows:
        intake.wait_until(hand_over_ns)
        if intake.context.stopped:
            break
        intake.interface.send_at(rows, times_ns, lengths, stamp=stamp)
        sent, last_ns, hand_over_ns = sent + len(rows), int(times_ns[-1]), window_ns
    intake.wait_until(last_ns, even_stopped=True)
    return sent
