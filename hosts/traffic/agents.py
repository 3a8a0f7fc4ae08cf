"""The agent of a host in the traffic: it sends its streams at their times, and keeps account of what comes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from hosts.agents.context import AgentContext, Interface
from hosts.traffic.arrived import Arrived
from hosts.traffic.description import EndpointDescription
from hosts.traffic.frames import FrameMaker
from hosts.traffic.replay import replay_windows
from hosts.traffic.schedule import Schedule

LOOK_US = 50_000
"""So often it takes in what has come, before buffers are full."""

Frames = tuple[NDArray[np.int64], NDArray[np.uint8], NDArray[np.uint32] | None]
"""Times, rows, and their lengths if these differ."""


def endpoint(context: AgentContext, description: EndpointDescription) -> None:
    """Emits `sent` once all of its packets have left, and the time in which it sends is over."""
    arrived = Arrived(description.source)
    port = None if description.any_frame else description.udp_port
    with context.open(udp_port=port, except_udp_port=description.except_udp_port, quiet=True) as interface:
        context.emit("ready")
        if not context.wait_for_begin():
            return

        def take() -> None:
            _take(interface, arrived)

        schedule = Schedule(description, context.now_ns() + 1000 * description.begin_us)
        arrived.measured_ns = schedule.measured_ns
        packets, maker = 0, FrameMaker(description)
        if description.streams:
            packets = _send_all(context, interface, _made(schedule, maker), take, stamp=True)
        replayed = 0
        if description.replay is not None:
            windows = replay_windows(description.replay, context.now_ns())
            replayed = _send_all(context, interface, windows, take, stamp=False)
        _wait_until(context, schedule.measured_ns[1], take)
        context.emit("sent", packets=packets + replayed)
        while not context.stopped:
            context.wait(context.now_us() + LOOK_US)
            take()
        take()
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


def _made(schedule: Schedule, maker: FrameMaker) -> Iterator[tuple[int, Frames]]:
    for window_ns, packets in schedule.windows():
        if len(packets):
            yield window_ns, (packets.times_ns, *maker.frames(packets))


def _send_all(
    context: AgentContext,
    interface: Interface,
    windows: Iterator[tuple[int, Frames]],
    take: Callable[[], None],
    *,
    stamp: bool,
) -> int:
    """How many frames. Each window is handed over when the one before it begins."""
    sent, last_ns, hand_over_ns = 0, 0, 0
    for window_ns, (times_ns, rows, lengths) in windows:
        _wait_until(context, hand_over_ns, take)
        if context.stopped:
            break
        interface.send_at(rows, times_ns, lengths, stamp=stamp)
        sent, last_ns, hand_over_ns = sent + len(rows), int(times_ns[-1]), window_ns
    _wait_until(context, last_ns, take, even_stopped=True)
    return sent


def _wait_until(context: AgentContext, time_ns: int, take: Callable[[], None], *, even_stopped: bool = False) -> None:
    until_us = -(-time_ns // 1000)
    while context.now_us() < until_us and (even_stopped or not context.stopped):
        context.wait(min(until_us, context.now_us() + LOOK_US))
        take()


def _take(interface: Interface, arrived: Arrived) -> None:
    while True:
        buffer, lengths = interface.receive()
        if not len(lengths):
            return
        arrived.add(buffer, lengths, interface.times_ns)
