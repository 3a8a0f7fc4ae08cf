"""Rates of a traffic: how much each pair sends, so that the busiest link of a host has a given load."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from gradbed.common.errors import UserError
from gradbed.experiments.scale import Scale
from gradbed.experiments.traffic.configuration import TrafficSection
from gradbed.experiments.traffic.matrix import read_matrix
from gradbed.experiments.traffic.patterns import Demands, Pair, demands
from gradbed.topo.graph import Topology

DEFAULT_LOAD = 0.5


def pair_rates(section: TrafficSection, topology: Topology, scale: Scale, seed: int) -> dict[Pair, float]:
    """Emulated bit/s of every pair that sends. topology: in emulated units. UserError for what cannot be."""
    if section.matrix is not None:
        rates = {pair: 1e6 * mbps * scale.factor for pair, mbps in read_matrix(section.matrix, topology).items()}
        return rates if section.load is None else loaded(rates, topology, section.load)
    chosen = demands(section.pattern, topology, seed, section.within)
    return loaded(chosen, topology, DEFAULT_LOAD if section.load is None else section.load)


def loaded(weights: Demands, topology: Topology, load: float) -> dict[Pair, float]:
    """Weights as bit/s, such that the busiest direction of a host's link is offered `load` of its rate."""
    sent: dict[str, float] = defaultdict(float)
    received: dict[str, float] = defaultdict(float)
    for (sender, receiver), weight in weights.items():
        sent[sender] += weight
        received[receiver] += weight
    busiest = max(
        weight / link_rate_bps(topology, host) for each in (sent, received) for host, weight in each.items()
    )
    return {pair: weight * load / busiest for pair, weight in weights.items()}


def link_rate_bps(topology: Topology, host: str) -> float:
    """Of the host's link. UserError if it is unlimited: then there is no load."""
    rate_bps = topology.link(host, topology.attachment(host).name).model.rate_bps
    if not rate_bps:
        raise UserError(f"the link of {host} has no rate, of which a load could be a part: give it one, or a matrix")
    return rate_bps


def shares(rates: Mapping[Pair, float], packets: int) -> dict[Pair, int]:
    """So many packets in all, by the pairs' rates, the largest remainders rounded up."""
    total = sum(rates.values())
    exact = {pair: packets * rate / total for pair, rate in rates.items()}
    found = {pair: int(share) for pair, share in exact.items()}
    rest = sorted(exact, key=lambda pair: found[pair] - exact[pair])[: packets - sum(found.values())]
    for pair in rest:
        found[pair] += 1
    return found
