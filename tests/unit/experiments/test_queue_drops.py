"""An agent that gives up: the error names the queue that dropped most packets."""

from __future__ import annotations

from gradbed.experiments.configuration.faults import LinkChange
from gradbed.experiments.configuration.sections import LinkOverride
from gradbed.experiments.conservation.counts import Counts, LinkEffect, Tally
from gradbed.experiments.engine.trial import queue_drops
from gradbed.topo.link import LinkModel
from gradbed.topo.registry import parse_topology


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


def test_a_length_that_a_fault_has_changed_is_named() -> None:
    topology = parse_topology("star:3", LinkModel(queue_packets=4))
    counts = Counts(effects={("s1", "h1"): LinkEffect(queue_drops=Tally(3, 300))})
    faults = [
        LinkChange(fault="link-change", link=link, change=LinkOverride(**change), at_ms=at_ms)
        for link, change, at_ms in (
            (("h1", "s1"), {"queue_packets": 2}, 1),
            (("h1", "s1"), {"rate_mbps": 5}, 2),
            (("h2", "s1"), {"queue_packets": 9}, 3),
        )
    ]
    assert queue_drops(counts, topology, faults) == "; the queue from s1 to h1 (length 4, then 2) dropped 3 packets"
