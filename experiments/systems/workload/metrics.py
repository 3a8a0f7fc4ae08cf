"""Metrics and table rows of a workload: traffic, where packets were lost, and what of the programs they reached."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gradbed.experiments.configuration.faults import Fault, LinkChange
from gradbed.experiments.conservation.counts import Counts, LinkBytes
from gradbed.experiments.scale import Scale
from gradbed.experiments.tables.metric import Metric, Value
from gradbed.experiments.traffic.connections import ConnectionResults
from gradbed.experiments.traffic.results import TrafficResults
from gradbed.switch.insight.coverage import Report
from gradbed.topo.graph import Link, Topology

PERCENTILES = {"p50_us": 50.0, "p90_us": 90.0, "p99_us": 99.0, "p999_us": 99.9, "max_us": 100.0}

METRICS: Mapping[str, Metric] = {
    "sent_packets": Metric("", "measured packets sent by hosts"),
    "received_packets": Metric("", "measured packets received, without duplicates"),
    "loss": Metric("", "fraction of the sent packets that did not arrive", possible=(None, 1.0)),
    "throughput_bps": Metric("bit/s", "throughput of received frames (TCP: payload), all hosts together", "rate"),
    "delivered_bps": Metric("bit/s", "throughput of frames received during the measured time", "rate"),
    "mean_us": Metric("us", "latency from departure at the sender to arrival, mean"),
    **{
        name: Metric("us", f"latency, {percent:g}th percentile" if percent < 100 else "latency, maximum")
        for name, percent in PERCENTILES.items()
    },
    "duplicates": Metric("", "duplicate packets received"),
    "reordered": Metric("", "packets reordered within their flow (RFC 4737)"),
    "misdelivered": Metric("", "packets delivered to the wrong host"),
    "foreign_frames": Metric("", "received frames without a valid mark of an agent"),
    "flow_p50_us": Metric("us", "flow completion time, median"),
    "flow_p99_us": Metric("us", "flow completion time, 99th percentile"),
    "unfinished_flows": Metric("", "TCP connections that did not deliver all data"),
    "retransmissions": Metric("", "TCP segments retransmitted by kernels"),
    "rtt_us": Metric("us", "round-trip time estimated by kernels, mean of the connections' last estimates"),
    "background_rounds": Metric("", "gradient rounds of the background jobs"),
    "background_round_us": Metric("us", "time of a background gradient round, mean"),
    "program_drops": Metric("", "packets dropped by the program, other than on a table miss", on_bmv2=False),
    "no_entry_drops": Metric("", "packets dropped by the default action on a table miss", on_bmv2=False),
    "no_port_drops": Metric("", "packets sent to nonexistent ports", on_bmv2=False),
    "no_group_drops": Metric("", "packets sent to multicast groups without ports", on_bmv2=False),
    "queue_drops": Metric("", "packets dropped by full queues"),
    "link_losses": Metric("", "packets lost on links"),
    "other_drops": Metric("", "packets dropped by switches otherwise (priorities, buffers, restarts)", on_bmv2=False),
    "to_controller": Metric(
        "", "packets sent to the controller port (510), where no controller listens", on_bmv2=False
    ),
    "recirculated": Metric("", "recirculated and resubmitted packets", on_bmv2=False),
    "covered_statements": Metric(
        "", "fraction of the program's statements that packets reached", possible=(0.0, 1.0)
    ),
    "unused_entries": Metric("", "table entries that no packet matched in any switch"),
    "busiest_link_load": Metric(
        "", "load of the busiest link between switches while hosts sent, as a fraction of its rate"
    ),
}

_OF_SWITCHES = [name for name, metric in METRICS.items() if not metric.on_bmv2]
_OTHER = ("no_program_drops", "swap_drops", "priority_drops", "buffer_drops")


def traffic_metrics(results: TrafficResults) -> dict[str, Value]:
    """Return the metrics of UDP traffic or a replay."""
    completion_us = results.completion_us[~np.isnan(results.completion_us)]
    if not results.flow_rows():
        completion_us = completion_us[:0]
    sent = results.sent + results.replayed
    # Frames of a replay have no mark: what comes is taken to be theirs, copies and all.
    received = results.received + (results.foreign if results.replayed else 0)
    return {
        "sent_packets": sent,
        "received_packets": received,
        "loss": 1 - received / sent if sent else None,
        "throughput_bps": results.throughput_bps,
        "delivered_bps": results.delivered_bps,
        "mean_us": results.mean_latency_us,
        **{name: results.latency_us(percent) for name, percent in PERCENTILES.items()},
        "duplicates": results.duplicates,
        "reordered": results.reordered,
        "misdelivered": results.misdelivered,
        "foreign_frames": 0 if results.replayed else results.foreign,
        "flow_p50_us": float(np.percentile(completion_us, 50)) if len(completion_us) else None,
        "flow_p99_us": float(np.percentile(completion_us, 99)) if len(completion_us) else None,
    }


def connection_metrics(results: ConnectionResults) -> dict[str, Value]:
    """Return the metrics of TCP connections."""
    return {
        "throughput_bps": results.throughput_bps,
        "flow_p50_us": results.completion_us(50),
        "flow_p99_us": results.completion_us(99),
        "unfinished_flows": results.unfinished,
        "retransmissions": results.retransmissions,
        "rtt_us": results.mean_rtt_us,
    }


def background_metrics(rows: Sequence[Mapping[str, Any]]) -> dict[str, Value]:
    """Return the metrics of the background; none without rows of traffic.background.Background."""
    if not rows:
        return {}
    return {
        "background_rounds": 1 + max(row["round"] for row in rows),
        "background_round_us": sum(row["round_us"] for row in rows) / len(rows),
    }


def loss_metrics(counts: Counts) -> dict[str, Value]:
    """Return the lost packets by cause, warm-up included; None for causes that switches do not report (BMv2)."""
    effects = counts.effects.values()
    found: dict[str, Value] = {
        "queue_drops": sum(effect.queue_drops.packets for effect in effects),
        "link_losses": sum(effect.losses.packets for effect in effects),
    }
    if not counts.devices:
        return {**found, **dict.fromkeys(_OF_SWITCHES)}
    rows = [switch_drops(device) for device in counts.devices.values()]
    return {**found, **{name: sum(row[name] for row in rows) for name in _OF_SWITCHES}}


def switch_drops(device: Mapping[str, int]) -> dict[str, int]:
    """Return the drops of one switch; `device` is gradbed.switch.engine.DeviceStatistics."""
    return {
        "program_drops": device["ingress_drops"] + device["egress_drops"] - device["no_entry_drops"],
        "no_entry_drops": device["no_entry_drops"],
        "no_port_drops": device["no_port_drops"],
        "no_group_drops": device["no_group_drops"],
        "other_drops": sum(device[name] for name in _OTHER),
        "to_controller": device["packet_ins"],
        "recirculated": device["recirculated"] + device["resubmitted"],
    }


def switch_rows(counts: Counts) -> list[dict[str, Any]]:
    """Return a row for each switch that reports statistics."""
    return [
        {"switch": switch, "received": device["received"], **switch_drops(device)}
        for switch, device in counts.devices.items()
    ]


def drop_rows(counts: Counts) -> list[dict[str, Any]]:
    """Return a row for each switch and place in its program that dropped packets, the most first."""
    rows = [
        {"switch": switch, "packets": packets, "dropped": site}
        for switch, sites in counts.program_drops.items()
        for site, packets in sites.items()
        if packets
    ]
    return sorted(rows, key=lambda row: -row["packets"])


def latency_rows(results: TrafficResults, points: int = 200) -> list[dict[str, float]]:
    """Return the distribution of latencies at no more than `points` fractions.

    packets is the number of packets with a latency between the row before and this one, share the fraction of all
    packets with at most this latency.
    """
    latencies_us, shares = results.latency_distribution()
    if not len(shares):
        return []
    places = np.unique(np.searchsorted(shares, np.linspace(0, 1, points + 1)[1:] - 1e-12))
    packets = np.rint(np.diff(shares[places], prepend=0) * results.histogram.count)
    return [
        {"latency_us": float(latency_us), "packets": int(count), "share": float(share)}
        for latency_us, count, share in zip(latencies_us[places], packets, shares[places], strict=True)
    ]


def busiest_link_load(carried: LinkBytes, topology: Topology, faults: Sequence[Fault], scale: Scale) -> float | None:
    """Return the largest load of a link between switches with a rate: carried bytes over what its rates allowed."""
    loads = [
        8e6 * carried.bytes.get(direction, 0) / allowed
        for link in topology.switch_links
        for direction in ((link.a.node, link.b.node), (link.b.node, link.a.node))
        if (allowed := _allowed(link, carried, faults, scale))
    ]
    return max(loads, default=None)


def _allowed(link: Link, carried: LinkBytes, faults: Sequence[Fault], scale: Scale) -> float | None:
    """Return what a link's rates allowed, in bits times 10^6; None if there was no limit, or no time.

    Faults may have changed the rate.
    """
    rates = [(0, link.model.rate_bps)]
    for fault in sorted(faults, key=lambda fault: fault.at_ms):
        if isinstance(fault, LinkChange) and {*fault.link} == {link.a.node, link.b.node}:
            changed = fault.change.fields(scale)
            rates.append((scale.time_us(1000 * fault.at_ms), changed.get("rate_bps", rates[-1][1])))
    allowed = 0
    ends = [*(time_us for time_us, _ in rates[1:]), carried.to_us]
    for (begin_us, rate_bps), end_us in zip(rates, ends, strict=True):
        if rate_bps is None:
            return None
        allowed += rate_bps * max(0, min(end_us, carried.to_us) - max(begin_us, carried.from_us))
    return allowed or None


# ---- Coverage of the programs ----


def coverage_metrics(reports: Sequence[Report]) -> dict[str, Value]:
    """Return the coverage of all programs together; None where it was not asked for."""
    if not reports:
        return dict.fromkeys(("covered_statements", "unused_entries"))
    reached, total = _sum(reports, "statements")
    used, entries = _sum(reports, "table entries")
    return {"covered_statements": reached / total if total else None, "unused_entries": entries - used}


def _sum(reports: Sequence[Report], category: str) -> tuple[int, int]:
    """Return the number of items that were reached, and of all."""
    pairs = [report.reached(category) for report in reports]
    return sum(reached for reached, _ in pairs), sum(total for _, total in pairs)


def coverage_rows(reports: Sequence[Report]) -> list[dict[str, Any]]:
    """Return a row for each item that packets may reach."""
    return [
        {
            "program": report.program,
            "category": category,
            "name": item.name,
            "file": item.source.file if item.source else None,
            "line": item.source.line if item.source else None,
            "hits": item.hits,
        }
        for report in reports
        for category, items in report.items.items()
        for item in items
    ]
