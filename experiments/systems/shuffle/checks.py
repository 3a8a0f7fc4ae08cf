"""Check a shuffle once it has ended: what workers hold, what switches counted on links, and waits for loans."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import networkx as nx

from gradbed.controller.systems.shuffle.scheduling.schedule import Schedule, Transmission
from gradbed.experiments.configuration.faults import Fault, LinkChange, touched_agents
from gradbed.experiments.conservation.checks import host_accounts, uncounted_hosts
from gradbed.experiments.conservation.counts import Counts, first_lines
from gradbed.experiments.conservation.counts import disagreements as host_disagreements
from gradbed.experiments.phases import PhaseResult
from gradbed.experiments.systems.shuffle.metrics import (
    counted_loads,
    disagreements,
    lossless,
    planned_loads,
    planned_ways,
)
from gradbed.experiments.systems.shuffle.phase import ShuffleJob, ShufflePhase
from gradbed.formats.shuffle import frame_overhead_bytes
from gradbed.hosts.systems.shuffle.samples import SampleSource, digest, original
from gradbed.topo.graph import Direction, Topology, is_hop

# ---- Waits for loans ----
#
# They are checked against a replay of the queues: those of the schedule exactly, those of the network by a bound. The
# replay knows queues, hops and links alone, and nothing of how a scheduler put the queues together.


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


# ---- Contents and counters ----


ROUNDING = 1e-9
"""Relative tolerance of floating-point numbers."""

NEVER_WORSE = ("improved", "exact")
"""Schedulers that never take more hops than unicast from the nearest holder."""


def failures(
    phase: ShufflePhase,
    found: PhaseResult,
    topology: Topology,
    source: SampleSource,
    faults: Sequence[Fault],
    threshold_us: int,
    late_us: float | None,
) -> list[str]:
    """Return the first lines about what is wrong.

    Args:
        threshold_us: longest wait for a loan, emulated.
        late_us: largest delay by which hosts see a packet late; None: waits on the network are not checked, since
            hosts
            compute between packets, or the host's time counts.
    """
    job, touched = phase.job, touched_agents(faults)
    raw_frames = uncounted_hosts(topology, faults, found.agents.hosts)
    lines = host_disagreements(
        account
        for account in host_accounts(topology, found.network.counts, found.agents.final)
        if account.host not in raw_frames
    )
    lines += _count_failures(job, found.network.counts, topology, faults)
    lines += planned_wait_failures(job.schedule, packet_us(job), hop_delay_us(topology), threshold_us)
    if late_us is not None and not faults and lossless(found.network.counts):
        network = NetworkTiming(
            topology,
            [job.interval_us(sender) for sender in range(len(job.instance.hosts))],
            [job.fragments(each) for each in job.schedule.transmissions],
            planned_ways(job),
            8 * (frame_overhead_bytes(job.answer.bits) + job.fragment_bytes),
            late_us,
        )
        lines += network_wait_failures(job.schedule, network, phase.waits_us)
    originals = _Originals(source, job.instance.sizes_bytes)
    for index in range(len(job.instance.hosts)):
        name = job.agent_name(index)
        final = found.agents.final.get((job.answer.job, name), {})
        # One that was ended at once is not there to tell.
        if final.get("complete") or (1, name) not in touched:
            lines += [f"{name}: {line}" for line in _agent_failures(job, index, final, originals)]
    return [f"{phase.name}, {line}" for line in first_lines(lines)]


def _count_failures(job: ShuffleJob, counts: Counts, topology: Topology, faults: Sequence[Fault]) -> Iterator[str]:
    """Report links that carried something else than the schedule says.

    Without faults and losses links carry exactly the schedule, and so as many hops; with losses no link carries more.
    Failing agents, links or switches change the number of packets in ways that no plan knows, and are not checked.
    """
    if not all(isinstance(fault, LinkChange) for fault in faults):
        return
    planned, counted = planned_loads(job), counted_loads(topology, counts)
    if not lossless(counts):
        if not any(effect.duplicates.packets for effect in counts.effects.values()):
            at_most = {each: load.at_most(planned[each]) for each, load in counted.items()}
            yield from disagreements(at_most, counted, "planned are at most")
        return
    yield from disagreements(planned, counted)
    hops = sum(load.transmissions for load in counted.values())
    if hops != job.schedule.hops:
        yield f"packets took {hops} hops, the schedule says {job.schedule.hops}"
    for switch in topology.switches:
        for cause, tally in counts.counters.get(switch.name, {}).get("drops", {}).items():
            if tally.packets:
                yield f"{switch.name} dropped {tally.packets} packets (cause {cause})"


def packet_us(job: ShuffleJob) -> int:
    """Return the time that the first worker takes to send the longest sample."""
    frames = max(-(-size // job.fragment_bytes) for size in job.instance.sizes_bytes)
    return math.ceil(frames * job.interval_us(0))


def hop_delay_us(topology: Topology) -> int:
    """Return the longest time that a packet is in flight on a link."""
    return max(link.model.delay_us + link.model.jitter_us for link in topology.links)


class _Originals(dict[int, str]):
    """Digests of the original samples, each computed once."""

    def __init__(self, source: SampleSource, sizes_bytes: Sequence[int]) -> None:
        super().__init__()
        self._source, self._sizes_bytes = source, sizes_bytes

    def __missing__(self, sample: int) -> str:
        self[sample] = digest(original(self._source, sample, self._sizes_bytes[sample]))
        return self[sample]


def _agent_failures(job: ShuffleJob, index: int, final: Mapping[str, Any], originals: _Originals) -> Iterator[str]:
    """Report a worker that does not hold what it should, or holds samples whose bytes are not the original ones."""
    if "placement" not in final:
        yield "has not told what it holds"
        return
    if final["lent_left"]:
        yield f"{final['lent_left']} samples that were lent to it were left"
    if index == len(job.instance.workers):
        return
    held = {int(sample): value for sample, value in final["placement"].items()}
    asked = {*job.keep[index], *job.instance.needed[index]}
    if missing := sorted(asked - held.keys()):
        yield f"does not hold {len(missing)} samples that it was to hold, such as {missing[0]}"
    if more := sorted(held.keys() - asked):
        yield f"holds {len(more)} samples that it was not to hold, such as {more[0]}"
    wrong = [each for each in held if held[each] != originals[each]]
    if wrong:
        yield f"{len(wrong)} samples are not the original ones, such as {min(wrong)}"


def contradictions(
    phase: ShufflePhase, found: PhaseResult, topology: Topology, row: Mapping[str, Any], faults: Sequence[Fault]
) -> Iterator[str]:
    """Yield a line for each number of a shuffle that contradicts others, or what links carry.

    Args:
        row: the numbers as reported; times are nominal seconds of a network whose links are as fast as those here.
    """
    job, counts = phase.job, found.network.counts
    nearest = nearest_hops(topology, job)
    if job.schedule.scheduler in NEVER_WORSE and row["hops"] > nearest:
        yield f"{row['hops']} hops are more than the {nearest} of unicast from the nearest holder"
    if job.schedule.scheduler == "unicast-nearest" and row["hops"] != nearest:
        yield f"unicast from the nearest holder takes {nearest} hops, not {row['hops']}"
    demands = len(job.instance.demands)
    carrying = sum(each.lent_for is None for each in job.schedule.transmissions)
    if demands and abs(row["samples_per_packet"] * carrying - demands) > ROUNDING * demands:
        yield f"{row['samples_per_packet']:g} samples in each of {carrying} packets are not the {demands} needed"
    if row["mean_wait_s"] > row["max_wait_s"] * (1 + ROUNDING):
        yield f"the mean wait is {row['mean_wait_s']:g} s, the longest {row['max_wait_s']:g} s"
    for name in ("load_max_over_mean", "fabric_load_max_over_mean"):
        if row[name] is not None and row[name] < 1 - ROUNDING:
            yield f"{name}: the largest load is {row[name]:g} of the mean"
    if faults:
        return
    frame_bytes = frame_overhead_bytes(job.answer.bits) + job.fragment_bytes
    scheduled = sum(
        tally.packets for switch in counts.counters.values() for tally in switch.get("scheduled_in", {}).values()
    )
    if lossless(counts):
        if row["repairs"] or row["requests"]:
            yield f"nothing was lost, but workers asked {row['requests']} times, for {row['repairs']} repairs"
        # Switches get a packet from each link but the last ones.
        if row["byte_hops"] < scheduled * frame_bytes:
            yield f"links carried {row['byte_hops']} B, of {scheduled} packets of {frame_bytes} B that switches got"
    for (a, b), load in counted_loads(topology, counts).items():
        rate_bps = topology.link(a, b).model.rate_bps
        least_us = 8e6 * frame_bytes * (load.packets - 1) / rate_bps if rate_bps else 0.0
        # Repairs of losses and the last packets may make it longer, nothing makes it shorter.
        if phase.time_us < least_us * (1 - ROUNDING):
            yield f"the shuffle took {phase.time_us} us, {a} to {b} takes {least_us:g} us for {load.packets} packets"


def nearest_hops(topology: Topology, job: ShuffleJob) -> int:
    """Return the hops of unicast from the nearest holder, by shortest paths over links that are hops."""
    hosts = job.instance.hosts
    away = {
        worker: nx.single_source_dijkstra_path_length(
            topology.graph, hosts[worker], weight=lambda a, b, _: int(is_hop(topology, topology.link(a, b)))
        )
        for worker in {worker for worker, _ in job.instance.demands}
    }
    return sum(
        min(away[worker][hosts[each]] for each in range(len(hosts)) if job.instance.stores(each, sample))
        for worker, sample in job.instance.demands
    )
