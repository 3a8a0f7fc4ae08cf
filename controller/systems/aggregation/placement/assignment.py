"""Labels of packets: which fragment goes where, so that packets do what the linear program says.

Over a period of P fragments a worker's share y(w, s) / gamma becomes a number of fragments, exact to one fragment,
and each fragment gets one destination. What a switch sends on is the union of the fragments that its workers send
it, while the program counts the largest of them; the two are the same where the workers' sets at a switch are
nested. So workers with equal shares get equal sets, and the sets of the others are laid into those: one kind of
worker after the other solves an assignment problem in which a fragment that a switch has from nobody else costs one.
For two kinds this always succeeds; for more it can be impossible (docs/placement.md, "From rates to packets").

The fragments are then put into the order of a van der Corput sequence, so that those of one destination come evenly
over the period.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy
from numpy.typing import NDArray

from gradbed.common.errors import UserError
from gradbed.controller.systems.aggregation.placement.planner import AggregationChoice, Rates
from gradbed.controller.systems.aggregation.placement.rates.problem import AggregationProblem
from gradbed.controller.systems.aggregation.placement.rates.rate_program import ReturnedSums
from gradbed.controller.systems.aggregation.placement.rates.rates import SPLITS, TOLERANCE, RateSolver
from gradbed.controller.systems.aggregation.placement.rates.realised import realised_rates
from gradbed.formats.aggregation import DIRECT, Designation

MAX_PASSES = 4
"""Of going through all kinds of workers again; it hardly ever takes three."""

Counts = NDArray[np.int64]
Words = NDArray[np.int64]
Members = NDArray[np.bool_]
Shares = NDArray[np.float64]


def designations(problem: AggregationProblem, rates: Rates, period: int) -> dict[str, tuple[Designation, ...]]:
    """Labels of `period` consecutive packets of each worker, from the rates of this problem.

    fan_in is the number of workers that send the fragment to the switch; at the server's ToR it includes those whose
    gradients come in sums. UserError if the period is not positive.
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
    """The shares of its fragments that each worker sends where, (workers, switches + 2): the programmable switches
    in order, the server's ToR, the server itself."""
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
    """How many of `period` fragments these shares are, by largest remainder: each row adds up to the period, and no
    number is off by one or more. Same shape."""
    exact = np.round(period * shares, 5)
    counts: Counts = np.floor(exact).astype(np.int64)
    for row, wanted in zip(counts, exact, strict=True):
        most = np.argsort(row - wanted, kind="stable")
        row[most[: period - row.sum()]] += 1
    return counts


def _nested(kinds: Counts, sizes: Counts) -> Words:
    """words[kind, fragment]: a destination for each fragment, each as often as kinds[kind, destination] says, and
    as few fragments at each switch as can be found."""
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
    """How many pairs of a switch and a fragment sent to it there are; 0 while words are still missing."""
    if (words < 0).any():
        return 0
    return sum(int((words == destination).any(axis=0).sum()) for destination in range(destinations - 1))


def _spread(words: Words) -> Words:
    """The same fragments in another order: those that are alike come evenly over the period."""
    alike = words[:, np.lexsort(words[::-1])]
    period = words.shape[1]
    bits = max(period - 1, 1).bit_length()
    reversed_bits = [int(f"{place:0{bits}b}"[::-1], 2) for place in range(period)]
    spread: Words = alike[:, np.argsort(np.argsort(reversed_bits))]
    return spread


def _labels(problem: AggregationProblem, rates: Rates, words: Words, sizes: Counts) -> list[tuple[Designation, ...]]:
    """The labels of each kind of worker."""
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
    """(switch, fragment): whether the sum goes on by way of the server's ToR, in shares b(s) : a(s), and of the
    fragments that sd has anyway if possible."""
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


# ---- The best labels for given switches, and what packets with them reach ----


MAX_PERIOD = 128
"""Fragments after which the labels repeat, at most. Shares are met to less than 1 %."""


def best_labels(problem: AggregationProblem, programmable: Sequence[str]) -> AggregationChoice:
    """Of several splits of the fragments the one with which packets, global sums included, reach the most.

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
            reached = realised_rates(problem, labels, returned_sums=True).gamma_bps
            found.append((reached, AggregationChoice(rates.programmable, labels, rates)))
            # The first program is a bound for packets; where it is reached, no other labels are better.
            if bound_bps is None:
                bound_bps = rates.gamma_bps
            if reached >= bound_bps * (1 - TOLERANCE):
                return found[-1][1]
    return max(found, key=lambda each: each[0])[1]


def best_period(problem: AggregationProblem, rates: Rates, maximum: int = MAX_PERIOD) -> int:
    """The period of at most `maximum` fragments that comes closest to all workers' shares; the shortest of those.

    Closest: the least of the largest share that a worker sends to some destination beyond its rates.
    """
    exact = np.unique(destination_shares(problem, rates), axis=0)

    def excess(period: int) -> float:
        return float(np.max(rounded_counts(exact, period) / period - exact))

    return min(range(1, maximum + 1), key=lambda period: (round(excess(period), 5), period))
