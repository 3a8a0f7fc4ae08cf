"""What became of TCP connections: one that was lost, or of which nothing is known, is not passed over."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from experiments.scale import Scale
from experiments.traffic.agents import NAME
from experiments.traffic.connections import ConnectionResults, ConnectionTraffic, lost_lines
from hosts.agents.kernel.streams import StreamOutcome

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
