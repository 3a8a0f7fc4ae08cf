"""Traffic of the model: packets a slot of each host, and where they go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gradbed.common.errors import UserError

Integers = NDArray[np.int64]

PATTERNS = ("all-to-all", "permutation", "hotspot")


@dataclass(frozen=True)
class Uniform:
    """Every host to every other one alike."""

    rates: NDArray[np.float64]

    def draw(self, sources: Integers, random: np.random.Generator) -> Integers:
        hosts = len(self.rates)
        found: Integers = (sources + random.integers(1, hosts, len(sources))) % hosts
        return found


@dataclass(frozen=True)
class Permutation:
    """Every host to one other."""

    rates: NDArray[np.float64]
    receiver: Integers

    def draw(self, sources: Integers, random: np.random.Generator) -> Integers:
        return self.receiver[sources]


@dataclass(frozen=True)
class Hotspot:
    """This share of what each host sends goes to the first host, the rest to all others alike."""

    rates: NDArray[np.float64]
    share: float

    def draw(self, sources: Integers, random: np.random.Generator) -> Integers:
        hosts = len(self.rates)
        # One of the hosts but the first and the sender.
        others = 1 + random.integers(0, hosts - 2, len(sources))
        others += (others >= sources) & (sources > 0)
        others = np.where(sources == 0, 1 + random.integers(0, hosts - 1, len(sources)), others)
        hot = (random.random(len(sources)) < self.share) & (sources != 0)
        return np.where(hot, 0, others)


@dataclass(frozen=True)
class Weighted:
    """By the share of each pair; for networks of some hundred hosts."""

    rates: NDArray[np.float64]
    cumulated: NDArray[np.float64]

    def draw(self, sources: Integers, random: np.random.Generator) -> Integers:
        place = random.random(len(sources))[:, None]
        found: Integers = (self.cumulated[sources] <= place).sum(axis=1).astype(np.int64)
        return found


def of_rates(hosts: Sequence[str], rates_bps: Mapping[tuple[str, str], float], link_bps: float) -> Weighted:
    """That of gradbed.experiments.traffic.rates.pair_rates, for links of one rate."""
    place = {name: number for number, name in enumerate(hosts)}
    weights = np.zeros((len(hosts), len(hosts)))
    for (sender, receiver), rate_bps in rates_bps.items():
        weights[place[sender], place[receiver]] = rate_bps / link_bps
    rates = weights.sum(axis=1)
    shares = weights / np.where(rates > 0, rates, 1)[:, None]
    cumulated = np.cumsum(shares, axis=1)
    cumulated[:, -1] = 1.0
    return Weighted(rates, cumulated)


def of_pattern(pattern: str, hosts: int, load: float, seed: int) -> Uniform | Permutation | Hotspot:
    """load: of the busiest direction of a host's link, as in experiments/traffic. UserError for an unknown one."""
    kind, _, argument = pattern.partition(":")
    if kind == "all-to-all":
        return Uniform(np.full(hosts, load))
    if kind == "permutation":
        # A cycle through all hosts in random order: nobody sends to itself.
        order = np.random.default_rng(seed).permutation(hosts)
        receiver = np.empty(hosts, np.int64)
        receiver[order] = np.roll(order, -1)
        return Permutation(np.full(hosts, load), receiver)
    if kind == "hotspot":
        share = float(argument) if argument else 0.5
        into_first = share * (hosts - 1)
        return Hotspot(np.full(hosts, load / max(1.0, into_first)), share)
    raise UserError(f"the model has no traffic {pattern!r}: take one of {', '.join(PATTERNS)}")
