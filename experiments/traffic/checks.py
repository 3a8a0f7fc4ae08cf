"""Check that results of a traffic contradict neither each other nor what is possible; each line is a failure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from gradbed.experiments.conservation.checks import ENDS
from gradbed.experiments.conservation.counts import Counts
from gradbed.experiments.traffic.results import TrafficResults
from gradbed.hosts.traffic.received_packets import PRECISION_BITS, LatencyHistogram
from gradbed.topo.graph import Topology

# ---- Marks in packets beside interfaces ----


def mark_disagreements(results: TrafficResults) -> list[str]:
    """Return a line for each host whose agent counted other packets than its interface."""
    lines = []
    for host, report in results.reports.items():
        (carried,) = report["interfaces"].values()
        flows, begun = report["flows"], report["sent_flows"]
        sent = sum(begun["packets"]) + report["warm_up_sent"] + report["replayed"]
        others = sum(report[kind] for kind in ("warm_up", "foreign", "misdelivered"))
        received = sum(flows["packets"]) + sum(flows["duplicates"]) + others
        timed = LatencyHistogram.from_json(report["histogram"]).count
        if timed != sum(flows["packets"]):
            lines.append(f"{host} tells latencies of {timed} packets, and the arrival of {sum(flows['packets'])}")
        for what, marked, frames in (
            ("sent", sent, carried["sent_frames"]),
            ("received", received, carried["received_frames"]),
        ):
            if marked != frames:
                lines.append(f"{host} {what} {marked} packets by their marks, and {frames} by its interface")
    return lines


# ---- Results of a traffic ----


ROUNDING = 1e-9
"""Relative tolerance of sums of floating-point numbers."""

BIN = 2.0**-PRECISION_BITS
"""Width of a histogram's bin relative to its latencies."""


def loss_contradictions(
    results: TrafficResults, counts: Counts, lost: int, dropped: int, host_drops: int
) -> Iterator[str]:
    """Yield a line unless every packet that was sent, or copied, either came to a host or was dropped somewhere.

    Args:
        lost: lost packets among the measured ones, as the run reports them.
        dropped: packets dropped on links and in switches, by their counters.
        host_drops: packets dropped by the hosts' own sockets.
    """
    reports = results.reports.values()
    warm_up_lost = sum(report["warm_up_sent"] - report["warm_up"] for report in reports)
    elsewhere = results.misdelivered + results.foreign - results.replayed
    made = sum(effect.duplicates.packets for effect in counts.effects.values())
    made += sum(device["cloned"] + device["copied"] + device["packet_outs"] for device in counts.devices.values())
    missing = lost + warm_up_lost - elsewhere + made - results.duplicates
    if missing != dropped + host_drops:
        yield (
            f"{lost} packets were lost after the warm-up and {warm_up_lost} in it, {made} copies were made and "
            f"{results.duplicates} arrived, {elsewhere} frames came to other hosts: so {missing} are "
            f"missing, but links, switches and hosts dropped {dropped + host_drops}"
        )


def dropped_packets(counts: Counts) -> int:
    """Return the packets dropped by links, by sockets in front of them, and in switches that report drops
    (gradbed.experiments.accounts.conservation).
    """
    on_links = sum(effect.lost_packets for effect in counts.effects.values())
    return on_links + sum(device[name] for device in counts.devices.values() for name in ENDS)


def latency_contradictions(
    results: TrafficResults, mean_us: float | None, percentiles_us: Mapping[float, float | None]
) -> Iterator[str]:
    """Yield a line for each latency that contradicts others.

    Args:
        mean_us: as reported.
        percentiles_us: as reported, by percent.
    """
    rows = [row for row in results.pair_rows() if row["received_packets"]]
    arrived = bool(rows) or not results.all_reported
    if mean_us is None or not arrived:
        if mean_us is not None or any(value is not None for value in percentiles_us.values()):
            yield "a latency is told, and no packet arrived"
        return
    for row in rows:
        if not _rising(row["latency_us_min"], row["latency_us_mean"], row["latency_us_max"]):
            yield (
                f"{row['sender']} to {row['receiver']}: a mean latency of {row['latency_us_mean']:g} us, not of "
                f"{row['latency_us_min']:g} to {row['latency_us_max']:g} us"
            )
    yield from _beside_histogram(results, mean_us, percentiles_us)
    if not results.all_reported:
        return  # packets of stopped agents are in mean and percentiles, and in no pair
    received = sum(row["received_packets"] for row in rows)
    of_pairs_us = sum(row["received_packets"] * row["latency_us_mean"] for row in rows) / received
    if abs(mean_us - of_pairs_us) > ROUNDING * of_pairs_us:
        yield f"the mean latency is {mean_us:g} us, that of all pairs together {of_pairs_us:g} us"
    least_us = min(row["latency_us_min"] for row in rows)
    most_us = max(row["latency_us_max"] for row in rows)
    for percent, value in percentiles_us.items():
        if value is not None and not _rising(least_us * (1 - BIN), value, most_us * (1 + BIN) + 0.001):
            yield f"a latency that {percent:g} % do not exceed is {value:g} us, not {least_us:g} to {most_us:g} us"


def _beside_histogram(
    results: TrafficResults, mean_us: float, percentiles_us: Mapping[float, float | None]
) -> Iterator[str]:
    """Report a mean that differs from the histogram's, and percentiles that fall, or contradict the mean."""
    latencies_us, shares = results.latency_distribution()
    of_bins_us = float(np.diff(shares, prepend=0.0) @ latencies_us)
    if abs(mean_us - of_bins_us) > BIN * of_bins_us + 0.001:
        yield f"the mean latency is {mean_us:g} us, that of the histogram {of_bins_us:g} us"
    told = [(percent, value) for percent, value in sorted(percentiles_us.items()) if value is not None]
    for (low, low_us), (high, high_us) in pairwise(told):
        if low_us > high_us:
            yield f"latency: {low:g} % of the packets take up to {low_us:g} us, and {high:g} % up to {high_us:g} us"
    for percent, value in told:
        # Markov's inequality: a fraction of 1 - percent / 100 is at least the percentile.
        if mean_us < (1 - percent / 100) * value * (1 - 2 * BIN):
            yield f"the mean latency is {mean_us:g} us, though {100 - percent:g} % take {value:g} us and more"


def too_fast(results: TrafficResults, topology: Topology, least_bytes: int = 0) -> Iterator[str]:
    """Yield a line for each pair whose fastest packet was faster than the shortest path.

    Args:
        topology: in emulated units.
        least_bytes: shortest frame on any link; 0: programs may shorten frames without limit.
    """
    rows = [row for row in results.pair_rows() if row["received_packets"]]
    ways_us = _least_us(topology, sorted({row["sender"] for row in rows}), least_bytes)
    for row in rows:
        way_us = results.traffic.scale.nominal_time(ways_us[row["sender"]].get(row["receiver"], 0.0))
        if row["latency_us_min"] < way_us * (1 - ROUNDING) - 0.001:
            yield (
                f"{row['sender']} to {row['receiver']}: a packet took {row['latency_us_min']:g} us, "
                f"where the shortest way takes {way_us:g} us"
            )


def too_much(results: TrafficResults, topology: Topology, delivered_bps: float | None) -> Iterator[str]:
    """Yield a line if hosts received more in the measured time than their links carry.

    Args:
        delivered_bps: as reported.
    """
    rates = [link.model.rate_bps for link in topology.host_links]
    if delivered_bps is None or None in rates:
        return
    section, longest_bytes = results.traffic.section, 1514
    seconds = (section.duration_ms - section.warm_up_ms) / 1e3
    # Of each link the end of a packet that was being sent when the time began, or its copies.
    most_bps = results.traffic.scale.nominal_rate(float(sum(rate or 0 for rate in rates)))
    most_bps += 16 * longest_bytes * len(rates) / seconds
    if delivered_bps > most_bps:
        yield f"{delivered_bps:g} bit/s arrived, where the hosts' links carry {most_bps:g} bit/s at most"


def flow_contradictions(rows: Sequence[Mapping[str, Any]], told_us: Mapping[float, float | None]) -> Iterator[str]:
    """Yield a line for each completion time outside of those of the rows, or out of order with others.

    Args:
        told_us: reported completion times, by percent.
    """
    times_us = [row["completion_us"] for row in rows if row.get("completion_us") is not None]
    told = [(percent, value) for percent, value in sorted(told_us.items()) if value is not None]
    for (low, low_us), (high, high_us) in pairwise(told):
        if low_us > high_us:
            yield f"{low:g} % of the flows take up to {low_us:g} us, and {high:g} % up to {high_us:g} us"
    for percent, value in told:
        if times_us and not _rising(min(times_us), value, max(times_us)):
            yield f"{percent:g} % of the flows take up to {value:g} us, not {min(times_us):g} to {max(times_us):g} us"
        below = sum(time_us <= value * (1 + ROUNDING) for time_us in times_us)
        if times_us and abs(below / len(times_us) - percent / 100) > 1.5 / len(times_us) + _ties(times_us, value):
            yield f"{below} of {len(times_us)} flows take up to {value:g} us, told to be {percent:g} %"


def _ties(times_us: Sequence[float], value: float) -> float:
    """Return the fraction of the times that equal a value."""
    return sum(abs(time_us - value) <= ROUNDING * value for time_us in times_us) / len(times_us)


def _rising(*values: float) -> bool:
    return all(low <= high * (1 + ROUNDING) for low, high in pairwise(values))


def _least_us(topology: Topology, senders: Sequence[str], least_bytes: int) -> dict[str, dict[str, float]]:
    """Return the smallest time from each sender to each receiver, emulated.

    Each link of a path takes the whole frame (store and forward).
    """
    names = [*(host.name for host in topology.hosts), *(switch.name for switch in topology.switches)]
    place = {name: number for number, name in enumerate(names)}
    rows, columns, times_us = [], [], []
    for link in topology.links:
        model = link.model
        time_us = model.delay_us - model.jitter_us + (8e6 * least_bytes / model.rate_bps if model.rate_bps else 0.0)
        for a, b in ((link.a.node, link.b.node), (link.b.node, link.a.node)):
            rows.append(place[a])
            columns.append(place[b])
            times_us.append(max(time_us, 1e-6))  # an entry of zero would be no link
    graph = csr_array((times_us, (rows, columns)), shape=(len(names), len(names)))
    found = dijkstra(graph, indices=[place[name] for name in senders]) if senders else np.zeros((0, len(names)))
    hosts = [host.name for host in topology.hosts]
    return {sender: {host: float(found[row, place[host]]) for host in hosts} for row, sender in enumerate(senders)}
