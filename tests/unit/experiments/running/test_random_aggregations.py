"""Random aggregations with random faults and mistakes: no run may close with its sentence over a wrong result.

What is right is said here: sums are NumPy's, of the gradients that workers computed, hashed with hashlib; the traffic
of hosts is what their network cards took and gave.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from common.errors import UserError
from emulation.switches.virtual_switches import VirtualSwitches
from experiments.phases import PointResult
from experiments.systems.aggregation.phase import AggregationPhase
from experiments.testbeds.virtual_testbed import VirtualTestbed
from hosts.learning import workload
from hosts.transport.statistics import EndpointStatistics
from switch.virtual import HostInterface
from tests.unit.experiments.virtual_points import run
from topo.graph import Topology
from topo.registry import parse_topology

NETWORKS = ["star:5", "leaf-spine:3,2,2", "leaf-spine:2,1,3"]
MISTAKES = [None, None, None, "bit", "count", "link", "gradient", "digest"]


# ---- What is drawn ----


@st.composite
def aggregation(draw: st.DrawFn) -> dict[str, Any]:
    kind = draw(st.sampled_from(NETWORKS))
    topology = parse_topology(kind)
    exchange = draw(st.sampled_from(["server", "server", "ring"]))
    lanes = draw(st.sampled_from([32, 64]))
    link = {
        "rate_mbps": draw(st.sampled_from([20, 100])),
        "delay_us": draw(st.integers(0, 200)),
        "loss": draw(st.sampled_from([0.0, 0.0, 0.03])),
        "duplicate": draw(st.sampled_from([0.0, 0.0, 0.03])),
        "queue_packets": draw(st.sampled_from([10, 1000])),
        "reorder": draw(st.booleans()),
    }
    return {
        "topology": {"kind": kind, "link": link},
        "switches": {
            "placement": "none"
            if exchange == "ring"
            else draw(st.sampled_from(["greedy", "every-tor", "server-tor"])),
            "slots": draw(st.sampled_from([4, 64, 4096])),
            "slot_policy": draw(st.sampled_from(["dynamic", "static"])),
            "legacy": draw(st.sampled_from(["none", "p4"])),
            "named": None,
        },
        "workload": {
            "workers": draw(st.integers(2, 4)),
            "rounds": draw(st.integers(1, 3)),
            "lanes": lanes,
            "values": draw(st.integers(1, 20 * lanes)),
            "window_fragments": draw(st.sampled_from([2, 16])),
            "exchange": exchange,
            "baselines": draw(st.sampled_from([[], ["parameter-server"]])),
        },
        "faults": draw(st.lists(fault(topology), max_size=2)),
        "mistake": draw(st.sampled_from(MISTAKES)),
        "seed": draw(st.integers(1, 2**31)),
    }


@st.composite
def fault(draw: st.DrawFn, topology: Topology) -> dict[str, Any]:
    at_ms = draw(st.integers(0, 60)) / 10
    if draw(st.booleans()):
        return {"fault": "switch-restart", "at_ms": at_ms, "switch": draw(st.sampled_from(topology.switches)).name}
    link = draw(st.sampled_from(topology.links))
    change = {"loss": draw(st.sampled_from([0.0, 0.2])), "rate_mbps": draw(st.sampled_from([5, 50]))}
    return {"fault": "link-change", "at_ms": at_ms, "link": [link.a.node, link.b.node], "change": change}


# ---- What happened ----


@dataclass
class Seen:
    """By phase: what workers computed, and said of sums; what each host's card took and gave (frames, bytes)."""

    phase: int = -1
    gradients: dict[tuple[int, int, int], NDArray[np.int64]] = field(default_factory=dict)
    """By seed of the job, worker and round."""
    digests: list[tuple[int, str]] = field(default_factory=list)
    """Round, and what a worker said."""
    carried: dict[tuple[int, str, str], Counter[str]] = field(default_factory=lambda: defaultdict(Counter))


@contextmanager
def watched(topology: Topology, mistake: str | None) -> Iterator[Seen]:
    seen, left = Seen(), [True]
    hosts = {}
    for host in topology.hosts:
        switch = topology.attachment(host.name)
        hosts[switch.number, topology.port(switch.name, host.name)] = host.name
    send, receive, start = HostInterface.send, HostInterface.receive, VirtualTestbed.add_job
    take, compute = AggregationPhase._take_round, workload.synthetic_gradient
    told, count = VirtualSwitches.link_statistics, EndpointStatistics.to_json

    def first_time(what: str) -> bool:
        return mistake == what and bool(left) and left.pop()

    def watch_send(self: HostInterface, frames: Any, lengths: Any = None, times_ns: Any = None) -> int:
        rows = np.ascontiguousarray(frames).copy()
        raw = rows.view(np.uint8).reshape(len(rows), -1)
        if raw.shape[1] > 100 and first_time("bit"):
            raw[0, -1] ^= 1
        note("sent", hosts[self.device_id, self.port], [raw.shape[1]] * len(raw))
        return send(self, rows, lengths, times_ns)

    def watch_receive(self: HostInterface) -> Any:
        buffer, lengths = receive(self)
        note("received", hosts[self.device_id, self.port], lengths.tolist())
        return buffer, lengths

    def note(direction: str, host: str, lengths: list[int]) -> None:
        carried = seen.carried[seen.phase, host, direction]
        carried["packets"] += len(lengths)
        carried["bytes"] += sum(lengths)

    def watch_start(self: VirtualTestbed, request: Any) -> Any:
        seen.phase += 1
        return start(self, request)

    def watch_gradient(settings: Any, worker: int, round_number: int) -> Any:
        values = compute(settings, worker, round_number)
        seen.gradients[settings.seed, worker, round_number] = values.astype(np.int64)
        return values + 1 if first_time("gradient") else values

    def watch_round(self: AggregationPhase, place: int, event: Any) -> None:
        said = event["sums_sha256"]
        seen.digests.append((event["round"], said))
        # What is said to have been computed is not believed here.
        take(self, place, {**event, "sums_sha256": "0" * 64} if first_time("digest") else event)

    def watch_links(self: VirtualSwitches) -> Any:
        rows = told(self)
        if mistake == "link":
            last = max(range(len(rows)), key=lambda place: rows[place].packets)
            rows[last] = dataclasses.replace(rows[last], losses=rows[last].losses + (rows[last].packets > 0))
        return rows

    def watch_count(self: EndpointStatistics) -> Any:
        found = count(self)
        if first_time("count"):
            found["gradient_sent"] = {**found["gradient_sent"], "frames": found["gradient_sent"]["frames"] + 1}
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(HostInterface, "send", watch_send)
        patch.setattr(HostInterface, "receive", watch_receive)
        patch.setattr(VirtualTestbed, "add_job", watch_start)
        patch.setattr(workload, "synthetic_gradient", watch_gradient)
        patch.setattr(AggregationPhase, "_take_round", watch_round)
        patch.setattr(VirtualSwitches, "link_statistics", watch_links)
        patch.setattr(EndpointStatistics, "to_json", watch_count)
        yield seen


# ---- What is right ----


def wrong(result: PointResult, seen: Seen, rounds: int, workers: int) -> list[str]:
    """In words, what the result says that is not so."""
    said = []
    for number in range(rounds):
        found = [values for (_, _, of), values in seen.gradients.items() if of == number]
        if len(found) != workers:
            said.append(f"round {number + 1}: {len(found)} of {workers} workers computed a gradient")
            continue
        right = hashlib.sha256(np.sum(found, axis=0).astype("<i8").tobytes()).hexdigest()
        told = Counter(digest for of, digest in seen.digests if of == number)
        if told != {right: workers * (1 + seen.phase)}:
            said.append(f"round {number + 1}: workers tell of {dict(told)}, and {right} is right")
    phases = list(dict.fromkeys(row["phase"] for row in result.tables["summary"]))
    for row in result.tables["hosts"]:
        for direction in ("sent", "received"):
            carried = seen.carried[phases.index(row["phase"]), row["host"], direction]
            for unit in ("packets", "bytes"):
                if row[f"host_{direction}_{unit}"] != carried[unit]:
                    said.append(
                        f"{row['host']} is told to have {direction} {row[f'host_{direction}_{unit}']} {unit}, and "
                        f"its card {carried[unit]}"
                    )
    return said


def check(drawn: dict[str, Any]) -> str:
    """The verdict: right, failed (for a mistake), or broken (faults that no job survives)."""
    mistake, sizes = drawn["mistake"], drawn["workload"]
    topology = parse_topology(drawn["topology"]["kind"])
    sections = {name: drawn[name] for name in ("topology", "switches", "workload", "faults")}
    with watched(topology, mistake) as seen:
        try:
            result = run(drawn["seed"], **sections)
        except UserError as error:
            assert drawn["faults"] or mistake, error
            return "broken"
    found = wrong(result, seen, sizes["rounds"], sizes["workers"])
    if mistake is None:
        assert list(result.failures) == [], result.failures
        assert found == []
    assert result.failures or not found, found
    return "failed" if result.failures else "right"


FEW = settings(max_examples=6, derandomize=True, suppress_health_check=list(HealthCheck), deadline=None)


@FEW
@given(aggregation())
def test_no_random_run_closes_over_a_wrong_result(drawn: dict[str, Any]) -> None:
    check(drawn)


@pytest.mark.slow
def test_no_run_of_200_closes_over_a_wrong_result() -> None:
    outcomes: Counter[str] = Counter()

    @settings(FEW, max_examples=200)
    @given(aggregation())
    def runs(drawn: dict[str, Any]) -> None:
        outcomes[check(drawn)] += 1

    runs()
    print(dict(outcomes))
    assert outcomes["right"] > 80 and outcomes["failed"] > 20
