"""What packets with given labels can reach at most: the loads of a period, packet by packet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from gradbed.common.errors import UserError
from gradbed.controller.systems.aggregation.placement.rates.problem import (
    AggregationProblem,
    NodePair,
    returned_sum_links,
)
from gradbed.formats.aggregation import Designation


@dataclass(frozen=True)
class RealisedRates:
    """gamma_bps: the rate of each worker at which the busiest link or switch is full, bit/s.

    link_packets[from, to]: packets that cross the link in a period when nothing is lost and every slot can be used.
    switch_packets[switch]: packets that arrive there to be summed. bottleneck: the link, or the switch twice.
    """

    gamma_bps: float
    period: int
    link_packets: Mapping[NodePair, int]
    switch_packets: Mapping[str, int]
    bottleneck: NodePair


def realised_rates(
    problem: AggregationProblem, labels: Mapping[str, tuple[Designation, ...]], returned_sums: bool = False
) -> RealisedRates:
    """Of labels for all workers of the problem, whoever made them; an empty tuple is straight to the server.

    returned_sums: count the global sums, too, that come back along multicast trees, one for each set of switches that
    a fragment has; without switches that sum there are none, and they mirror the gradients. A switch sends one sum
    for each fragment that any worker sends it. UserError if periods differ.
    """
    period = max(1, *(len(labels[worker]) for worker in problem.workers))
    unsummed = (Designation(0, 0),) * period
    if any(len(labels[worker]) not in (0, period) for worker in problem.workers):
        raise UserError("the designations of all workers must have the same period")
    names = {switch.number: switch.name for switch in problem.topology.switches}
    sd = problem.server_tor
    links: Counter[NodePair] = Counter()
    intake: Counter[str] = Counter()
    trips: Counter[NodePair] = Counter()
    for group in problem.groups:
        for worker in group.workers:
            links[worker, group.tor] = period
            for label in labels[worker] or unsummed:
                trips[group.tor, names[label.switch_number] if label.switch_number else problem.server] += 1
    for (_, goal), packets in trips.items():
        if goal != problem.server:
            intake[goal] += packets
    # One sum leaves a switch for each fragment, whoever sent it.
    passed: Counter[frozenset[str]] = Counter()
    arriving_at_sd: set[int] = set()
    for fragment in range(period):
        distinct = {labels[worker][fragment] for worker in problem.workers if labels[worker]}
        passed[frozenset(names[n] for label in distinct for n in (label.switch_number, label.next_switch) if n)] += 1
        for label in distinct:
            switch = names.get(label.switch_number)
            if switch == sd:
                arriving_at_sd.add(fragment)
            elif switch is not None and label.next_switch:
                trips[switch, sd] += 1
                intake[sd] += 1
                arriving_at_sd.add(fragment)
            elif switch is not None:
                trips[switch, problem.server] += 1
    trips[sd, problem.server] += len(arriving_at_sd)
    pairs = list(problem.link_index)
    for (start, goal), packets in trips.items():
        for link in problem.path(start, goal):
            links[pairs[link]] += packets
    if returned_sums and intake:
        for switches, packets in passed.items():
            for pair in returned_sum_links(problem, switches):
                links[pair] += packets
    return _fullest(problem, period, links, intake)


def _fullest(
    problem: AggregationProblem, period: int, links: Counter[NodePair], intake: Counter[str]
) -> RealisedRates:
    limits: dict[NodePair, float] = {
        pair: problem.rate_bps(*pair) * period / packets for pair, packets in links.items() if packets
    }
    if problem.switch_capacity_bps is not None:
        capacity = problem.switch_capacity_bps
        limits |= {(switch, switch): capacity * period / packets for switch, packets in intake.items()}
    bottleneck = min(limits, key=lambda pair: limits[pair])
    return RealisedRates(limits[bottleneck], period, dict(links), dict(intake), bottleneck)
