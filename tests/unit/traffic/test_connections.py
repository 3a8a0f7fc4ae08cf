"""What became of TCP connections: one that was lost, or of which nothing is known, is not passed over."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from gradbed.experiments.scale import Scale
from gradbed.experiments.traffic.agents import NAME
from gradbed.experiments.traffic.configuration import TrafficSection
from gradbed.experiments.traffic.connections import ConnectionResults, ConnectionTraffic, lost_lines, plan_connections
from gradbed.hosts.agents.kernel.streams import StreamOutcome
from gradbed.hosts.traffic.connections import ConnectionsConfig
from gradbed.topo.link import LinkModel
from gradbed.topo.registry import parse_topology

TRAFFIC = ConnectionTraffic((), {"h1": ("h2", "h3", "h3"), "h2": ("h1",)}, Scale(), flows=True)
WHOLE = asdict(StreamOutcome(0, 100, 100, 5_000_000))
RESET = asdict(StreamOutcome(0, 60, error="Connection reset by peer"))


def results(final: dict[str, Any]) -> ConnectionResults:
    return ConnectionResults.of(TRAFFIC, {(1, NAME.format(host)): told for host, told in final.items()})


def test_what_did_not_come_through_is_counted_with_its_reason() -> None:
    found = results({"h1": {"connections": [WHOLE, RESET, None]}, "h2": {"connections": [WHOLE]}})
    assert found.unfinished == 2, "one was lost, another has not ended"
    assert lost_lines(found.flow_rows()) == ["1 connection was lost: Connection reset by peer"]
    assert [row["error"] for row in found.flow_rows()] == ["", "Connection reset by peer", ""]


def test_a_host_that_told_nothing_has_finished_nothing() -> None:
    assert results({"h2": {"connections": [WHOLE]}}).unfinished == 3


def test_a_receiver_tells_what_came_of_a_connection_that_starved() -> None:
    starved = asdict(StreamOutcome(0, 60, error="timed out", local="10.0.0.1:4000"))
    arrivals = [
        {"sender": "10.0.0.1:4000", "received_bytes": 40, "arrived_ns": 8_000_000},
        {"sender": "10.0.0.9:4000", "received_bytes": 7, "arrived_ns": 9_000_000},
    ]
    found = results(
        {"h1": {"connections": [starved, None, None]}, "h2": {"connections": [None], "arrivals": arrivals}}
    )
    assert [(row["received_bytes"], row["throughput_bps"]) for row in found.pair_rows()] == [(40, 40_000.0)]
    assert found.unfinished == 4, "it did not end, nor did the three that are not told of"


def test_the_wait_for_a_connection_follows_the_scale() -> None:
    topology = parse_topology("star:2", LinkModel(rate_bps=100_000_000))
    sections = [
        plan_connections(TrafficSection(transport="tcp", pattern="permutation"), topology, Scale(factor), 1)
        for factor in (1.0, 0.1)
    ]
    configs = [section.specs[0].config for section in sections]
    timeout_us = [each.timeout_us for each in configs if isinstance(each, ConnectionsConfig)]
    assert timeout_us == [5_000_000, 50_000_000]
