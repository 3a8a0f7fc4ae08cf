"""Check a shuffle once it has ended: what workers hold, and what switches counted on the links."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import networkx as nx

from gradbed.experiments.configuration.faults import Fault, LinkChange, touched_agents
from gradbed.experiments.conservation.checks import host_accounts, uncounted_hosts
from gradbed.experiments.conservation.counts import Counts
from gradbed.experiments.conservation.host_links import disagreements as host_disagreements
from gradbed.experiments.conservation.host_links import first_lines
from gradbed.experiments.phases import PhaseResult
from gradbed.experiments.systems.shuffle.jobs import ShuffleJob
from gradbed.experiments.systems.shuffle.loads import (
    counted_loads,
    disagreements,
    lossless,
    planned_loads,
    planned_ways,
)
from gradbed.experiments.systems.shuffle.phase import ShufflePhase
from gradbed.experiments.systems.shuffle.waits import NetworkTiming, network_wait_failures, planned_wait_failures
from gradbed.formats.shuffle import frame_overhead_bytes
from gradbed.hosts.systems.shuffle.samples import SampleSource, digest, original
from gradbed.topo.graph import Topology, is_hop

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
