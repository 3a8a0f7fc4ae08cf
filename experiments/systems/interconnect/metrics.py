"""Metrics and table rows of an interconnect trial; rates and times are nominal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gradbed.experiments.conservation.counts import Counts
from gradbed.experiments.scale import Scale
from gradbed.experiments.systems.interconnect.links import (
    CLASSES,
    LinkLoad,
    MeasurementWindow,
    balance,
    loss_by_cause,
)
from gradbed.experiments.tables.metric import Metric
from gradbed.experiments.traffic.results import TrafficResults
from gradbed.topo.graph import Direction, Topology

SHARE = (0.0, 1.0)

METRICS: Mapping[str, Metric] = {
    "offered_load": Metric("", "offered load: bytes sent by a host / link capacity, mean", on_bmv2=False),
    "accepted_load": Metric("", "accepted load: bytes received by a host / link capacity, mean", on_bmv2=False),
    "throughput_bps": Metric("bit/s", "throughput, all hosts together", "rate"),
    "accepted_bound": Metric("", "upper bound on the accepted load", on_bmv2=False),
    "saturation_load": Metric("", "saturation load: --load at which the best split fills a link"),
    "latency_s": Metric("s", "packet latency, mean", "time"),
    "latency_p99_s": Metric("s", "packet latency, 99th percentile", "time"),
    "loss": Metric("", "loss rate: lost packets / sent packets", possible=SHARE),
    "reordered": Metric("", "fraction of packets reordered within their flow (RFC 4737)", possible=SHARE),
    "largest_link_load": Metric("", "load of the busiest mesh direction or light path", on_bmv2=False),
    **{
        f"{name.replace('-', '_')}_{what}": Metric("", f"{name}: {words}", possible=possible)
        for name in CLASSES
        for what, words, possible in (
            ("max_over_mean", "largest load / mean load", (1.0, None)),
            ("fairness", "Jain's fairness index of loads", SHARE),
        )
    },
}


def metrics(
    found: TrafficResults,
    loads: Sequence[LinkLoad],
    topology: Topology,
    scale: Scale,
    window: MeasurementWindow | None,
) -> dict[str, Any]:
    """Return the metrics that follow from traffic and loads.

    Args:
        window: None where a number of packets is sent, or times are not known.
    """
    latency_us, p99_us = found.mean_latency_us, found.latency_us(99)
    result: dict[str, Any] = {
        "offered_load": None,
        "accepted_load": None,
        "throughput_bps": found.throughput_bps,
        "latency_s": None if latency_us is None else latency_us / 1e6,
        "latency_p99_s": None if p99_us is None else p99_us / 1e6,
        "loss": found.loss,
        "reordered": found.reordered / found.received if found.received else None,
        "largest_link_load": max((row.load for row in loads if row.load is not None), default=None),
    }
    if window is not None:
        accepted_bytes = arrived_bytes(topology, window) - found.measured_copy_bytes
        result["throughput_bps"] = scale.nominal_rate(8 * accepted_bytes / window.seconds)
        if (capacity := host_capacity_bytes(topology, window)) is not None:
            offered_bytes = sum(window.entered_bytes(host_direction(topology, host.name)) for host in topology.hosts)
            result["offered_load"], result["accepted_load"] = offered_bytes / capacity, accepted_bytes / capacity
    for name in CLASSES:
        rows = [row for row in loads if row.link_class == name]
        even = balance([row.bytes if row.measured_bytes is None else row.measured_bytes for row in rows])
        key = name.replace("-", "_")
        result[f"{key}_max_over_mean"], result[f"{key}_fairness"] = even or (None, None)
    return result


def host_direction(topology: Topology, host: str) -> Direction:
    """Return the link direction from a host to its switch."""
    return host, topology.attachment(host).name


def arrived_bytes(topology: Topology, window: MeasurementWindow, host: str | None = None) -> int:
    """Return the bytes that links delivered to a host, or to all of them, duplicates included."""
    ways = [host_direction(topology, each.name)[::-1] for each in topology.hosts if host in (None, each.name)]
    return sum(window.carried_bytes(way) + window.copied_bytes(way) for way in ways)


def host_capacity_bytes(topology: Topology, window: MeasurementWindow) -> float | None:
    """Return what all hosts' links can carry in the window; None if some have no rate."""
    rates = [link.model.rate_bps for link in topology.host_links]
    return None if None in rates else sum(rate or 0 for rate in rates) * window.seconds / 8


def link_rows(loads: Sequence[LinkLoad]) -> list[dict[str, Any]]:
    return [
        {"class": row.link_class, "link": row.name, "packets": row.packets, "bytes": row.bytes, "load": row.load}
        for row in loads
    ]


def loss_rows(topology: Topology, counts: Counts) -> list[dict[str, Any]]:
    return [{"cause": cause, "packets": count} for cause, count in loss_by_cause(topology, counts).items()]
