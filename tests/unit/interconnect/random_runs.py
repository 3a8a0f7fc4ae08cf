"""Random traffic, policies, links, faults and mistakes: no run may close with its sentence over a wrong result.

What is right is said here, from the frames that hosts handed to their NICs and took from them, with their times.
"""

from __future__ import annotations

import struct
import tempfile
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from gradbed.common.errors import UserError
from gradbed.experiments.phases import TrialResult
from gradbed.experiments.runtimes.virtual import VirtualRuntime
from gradbed.hosts.traffic.received_packets import ReceivedPackets
from gradbed.topo.graph import Topology
from gradbed.topo.registry import parse_topology
from tests.unit import random_runs
from tests.unit.interconnect.test_trial import run
from tests.unit.random_runs import Mistake, Nics, Outcome, RandomRuns, watched_nics

RATE_MBPS, FRAME_BYTES = 100, 1000
TRAILER = struct.Struct(">HHHIIQ")
"""At the end of each frame: tag, sender (its highest bit: of the warm-up), receiver, flow, number in it, time."""


# ---- What is drawn ----


def fault(topology: Topology) -> st.SearchStrategy[dict[str, Any]]:
    changes: list[dict[str, Any]] = [{"loss": 0.2}, {"rate_mbps": 30}, {"rate_mbps": 300}]
    kinds = ["link-down", "link-up", "link-change", "switch-restart"]
    return random_runs.fault(topology, kinds, 8, change=st.sampled_from(changes))


@st.composite
def configurations(draw: st.DrawFn) -> dict[str, Any]:
    n = draw(st.sampled_from([2, 2, 3]))
    topology = parse_topology(f"optical-electrical:{n}")
    lossy = draw(st.sampled_from([{}, {}, {"loss": 0.05}, {"duplicate": 0.1}, {"jitter_us": 5}]))
    return {
        "kind": topology.name,
        "link": {"queue_packets": draw(st.sampled_from([2, 16, 1000])), **lossy},
        "routing": {
            "policy": draw(st.sampled_from(["least-loaded", "random-plane", "fixed-plane", "mesh-first", "ecmp"])),
            "channels": draw(st.sampled_from(["wavelength", "uplink", "circuit"])),
            "flowlet_us": draw(st.sampled_from([0, 0, 300])),
            "guard_us": 150,
        },
        "traffic": {
            "pattern": draw(
                st.sampled_from(["all-to-all", "permutation", f"stride:{n * n}", "incast", "hotspot:0.3"])
            ),
            "load": draw(st.sampled_from([0.2, 0.6, 1.0, 1.7])),
            "arrivals": draw(st.sampled_from(["constant", "poisson", "on-off"])),
            "sizes": draw(st.sampled_from(["fixed", "uniform"])),
            "frame_bytes": FRAME_BYTES,
            "duration_ms": 8,
            "warm_up_ms": draw(st.sampled_from([0, 2])),
        },
        "faults": draw(st.lists(fault(topology), max_size=2)) if draw(st.booleans()) else [],
    }


# ---- Mistakes, which a run must not hide ----


def told_less(patch: pytest.MonkeyPatch) -> None:
    """Hosts tell of no packet that is late by more than 400 us."""
    add = ReceivedPackets.add

    def some(self: ReceivedPackets, buffer: Any, lengths: Any, times_ns: Any) -> None:
        sent_ns = [
            TRAILER.unpack(bytes(row[: int(size)])[-TRAILER.size :])[5]
            for row, size in zip(buffer, lengths, strict=False)
        ]
        kept = [
            place for place, (at, left) in enumerate(zip(times_ns, sent_ns, strict=True)) if int(at) - left < 400_000
        ]
        add(self, buffer[kept], lengths[kept], times_ns[kept])

    patch.setattr(ReceivedPackets, "add", some)


def window_cut(patch: pytest.MonkeyPatch) -> None:
    """What is measured begins half a millisecond later for receivers."""
    statistics = ReceivedPackets.statistics

    def shifted(self: ReceivedPackets) -> dict[str, Any]:
        first_ns, last_ns = self.measured_ns
        self.measured_ns = first_ns + 500_000, last_ns
        return statistics(self)

    patch.setattr(ReceivedPackets, "statistics", shifted)


MISTAKES: list[Mistake] = [told_less, window_cut]


# ---- The reference ----


@dataclass
class Seen:
    """begun_ns: when the agents began."""

    nics: Nics
    begun_ns: int = 0


def watch(topology: Topology, patch: pytest.MonkeyPatch) -> Seen:
    seen = Seen(watched_nics(topology, patch))
    begin = VirtualRuntime.begin

    def spy_begin(self: VirtualRuntime) -> None:
        seen.begun_ns = 1000 * self.now_us()
        begin(self)

    patch.setattr(VirtualRuntime, "begin", spy_begin)
    return seen


def wrong(result: TrialResult, drawn: dict[str, Any], seen: Seen) -> list[str]:
    """What the result says that is not so."""
    topology, metrics, lines = parse_topology(drawn["kind"]), result.metrics, []
    ips = [IPv4Address(host.ip).packed for host in topology.hosts]
    sent: dict[tuple[int, int, int], tuple[int, bytes]] = {}
    for each in seen.nics.sent:
        frame = each.frame
        _, source, receiver, flow, number, _ = TRAILER.unpack(frame[-TRAILER.size :])
        assert each.time_ns is not None
        sent[source, flow, number] = each.time_ns, frame
        if ips[receiver] != frame[30:34]:
            lines.append("a frame bears another receiver than its address")
    arrived: dict[tuple[int, int, int], int] = {}
    came = [(each.time_ns or 0, each.host, each.frame) for each in seen.nics.received]
    for time_ns, _, frame in sorted(came, key=lambda each: each[0]):
        _, source, _, flow, number, _ = TRAILER.unpack(frame[-TRAILER.size :])
        _, original = sent[source, flow, number]
        # All but MAC addresses, TTL and checksum.
        if (frame[12:22], frame[26:-8]) != (original[12:22], original[26:-8]):
            lines.append("a frame changed on its way")
        arrived.setdefault((source, flow, number), time_ns)
    for host in {host for _, host, _ in came}:
        if len({frame[30:34] for _, at, frame in came if at == host}) != 1:
            lines.append("frames of several addresses came to one host")

    measured = {key: value for key, value in sent.items() if key[0] < 1 << 15}
    there = {key: at - measured[key][0] for key, at in arrived.items() if key in measured}
    lost = 1 - len(there) / len(measured) if measured else None
    latency_s = sum(there.values()) / len(there) / 1e9 if there else None
    for name, expected in (("loss", lost), ("latency_s", latency_s)):
        if (metrics[name] is None) != (expected is None) or (
            expected is not None and metrics[name] != pytest.approx(expected, rel=1e-6, abs=1e-9)
        ):
            lines.append(f"{name} is {expected}, not {metrics[name]}")
    if metrics["accepted_load"] is None:
        return lines
    traffic = drawn["traffic"]
    seconds = (traffic["duration_ms"] - traffic["warm_up_ms"]) / 1e3
    whole = seconds * RATE_MBPS * 1e6 / 8 * len(topology.hosts)
    first_ns = seen.begun_ns + 1_000_000 * traffic["warm_up_ms"]
    last_ns = seen.begun_ns + 1_000_000 * traffic["duration_ms"]
    accepted = sum(len(sent[key][1]) for key, at in arrived.items() if first_ns <= at < last_ns) / whole
    offered = sum(len(frame) for at, frame in sent.values() if first_ns <= at < last_ns) / whole
    # What comes or goes in its very first or last nanosecond.
    slack = 2 * FRAME_BYTES * len(topology.hosts) / whole
    for name, load in (("accepted_load", accepted), ("offered_load", offered)):
        if abs(metrics[name] - load) > slack:
            lines.append(f"{name} is {load}, not {metrics[name]}")
    under_way = sum(
        len(frame) for key, (at, frame) in sent.items() if at < first_ns and arrived.get(key, last_ns) >= first_ns
    )
    if metrics["accepted_load"] > metrics["offered_load"] + under_way / whole + slack:
        lines.append("more was accepted than was offered and under way")
    largest, one = metrics["largest_link_load"], (FRAME_BYTES + 4) * 8 / (RATE_MBPS * 1e6 * seconds)
    turns = 3 if drawn["routing"]["channels"] == "circuit" else 1
    if largest is not None and largest > 1 + turns * one:
        lines.append(f"a link has a load of {largest}")
    if metrics["accepted_bound"] is not None and metrics["accepted_load"] > metrics["accepted_bound"] + 1e-9:
        lines.append("the bound is crossed")
    return lines


def check(both: tuple[dict[str, Any], Mistake | None]) -> Outcome:
    drawn, mistake = both
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        seen = watch(parse_topology(drawn["kind"]), patch)
        if mistake is not None:
            mistake(patch)
        try:
            result = run(Path(folder), **{**drawn, "link": dict(drawn["link"]), "traffic": dict(drawn["traffic"])})
        except UserError:
            return "refused"  # it says that it came to nothing
        found = wrong(result, drawn, seen)
    if not result.failures:
        assert found == []
        return "right"
    # It says what failed: without a mistake nothing but that which the reference finds, too, may have.
    assert mistake is not None or found != [], result.failures
    return "failed"


RUNS = RandomRuns(st.tuples(configurations(), st.sampled_from([None, None, *MISTAKES])), check, few=6)
