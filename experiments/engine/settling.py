"""Wait until a network is quiescent, for as long as packets make progress, and find forwarding loops.

Loops are concluded, not guessed: on a path that ends, a packet crosses at most MOST_HOPS links, or, flooded, every
link in both directions. When links have carried more than that for every packet that was in flight, some packets
loop.
"""

from __future__ import annotations

from collections.abc import Sequence

from gradbed.experiments.configuration.faults import Fault, LinkChange
from gradbed.experiments.conservation.counts import Counts
from gradbed.experiments.runtimes.interface import Runtime
from gradbed.experiments.scale import Scale
from gradbed.topo.graph import Topology

POLL_INTERVAL_S = 0.5
"""Interval at which to check whether packets make progress."""

STILL_S = 5.0
"""When no packet made progress for so long, besides the time of a packet on the slowest link, none will."""

MOST_HOPS = 256
"""Upper bound of hops on a path that ends: a time to live has eight bits."""

LONGEST_FRAME_BYTES = 65_553
_NAMED = 3


def settle(runtime: Runtime, before: Counts, still_s: float) -> str:
    """Wait until no packet is in flight between switches; return "", or in words why some always will be.

    before: counts when the phase began. still_s: how long packets may stand still (longest_stand_s).
    """
    start = last = Counts.of_links(runtime)
    in_flight, still_polls = runtime.backend.packets_in_flight(), 0
    if in_flight is None:
        # So many at most.
        in_flight = _entered(runtime.topology, start.since(before))
    hops = max(MOST_HOPS, 2 * len(runtime.topology.links))
    while not runtime.backend.quiesce(POLL_INTERVAL_S):
        now = Counts.of_links(runtime)
        since = now.since(start)
        crossings = sum(tally.packets for tally in since.delivered.values())
        if crossings > hops * (in_flight + _entered(runtime.topology, since)):
            return _again(now.since(before)) or f"packets loop forever{_where(since)}"
        still_polls = still_polls + 1 if (now.delivered, now.effects) == (last.delivered, last.effects) else 0
        if still_polls * POLL_INTERVAL_S > still_s:
            return _again(now.since(before)) or "packets make no progress"
        last = now
    return ""


def longest_stand_s(topology: Topology, faults: Sequence[Fault], scale: Scale) -> float:
    """Return how long nothing may be seen to move although packets make progress. topology: in emulated units."""
    rates = [link.model.rate_bps for link in topology.links]
    delays = [link.model.delay_us + link.model.jitter_us + link.model.turn_us for link in topology.links]
    for fault in faults:
        if isinstance(fault, LinkChange):
            fields = fault.change.fields(scale)
            rates.append(fields.get("rate_bps"))
            delays.append(fields.get("delay_us", 0) + fields.get("jitter_us", 0))
    slowest_bps = min(filter(None, rates), default=None)
    sending_s = 8 * LONGEST_FRAME_BYTES / slowest_bps if slowest_bps else 0.0
    return STILL_S + 2 * (sending_s + max(delays, default=0) / 1e6)


def _entered(topology: Topology, counts: Counts) -> int:
    """Return the number of packets that hosts sent."""
    return sum(tally.packets for (sender, _), tally in counts.delivered.items() if topology.is_host(sender))


def _where(since: Counts) -> str:
    """Name the links that carried most."""
    busiest = sorted(since.delivered.items(), key=lambda item: -item[1].packets)[:_NAMED]
    return ": " + ", ".join(f"{a} to {b} carried {tally.packets:,}" for (a, b), tally in busiest if tally.packets)


def _again(counts: Counts) -> str:
    """Name the switch that handles packets again and again; "": none does, or none tells."""
    again = {
        switch: device["recirculated"] + device["resubmitted"] + device["cloned"]
        for switch, device in counts.devices.items()
    }
    most = max(again, key=lambda switch: again[switch], default=None)
    if most is None or again[most] <= MOST_HOPS * max(1, counts.devices[most]["received"]):
        return ""
    return f"{most} recirculated, resubmitted or cloned {again[most]:,} times: does its program do so without end?"
