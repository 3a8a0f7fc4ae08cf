"""An agent that gives up: the error names the queue that dropped most packets."""

from __future__ import annotations

from experiments.accounts.accounting import LinkEffect, Tally
from experiments.accounts.counts import Counts
from experiments.engine.point import queue_drops
from topo.link import LinkModel
from topo.registry import parse_topology


def test_the_queue_that_dropped_most_is_named() -> None:
    topology = parse_topology("star:3", LinkModel(queue_packets=4))
    effects = {
        ("s1", "h1"): LinkEffect(queue_drops=Tally(3, 300)),
        ("s1", "h2"): LinkEffect(queue_drops=Tally(7, 700)),
        ("h1", "s1"): LinkEffect(losses=Tally(90, 900)),
    }
    line = queue_drops(Counts(effects=effects), topology)
    assert line == "; the queue from s1 to h2 (length 4) dropped 7 packets"
    assert queue_drops(Counts(effects={("h1", "s1"): LinkEffect(losses=Tally(90, 900))}), topology) == ""
