"""Labels of packets: which switch sums which fragment, and the rates that packets with such labels reach.

Step s3 of the source gives every packet the number of one programmable switch, by the rates of problem P2 (s16). It
does not say how rates become whole packets; what follows is ours (docs/placement.md, "From rates to packets"). Over a
period of P fragments a worker's share y(w, s) / gamma becomes a number of fragments, exact to one fragment, and each
fragment gets one destination. What a switch sends on is the union of the fragments that its workers send it, while
the program counts the largest of them (constraint 2 of docs/placement.md); the two are the same where the workers'
sets at a switch are nested. So workers with equal shares get equal sets, and the sets of the others are laid into
those: one kind of worker after the other solves an assignment problem in which a fragment that a switch has from
nobody else costs one. For two kinds this always succeeds; for more it can be impossible.

The fragments are then put into the order of a van der Corput sequence, so that those of one destination come evenly
over the period.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from gradbed.common.errors import UserError
from gradbed.controller.systems.aggregation.placement.planner import AggregationChoice, Rates
from gradbed.controller.systems.aggregation.placement.problem import (
    AggregationProblem,
    NodePair,
    returned_sum_links,
)
from gradbed.controller.systems.aggregation.placement.rate_program import ReturnedSums
from gradbed.controller.systems.aggregation.placement.rate_solver import SPLITS, TOLERANCE, RateSolver
from gradbed.formats.aggregation import DIRECT, Designation

# ---- From rates to labels ----


MAX_PASSES = 4
"""Rounds through all kinds of workers at most; it hardly ever takes three."""

Counts = NDArray[np.int64]
Words = NDArray[np.int64]
Members = NDArray[np.bool_]
Shares = NDArray[np.float64]


def designations(problem: AggregationProblem, rates: Rates, period: int) -> dict[str, tuple[Designation, ...]]:
    """Return labels of `period` consecutive packets of each worker, from the rates of this problem.

    fan_in is the number of workers that send the fragment to the switch; at the server's ToR it includes those whose
    gradients come in sums.

    Raises:
        UserError: The period is not positive.
    """
    if period < 1:
        raise UserError(f"the period of designations must be at least 1 fragment, got {period}")
    counts = rounded_counts(destination_shares(problem, rates), period)
    kinds, kind_of, sizes = np.unique(counts, axis=0, return_inverse=True, return_counts=True)
    # The most numerous kind first: the others are fitted to it.
    order = np.lexsort((*kinds.T[::-1], -sizes))
    words = _spread(_nested(kinds[order], sizes[order]))
    labels = _labels(problem, rates, words, sizes[order])
    rank = np.argsort(order)
    return {worker: labels[rank[kind]] for worker, kind in zip(problem.workers, kind_of.ravel(), strict=True)}


def destination_shares(problem: AggregationProblem, rates: Rates) -> Shares:
    """Return the shares of its fragments that each worker sends where, of shape (workers, switches + 2).

    Destinations are the programmable switches in order, the server's ToR, and the server itself.
    """
    switches = (*rates.programmable, problem.server_tor)
    sent = np.array(
        [
            [*(rates.y_bps[worker].get(switch, 0.0) for switch in switches), rates.x_bps[worker]]
            for worker in problem.workers
        ]
    )
    # Rounded, so that noise of the solver makes no differences between workers.
    shares: Shares = np.round(sent / sent.sum(axis=1, keepdims=True), 7)
    return shares


def rounded_counts(shares: Shares, period: int) -> Counts:
    """Round shares to numbers of fragments by largest remainder, in the same shape.

    Each row adds up to the period, and no number is off by one or more.
    """
    exact = np.round(period * shares, 5)
    counts: Counts = np.floor(exact).astype(np.int64)
    for row, wanted in zip(counts, exact, strict=True):
        most = np.argsort(row - wanted, kind="stable")
        row[most[: period - row.sum()]] += 1
    return counts


def _nested(kinds: Counts, sizes: Counts) -> Words:
    """Return words[kind, fragment], a destination for each fragment of each kind of worker.

    Each destination comes as often as kinds[kind, destination] says, and each switch gets as few different fragments
    as can be found.
    """
    destinations = np.arange(kinds.shape[1])
    words = np.full((len(kinds), int(kinds[0].sum())), -1)
    for _ in range(MAX_PASSES):
        before = _fragments_at_switches(words, kinds.shape[1])
        for kind, counts in enumerate(kinds):
            others = np.delete(words, kind, axis=0)
            copies = np.delete(sizes, kind)
            # (destination, fragment): how many workers of other kinds send it there.
            senders = np.stack([((others == destination) * copies[:, None]).sum(0) for destination in destinations])
            new = senders == 0
            # Nobody sums on the way straight to the server.
            new[-1] = False
            cost = new * float(2 * sizes.sum() * words.shape[1]) - senders
            places = np.repeat(destinations, counts)
            chosen, fragments = scipy.optimize.linear_sum_assignment(cost[places])
            words[kind, fragments] = places[chosen]
        if before and _fragments_at_switches(words, kinds.shape[1]) >= before:
            break
    return words


def _fragments_at_switches(words: Words, destinations: int) -> int:
    """Return the number of pairs of a switch and a fragment sent to it; 0 while words are still missing."""
    if (words < 0).any():
        return 0
    return sum(int((words == destination).any(axis=0).sum()) for destination in range(destinations - 1))


def _spread(words: Words) -> Words:
    """Reorder fragments so that those that are alike come evenly over the period (van der Corput)."""
    alike = words[:, np.lexsort(words[::-1])]
    period = words.shape[1]
    bits = max(period - 1, 1).bit_length()
    reversed_bits = [int(f"{place:0{bits}b}"[::-1], 2) for place in range(period)]
    spread: Words = alike[:, np.argsort(np.argsort(reversed_bits))]
    return spread


def _labels(problem: AggregationProblem, rates: Rates, words: Words, sizes: Counts) -> list[tuple[Designation, ...]]:
    """Return the labels of each kind of worker."""
    switches = len(rates.programmable)
    numbers = [problem.topology.switch(name).number for name in (*rates.programmable, problem.server_tor)]
    fan_in = np.stack([((words == place) * sizes[:, None]).sum(0) for place in range(switches + 1)])
    second_level = _second_level(rates, fan_in)
    arriving = fan_in[-1] + (fan_in[:-1] * second_level).sum(0)

    def label(place: int, fragment: int) -> Designation:
        if place > switches:
            return DIRECT
        if place == switches:
            return Designation(numbers[-1], int(arriving[fragment]))
        first = numbers[place], int(fan_in[place, fragment])
        if second_level[place, fragment]:
            return Designation(*first, numbers[-1], int(arriving[fragment]))
        return Designation(*first)

    return [tuple(label(int(place), fragment) for fragment, place in enumerate(word)) for word in words]


def _second_level(rates: Rates, fan_in: Counts) -> Members:
    """Return for each (switch, fragment) whether the sum goes on by way of the server's ToR.

    The parts are as b(s) to a(s); fragments that sd has anyway come first.
    """
    chosen = np.zeros((len(rates.programmable), fan_in.shape[1]), dtype=bool)
    summed_again = fan_in[-1] > 0
    for place, switch in enumerate(rates.programmable):
        sums = np.flatnonzero(fan_in[place])
        total = rates.a_bps[switch] + rates.b_bps[switch]
        share = rates.b_bps[switch] / total if total > 0 else 1.0
        preferred = sums[np.argsort(~summed_again[sums], kind="stable")]
        chosen[place, preferred[: round(share * len(sums))]] = True
        summed_again = summed_again | chosen[place]
    return chosen


# ---- The best labels for given switches ----


MAX_PERIOD = 128
"""The longest period of labels, in fragments. Shares are met to less than 1 %."""


def best_labels(problem: AggregationProblem, programmable: Sequence[str]) -> AggregationChoice:
    """Return the labels with which packets, global sums included, reach most, of several splits of the fragments.

    The same optimum allows splits that can be nested and splits that cannot, and splits whose gradients travel away
    from the server, where global sums come, too; a program that counts these avoids that (docs/placement.md, "From
    rates to packets").
    """
    found: list[tuple[float, AggregationChoice]] = []
    bound_bps: float | None = None
    programs: tuple[ReturnedSums | None, ...] = (None, "by-switch", "together")
    for returned_sums in programs:
        solver = RateSolver(problem, arrivals=True, returned_sums=returned_sums)
        for splits in SPLITS:
            rates = solver.rates(programmable, splits=splits)
            labels = designations(problem, rates, best_period(problem, rates))
            reached = achievable_rates(problem, labels, returned_sums=True).gamma_bps
            found.append((reached, AggregationChoice(rates.programmable, labels, rates)))
            # The first program is a bound for packets; where it is reached, no other labels are better.
            if bound_bps is None:
                bound_bps = rates.gamma_bps
            if reached >= bound_bps * (1 - TOLERANCE):
                return found[-1][1]
    return max(found, key=lambda each: each[0])[1]


def best_period(problem: AggregationProblem, rates: Rates, maximum: int = MAX_PERIOD) -> int:
    """Return the period of at most `maximum` fragments that is closest to all workers' shares; the shortest of those.

    Closest: the least of the largest share that a worker sends to some destination beyond its rates.
    """
    exact = np.unique(destination_shares(problem, rates), axis=0)

    def excess(period: int) -> float:
        return float(np.max(rounded_counts(exact, period) / period - exact))

    return min(range(1, maximum + 1), key=lambda period: (round(excess(period), 5), period))


# ---- What packets with given labels can reach ----


@dataclass(frozen=True)
class AchievableRates:
    """Upper bound on what packets with given labels reach, from loads of links and switches in one period (ours)."""

    gamma_bps: float
    """The rate of each worker at which the bottleneck is full: gamma of problem P2 (claim 3), for whole packets."""
    period: int
    """Fragments after which the labels repeat."""
    link_packets: Mapping[NodePair, int]
    """Packets that cross each link direction in a period, when nothing is lost and every slot can be used."""
    switch_packets: Mapping[str, int]
    """Packets that arrive at each switch to be summed, in a period."""
    bottleneck: NodePair
    """The link direction that is full first, or the switch, twice."""


def achievable_rates(
    problem: AggregationProblem, labels: Mapping[str, tuple[Designation, ...]], returned_sums: bool = False
) -> AchievableRates:
    """Count the packets of a period on every link and at every switch, and find the bottleneck.

    The loads are those of constraints 4 and 5 of docs/placement.md (C and the links' capacities in claim 3, the loads
    of links in claim 4), with one sum for each different fragment that a switch gets, rather than for the largest
    input.

    Args:
        problem: The job and its network.
        labels: Labels of all workers, from any placement; an empty tuple is straight to the server.
        returned_sums: Count also the global sums that come back, which the source's program leaves out: on one
            multicast tree for each set of switches that a fragment has. Without switches that sum there are none, and
            sums mirror the gradients.

    Raises:
        UserError: The workers' periods differ.
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
    # One sum leaves a switch for each fragment, however many workers sent it.
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
) -> AchievableRates:
    limits: dict[NodePair, float] = {
        pair: problem.rate_bps(*pair) * period / packets for pair, packets in links.items() if packets
    }
    if problem.switch_capacity_bps is not None:
        capacity = problem.switch_capacity_bps
        limits |= {(switch, switch): capacity * period / packets for switch, packets in intake.items()}
    bottleneck = min(limits, key=lambda pair: limits[pair])
    return AchievableRates(limits[bottleneck], period, dict(links), dict(intake), bottleneck)
