"""The agent of a host in the traffic: it sends its streams at their times, and keeps account of what comes."""

from __future__ import annotations

from collections.abc import Callable

from hosts.agents.context import AgentContext, Interface
from hosts.traffic.arrived import Arrived
from hosts.traffic.description import EndpointDescription
from hosts.traffic.frames import FrameMaker
from hosts.traffic.schedule import Schedule

LOOK_US = 50_000
"""So often it takes in what has come, before buffers are full."""


def endpoint(context: AgentContext, description: EndpointDescription) -> None:
    """Emits `sent` once all of its packets have left."""
    arrived = Arrived()
    port = None if description.any_frame else description.udp_port
    with context.open(udp_port=port, quiet=True) as interface:
        context.emit("ready")
        if not context.wait_for_begin():
            return
        schedule = Schedule(description, context.now_ns())
        packets = 0
        if description.streams:
            maker = FrameMaker(description)
            packets = _send_all(context, interface, maker, schedule, lambda: _take(interface, arrived))
        context.emit("sent", packets=packets)
        while not context.stopped:
            context.wait(context.now_us() + LOOK_US)
            _take(interface, arrived)
        _take(interface, arrived)
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
                **arrived.statistics(),
            },
        )


def _send_all(
    context: AgentContext,
    interface: Interface,
    maker: FrameMaker,
    schedule: Schedule,
    take: Callable[[], None],
) -> int:
    """How many packets. Each window is handed over when the one before it begins."""
    packets, last_ns, hand_over_ns = 0, 0, 0
    for window_ns, due in schedule.windows():
        _wait_until(context, hand_over_ns, take)
        if context.stopped:
            break
        if len(due):
            frames, lengths = maker.frames(due)
            interface.send_at(frames, due.times_ns, lengths, stamp=True)
            packets, last_ns = packets + len(due), int(due.times_ns[-1])
        hand_over_ns = window_ns
    _wait_until(context, last_ns, take, even_stopped=True)
    return packets


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
