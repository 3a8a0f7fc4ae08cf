"""Random workloads with random faults and mistakes: no run may close with its sentence over a wrong result.

What is right is said here, from the frames that hosts' network cards sent and got: their marks are read with struct,
and counted one after the other. Of the project's own counts and sums none is used for it.
"""

from __future__ import annotations

import struct
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from common.errors import UserError
from experiments.phases import PointResult
from experiments.scale import Scale
from experiments.testbeds.virtual_testbed import VirtualTestbed
from switch.virtual import HostInterface
from tests.unit.workload.runs import ROUTES, configuration, run, table
from tests.unit.workload.test_accounts import SABOTAGES
from tests.unit.workload.test_addressing import BRIDGE, FLOODED, STATIC, learning_switch
from topo.graph import Topology
from topo.registry import parse_topology

NETWORKS = ["star:3", "leaf-spine:2,1,2", "leaf-spine:2,2,2", "dragonfly:2,1,1"]
MARK = struct.Struct(">HHHIIQ")
TAG, WARM_UP = 0x7A6B, 1 << 15


# ---- What is drawn ----


@st.composite
def fault(draw: st.DrawFn, topology: Topology) -> dict[str, Any]:
    at_ms = draw(st.integers(0, 100)) / 10
    kind = draw(st.sampled_from(["link-down", "link-up", "link-change", "switch-restart", "agent-stop"]))
    if kind == "switch-restart":
        return {"fault": kind, "at_ms": at_ms, "switch": draw(st.sampled_from([s.name for s in topology.switches]))}
    if kind == "agent-stop":
        return {"fault": kind, "at_ms": at_ms, "agent": f"traffic of {draw(st.sampled_from(topology.hosts)).name}"}
    link = draw(st.sampled_from(topology.links))
    found = {"fault": kind, "at_ms": at_ms, "link": [link.a.node, link.b.node]}
    return found if kind != "link-change" else {**found, "change": draw(link_fields())}


def link_fields() -> st.SearchStrategy[dict[str, Any]]:
    fields = {
        "rate_mbps": st.sampled_from([5, 20, 100]),
        "delay_us": st.integers(0, 300),
        "loss": st.sampled_from([0.0, 0.0, 0.05]),
        "duplicate": st.sampled_from([0.0, 0.0, 0.05]),
        "queue_packets": st.sampled_from([3, 20, 1000]),
        "reorder": st.booleans(),
    }
    return st.fixed_dictionaries({}, optional=fields)


@st.composite
def workload(draw: st.DrawFn) -> dict[str, Any]:
    """Sections of a configuration; program, faults and mistake by name."""
    kind = draw(st.sampled_from(NETWORKS))
    topology = parse_topology(kind)
    sizes = draw(st.sampled_from(["fixed", "uniform", "exponential", "web-search"]))
    duration_ms = draw(st.integers(2, 12))
    traffic = {
        "pattern": draw(st.sampled_from(["all-to-all", "permutation", "incast", "pairs", "hotspot:0.7"])),
        "load": draw(st.sampled_from([0.1, 0.5, 0.9, 1.4])),
        "arrivals": draw(st.sampled_from(["poisson", "constant", "on-off"])),
        "sizes": sizes,
        "frame_bytes": draw(st.sampled_from([100, 400, 1514])),
        **({"most_flow_kbytes": 20} if sizes == "web-search" else {"flows": draw(st.integers(1, 4))}),
        **draw(
            st.sampled_from(
                [
                    {"packets": 60},
                    {"packets": None, "duration_ms": duration_ms},
                    {"packets": None, "duration_ms": duration_ms, "warm_up_ms": duration_ms / 4},
                ]
            )
        ),
    }
    return {
        "topology": {"kind": kind, "link": {"rate_mbps": 20, **draw(link_fields())}},
        "traffic": traffic,
        "program": draw(st.sampled_from(["routes", "bridge", "learning"])),
        "faults": draw(st.lists(fault(topology), max_size=3)),
        "mistake": draw(st.sampled_from([None, None, *SABOTAGES])),
        "seed": draw(st.integers(1, 2**31)),
    }


# ---- What cards saw ----


@dataclass
class Cards:
    """By host: what its card took from agents, and gave to them: mark (None: none), length, and time."""

    hosts: dict[tuple[int, int], str]
    """By device and port of its switch."""
    sent: list[tuple[str, Any, int]] = field(default_factory=list)
    received: list[tuple[str, Any, int, int]] = field(default_factory=list)
    stopped: set[str] = field(default_factory=set)


def mark(row: Any, length: int) -> tuple[int, ...] | None:
    found = MARK.unpack(row[:length].tobytes()[-MARK.size :])
    return found[1:] if found[0] == TAG else None


@contextmanager
def watched(topology: Topology) -> Iterator[Cards]:
    cards = Cards(
        {
            (topology.attachment(host.name).number, topology.port(topology.attachment(host.name).name, host.name)): (
                host.name
            )
            for host in topology.hosts
        }
    )
    send, receive, kill = HostInterface.send, HostInterface.receive, VirtualTestbed.kill_agent

    def watch_send(self: HostInterface, frames: Any, lengths: Any = None, times_ns: Any = None) -> int:
        rows = np.ascontiguousarray(frames).view(np.uint8).reshape(len(frames), -1)
        sizes = [rows.shape[1]] * len(rows) if lengths is None else lengths.tolist()
        host = cards.hosts[self.device_id, self.port]
        cards.sent += [(host, mark(row, size), size) for row, size in zip(rows, sizes, strict=True)]
        return send(self, frames, lengths, times_ns)

    def watch_receive(self: HostInterface) -> Any:
        buffer, lengths = receive(self)
        host = cards.hosts[self.device_id, self.port]
        cards.received += [
            (host, mark(buffer[i], size), size, int(self.times_ns[i])) for i, size in enumerate(lengths.tolist())
        ]
        return buffer, lengths

    def watch_kill(self: VirtualTestbed, job: int, name: str) -> None:
        cards.stopped.add(name.removeprefix("traffic of "))
        kill(self, job, name)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(HostInterface, "send", watch_send)
        patch.setattr(HostInterface, "receive", watch_receive)
        patch.setattr(VirtualTestbed, "kill_agent", watch_kill)
        yield cards


# ---- What is right ----


def expected(cards: Cards, topology: Topology) -> tuple[dict[str, Any], dict[tuple[str, str], dict[str, Any]]]:
    """Metrics, and rows of pairs, by what cards saw; agents that were stopped took their counts along."""
    names = [host.name for host in topology.hosts]
    pairs: dict[tuple[str, str], dict[str, Any]] = {}
    for host, found, _ in cards.sent:
        source, receiver = found[0], names[found[1]]
        if not source & WARM_UP and not {host, receiver} & cards.stopped:
            row = pairs.setdefault((host, receiver), Counter())
            row["sent_packets"] += 1
    seen: set[tuple[int, int, int]] = set()
    greatest: dict[tuple[int, int], int] = {}
    misdelivered, latencies = 0, []
    for host, found, _, time_ns in cards.received:
        if host in cards.stopped:
            continue
        source, receiver, flow, sequence, sent_ns = found
        if names[receiver] != host:
            misdelivered += 1
            continue
        sender = names[source & ~WARM_UP]
        if source & WARM_UP or sender in cards.stopped:
            continue
        row = pairs.setdefault((sender, host), Counter())
        if (source, flow, sequence) in seen:
            row["duplicates"] += 1
            continue
        seen.add((source, flow, sequence))
        late = greatest.get((source, flow), 0) > sequence
        greatest[source, flow] = max(sequence, greatest.get((source, flow), 0))
        row["received_packets"] += 1
        row["reordered"] += late
        row["latency_us_max"] = max(row["latency_us_max"], (time_ns - sent_ns) / 1000)
        latencies.append(time_ns - sent_ns)
    names_of_sums = ("sent_packets", "received_packets", "duplicates", "reordered")
    metrics: dict[str, Any] = {name: sum(row[name] for row in pairs.values()) for name in names_of_sums}
    metrics["misdelivered"] = misdelivered
    metrics["mean_us"] = sum(latencies) / len(latencies) / 1000 if latencies else None
    return metrics, pairs


def wrong(result: PointResult, cards: Cards, topology: Topology) -> list[str]:
    """In words, what the result says that is not so."""
    metrics, pairs = expected(cards, topology)
    said = [
        f"{name} is {result.metrics[name]}, and not {value}"
        for name, value in metrics.items()
        if result.metrics[name] != (pytest.approx(value) if name == "mean_us" else value)
    ]
    told = {(row["sender"], row["receiver"]): row for row in table(result, "pairs") if row["sent_packets"]}
    said += [f"pairs are {sorted(told)}, and not {sorted(pairs)}"] if told.keys() != pairs.keys() else []
    for pair in told.keys() & pairs.keys():
        for name in ("sent_packets", "received_packets", "duplicates", "reordered"):
            if told[pair][name] != pairs[pair][name]:
                said.append(f"{pair}: {name} is {told[pair][name]}, and not {pairs[pair][name]}")
        if pairs[pair]["received_packets"]:
            said += (
                []
                if told[pair]["latency_us_max"] == pytest.approx(pairs[pair]["latency_us_max"])
                else [f"{pair}: the greatest latency is {told[pair]['latency_us_max']}"]
            )
    # Whatever did not come to a host was lost for one of the causes that are told, once for each copy that was made.
    causes = ("program_drops", "no_entry_drops", "no_port_drops", "no_group_drops", "queue_drops", "link_losses")
    lost = sum(int(str(result.metrics[name])) for name in (*causes, "other_drops"))
    duplicated = sum(row["duplicates"] for row in table(result, "links"))
    missing = len(cards.sent) + duplicated - len(cards.received)
    if not cards.stopped and missing > lost:
        said.append(f"{missing} packets did not come, and {lost} were lost by their causes")
    load = result.metrics["busiest_link_load"]
    if load is not None and not 0 <= float(str(load)) <= 1.3:
        said.append(f"a link carried {load} of its rate")
    return said


def check(drawn: dict[str, Any]) -> str:
    """The verdict: right, failed (for a mistake), or refused (an agent is stopped twice, nothing is sent)."""
    mistake, faults = drawn["mistake"], drawn["faults"]
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        folder = Path(name)
        entries, program, addressing = {
            "routes": (ROUTES, {}, "l3"),
            "bridge": (STATIC, {"path": BRIDGE}, "l2"),
            "learning": (FLOODED, {"path": learning_switch(folder)}, "l2"),
        }[drawn["program"]]
        sections = {
            "topology": {**drawn["topology"], "addressing": addressing},
            "program": program,
            "traffic": drawn["traffic"],
            "faults": faults,
        }
        topology = configuration(folder, entries, **_copied(sections)).topology.build(Scale())
        if mistake is not None:
            SABOTAGES[mistake](patch)
        with watched(topology) as cards:
            try:
                result = run(folder, entries, drawn["seed"], **_copied(sections))
            except UserError as error:
                stopped_twice = "to be killed" in str(error)
                assert stopped_twice or ("no packet was sent" in str(error) and not cards.sent)
                return "refused"
    found = wrong(result, cards, topology)
    if mistake is None:
        assert list(result.failures) == [], result.failures
        assert found == []
    assert result.failures or not found, found
    return "failed" if result.failures else "right"


def _copied(sections: dict[str, Any]) -> dict[str, Any]:
    return {name: dict(value) if isinstance(value, dict) else value for name, value in sections.items()}


FEW = settings(max_examples=8, derandomize=True, suppress_health_check=list(HealthCheck), deadline=None)
MANY = settings(FEW, max_examples=200)


@FEW
@given(workload())
def test_no_random_run_closes_over_a_wrong_result(drawn: dict[str, Any]) -> None:
    check(drawn)


@pytest.mark.slow
def test_no_run_of_200_closes_over_a_wrong_result() -> None:
    outcomes: Counter[str] = Counter()

    @MANY
    @given(workload())
    def runs(drawn: dict[str, Any]) -> None:
        outcomes[check(drawn)] += 1

    runs()
    print(dict(outcomes))
    assert outcomes["right"] > 100 and outcomes["failed"] > 20
