"""Check waits for loans against a replay of the queues: those of the schedule exactly, those of the network by a
bound.

The replay knows queues, hops and links alone, and nothing of how a scheduler put the queues together.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from gradbed.controller.systems.shuffle.scheduling.schedule import Schedule, Transmission
from gradbed.topo.graph import Direction, Topology

ROUNDING_US = 8.0
"""Slack in time: agents' clocks have whole microseconds, and so have the times at which they may send next."""

FRAMES_ROUNDED = 4
"""Frames that agents send without reading the clock."""


@dataclass(frozen=True)
class ScheduleReplay:
    """Times of each transmission in microseconds since all senders began."""

    turn_us: dict[int, float] = field(default_factory=dict)
    """When its sender reached it."""
    begin_us: dict[int, float] = field(default_factory=dict)
    """When its sender began to send it."""
    arrival_us: dict[int, float] = field(default_factory=dict)
    """When it is with its receivers."""

    def wait_us(self, number: int) -> float:
        return self.begin_us[number] - self.turn_us[number]


def replay(
    schedule: Schedule, span_us: Callable[[Transmission], float], way_us: Callable[[Transmission], float]
) -> ScheduleReplay:
    """Let every sender send its queue in order.

    Args:
        span_us: time that a transmission takes its sender.
        way_us: time after that until it is with its receivers.
    """
    found = ScheduleReplay()
    clock_us = [0.0] * len(schedule.queues)
    place = [0] * len(schedule.queues)
    waiting: defaultdict[int, list[int]] = defaultdict(list)
    going = list(range(len(schedule.queues)))
    while going:
        sender = going.pop()
        queue = schedule.queues[sender]
        while place[sender] < len(queue):
            each = schedule.transmissions[queue[place[sender]]]
            missing = next((loan for loan in each.waits_for if loan not in found.arrival_us), None)
            if missing is not None:
                waiting[missing].append(sender)
                break
            begin_us = max([clock_us[sender], *(found.arrival_us[loan] for loan in each.waits_for)])
            found.turn_us[each.number], found.begin_us[each.number] = clock_us[sender], begin_us
            clock_us[sender] = begin_us + span_us(each)
            found.arrival_us[each.number] = clock_us[sender] + way_us(each)
            place[sender] += 1
            going += waiting.pop(each.number, [])
    return found


def planned_wait_failures(schedule: Schedule, packet_us: int, hop_delay_us: int, threshold_us: int) -> Iterator[str]:
    """Yield a line for each packet that is planned to wait longer than the threshold, or otherwise than the time
    model says.

    In this model (step S5 of the source, docs/shuffle-scheduling.md) hosts and switches take packet_us for any
    packet, and a link that is a hop takes hop_delay_us.
    """
    waiting = [each for each in schedule.transmissions if each.waits_for]
    if not waiting:
        return
    model = replay(
        schedule,
        lambda each: packet_us,
        lambda each: (each.hops - 1) * packet_us + each.hops * hop_delay_us,
    )
    for each in waiting:
        wait_us = model.wait_us(each.number)
        if each.wait_us != wait_us:
            yield f"packet {each.number} is planned to wait {each.wait_us} us, by the queues it is {wait_us:g} us"
        if wait_us > threshold_us:
            yield (
                f"packet {each.number} is planned to wait {wait_us:g} us, longer than the threshold, "
                f"{threshold_us} us"
            )


@dataclass(frozen=True)
class NetworkTiming:
    """Properties of an undisturbed network that delay loans."""

    topology: Topology
    interval_us: Sequence[float]
    """Per sender, time between two of its packets."""
    fragments: Sequence[int]
    """Per transmission, its number of packets."""
    ways: Sequence[Collection[Direction]]
    """Per transmission, the link directions that it crosses."""
    frame_bits: int
    """Size of every packet."""
    late_us: float = 0.0
    """Largest delay by which receivers see a packet late."""

    def frame_us(self, direction: Direction) -> float:
        rate_bps = self.topology.link(*direction).model.rate_bps
        return 1e6 * self.frame_bits / rate_bps if rate_bps else 0.0

    def span_us(self, each: Transmission) -> float:
        return self.fragments[each.number] * self.interval_us[each.sender]

    def way_us(self, each: Transmission) -> float:
        """Return the time from the end of sending to the arrival.

        Switches are store-and-forward, and packets are pipelined.
        """
        models = [self.topology.link(*direction).model for direction in self.ways[each.number]]
        frames_us = sorted(self.frame_us(direction) for direction in self.ways[each.number])
        slower_us = max(0.0, max(frames_us, default=0.0) - self.interval_us[each.sender])
        return (
            sum(model.delay_us + model.jitter_us for model in models)
            + sum(frames_us)
            - min(self.interval_us[each.sender], max(frames_us, default=0.0))
            + (self.fragments[each.number] - 1) * slower_us
            + self.late_us
        )


def network_wait_failures(schedule: Schedule, network: NetworkTiming, waits_us: Mapping[int, int]) -> Iterator[str]:
    """Yield a line for each packet that waited longer than its loans can have taken.

    The bound is the wait on a network without any other packets, and the longest that others can keep its loans in
    the queues of links that both cross.

    Args:
        waits_us: measured, by transmission.
    """
    if not waits_us:
        return
    alone = replay(schedule, network.span_us, network.way_us)
    crossing: defaultdict[Direction, list[Transmission]] = defaultdict(list)
    for each in schedule.transmissions:
        for direction in network.ways[each.number]:
            crossing[direction].append(each)
    for number, wait_us in waits_us.items():
        loans = [schedule.transmissions[loan] for loan in schedule.transmissions[number].waits_for]
        queued_us = max(_queued_us(loan, alone, network, crossing) for loan in loans)
        rounded_us = max(_frames_until(loan, schedule, network) for loan in loans) / FRAMES_ROUNDED + ROUNDING_US
        most_us = alone.wait_us(number) + queued_us + rounded_us
        if wait_us > most_us:
            yield (
                f"packet {number} waited {wait_us} us for its loans, which can take {math.ceil(most_us)} us longer "
                "than its turn at most"
            )


def _frames_until(loan: Transmission, schedule: Schedule, network: NetworkTiming) -> int:
    """Return the number of frames that the sender sends until the loan is sent."""
    queue = schedule.queues[loan.sender]
    return sum(network.fragments[number] for number in queue[: queue.index(loan.number) + 1])


def _queued_us(
    loan: Transmission,
    alone: ScheduleReplay,
    network: NetworkTiming,
    crossing: Mapping[Direction, Sequence[Transmission]],
) -> float:
    """Return a bound on the time that packets of other senders keep a loan in queues: all that can be sent before
    it comes.
    """
    queued_us = 0.0
    while True:
        latest_us = alone.arrival_us[loan.number] + queued_us
        more_us = sum(
            network.fragments[other.number] * network.frame_us(direction)
            for direction in network.ways[loan.number]
            for other in crossing[direction]
            if other.sender != loan.sender
            and alone.begin_us[other.number] - FRAMES_ROUNDED * network.interval_us[other.sender] <= latest_us
        )
        if more_us <= queued_us:
            return queued_us
        queued_us = more_us
