"""What a point of the interconnect yields. Rates and times are nominal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from experiments.counts import Counts
from experiments.scale import Scale
from experiments.system import Metric
from experiments.systems.interconnect.links import CLASSES, LinkClass, balance, light_share, loads, loss_by_cause
from experiments.traffic.configuration import TrafficSection
from experiments.traffic.results import TrafficResults
from topo.graph import Topology

SHARE = (0.0, 1.0)

METRICS: Mapping[str, Metric] = {
    "offered_load": Metric("", "sent by a host, on average, of its link"),
    "accepted_load": Metric("", "received by a host, on average, of its link"),
    "throughput_bps": Metric("bit/s", "received by all hosts", "rate"),
    "saturation_bound": Metric("", "offered load at which the best split fills a link"),
    "latency_s": Metric("s", "mean latency of packets", "time"),
    "latency_p99_s": Metric("s", "99th percentile of packets' latency", "time"),
    "loss": Metric("", "lost packets, of those sent", possible=SHARE),
    "reordered": Metric("", "packets that came after a later one of their flow (RFC 4737)", possible=SHARE),
    "largest_link_load": Metric("", "load of the busiest direction or light path"),
    **{
        f"{name.replace('-', '_')}_{what}": Metric("", f"{name}: {words}", possible=possible)
        for name in CLASSES
        for what, words, possible in (
            ("max_over_mean", "largest load over the mean", (1.0, None)),
            ("fairness", "Jain's index of loads", SHARE),
        )
    },
}


def metrics(
    found: TrafficResults,
    counts: Counts,
    topology: Topology,
    section: TrafficSection,
    scale: Scale,
    measured_s: float,
) -> dict[str, Any]:
    """measured_s: emulated, in which what was measured was sent."""
    hosts = len(topology.hosts)
    rate_bps = topology.host_links[0].model.rate_bps
    sent_bits = 8 * int(found.flows["bytes"].sum())
    rows = list(loads(topology, counts))
    largest = None
    if rate_bps and measured_s:
        fabric_s = measured_s + scale.time_us(1000 * section.warm_up_ms) / 1e6
        share = light_share(topology)
        shares: dict[LinkClass, float] = {"mesh": 1.0}
        shares |= {"uplink": 1.0} if share is None else {"light-path": share}
        loaded = (8 * row.bytes / shares[row.link_class] for row in rows if row.link_class in shares)
        largest = max(loaded) / fabric_s / rate_bps
    delivered_bps = found.delivered_bps
    latency_us, p99_us = found.mean_latency_us, found.latency_us(99)
    result: dict[str, Any] = {
        "offered_load": sent_bits / measured_s / hosts / rate_bps if rate_bps and measured_s else None,
        "accepted_load": (
            delivered_bps / hosts / scale.nominal_rate(rate_bps) if rate_bps and delivered_bps is not None else None
        ),
        "throughput_bps": found.throughput_bps if delivered_bps is None else delivered_bps,
        "latency_s": None if latency_us is None else latency_us / 1e6,
        "latency_p99_s": None if p99_us is None else p99_us / 1e6,
        "loss": found.loss,
        "reordered": found.reordered / found.received if found.received else None,
        "largest_link_load": largest,
    }
    for name in CLASSES:
        even = balance([row.bytes for row in rows if row.link_class == name])
        key = name.replace("-", "_")
        result[f"{key}_max_over_mean"], result[f"{key}_fairness"] = even or (None, None)
    return result


def link_rows(topology: Topology, counts: Counts) -> list[dict[str, Any]]:
    return [
        {"class": row.link_class, "link": row.name, "packets": row.packets, "bytes": row.bytes}
        for row in loads(topology, counts)
    ]


def loss_rows(topology: Topology, counts: Counts) -> list[dict[str, Any]]:
    return [{"cause": cause, "packets": count} for cause, count in loss_by_cause(topology, counts).items()]
