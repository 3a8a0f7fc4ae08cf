"""Random workloads with random faults and mistakes: no run may close with its sentence over a wrong result.

What is right is said here, from the frames that hosts' NICs sent and got: their marks are read with struct,
and counted one after the other. Of the project's own counts and sums none is used for it.
"""

from __future__ import annotations

import struct
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from gradbed.common.errors import UserError
from gradbed.experiments.phases import TrialResult
from gradbed.experiments.runtimes.agents import Agents
from gradbed.experiments.scale import Scale
from gradbed.topo.graph import Topology
from gradbed.topo.registry import parse_topology
from tests.unit import random_runs
from tests.unit.random_runs import Nics, Outcome, RandomRuns, watched_nics
from tests.unit.workload.runs import ROUTES, configuration, run, table
from tests.unit.workload.test_accounts import SABOTAGES
from tests.unit.workload.test_addressing import BRIDGE, FLOODED, LEARNING, STATIC

NETWORKS = ["star:3", "leaf-spine:2,1,2", "leaf-spine:2,2,2", "dragonfly:2,1,1"]
MARK = struct.Struct(">HHHIIQ")
TAG, WARM_UP = 0x7A6B, 1 << 15


# ---- What is drawn ----


KINDS = ["link-down", "link-up", "link-change", "switch-restart", "agent-stop"]


def fault(topology: Topology) -> st.SearchStrategy[dict[str, Any]]:
    agents = [f"traffic of {host.name}" for host in topology.hosts]
    return random_runs.fault(topology, KINDS, 10, change=link_fields(), agents=agents)


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
        "mistake": draw(st.none() | st.sampled_from(list(SABOTAGES))),
        "seed": draw(st.integers(1, 2**31)),
    }


# ---- What NICs saw ----


@dataclass
class Seen:
    """stopped: hosts whose agents were killed."""

    nics: Nics
    stopped: set[str] = field(default_factory=set)


def mark(frame: bytes) -> tuple[int, ...] | None:
    found = MARK.unpack(frame[-MARK.size :])
    return found[1:] if found[0] == TAG else None


def watch(topology: Topology, patch: pytest.MonkeyPatch) -> Seen:
    seen = Seen(watched_nics(topology, patch))
    kill = Agents.kill

    def watch_kill(self: Agents, job: int, name: str) -> None:
        seen.stopped.add(name.removeprefix("traffic of "))
        kill(self, job, name)

    patch.setattr(Agents, "kill", watch_kill)
    return seen


# ---- What is right ----


def expected(seen: Seen, topology: Topology) -> tuple[dict[str, Any], dict[tuple[str, str], dict[str, Any]]]:
    """Metrics, and rows of pairs, by what NICs saw; agents that were stopped took their counts along."""
    names = [host.name for host in topology.hosts]
    pairs: dict[tuple[str, str], dict[str, Any]] = {}
    for each in seen.nics.sent:
        source, place, *_ = mark(each.frame)
        if not source & WARM_UP and not {each.host, names[place]} & seen.stopped:
            pairs.setdefault((each.host, names[place]), Counter())["sent_packets"] += 1
    came: set[tuple[int, int, int]] = set()
    greatest: dict[tuple[int, int], int] = {}
    misdelivered, latencies = 0, []
    for each in seen.nics.received:
        host = each.host
        if host in seen.stopped:
            continue
        source, receiver, flow, sequence, sent_ns = mark(each.frame)
        latency_ns = (each.time_ns or 0) - sent_ns
        if names[receiver] != host:
            misdelivered += 1
            continue
        sender = names[source & ~WARM_UP]
        if source & WARM_UP:
            continue
        is_copy = (source, flow, sequence) in came
        came.add((source, flow, sequence))
        if not is_copy:
            latencies.append(latency_ns)  # also of packets whose sender was stopped later
        if sender in seen.stopped:
            continue
        row = pairs.setdefault((sender, host), Counter())
        if is_copy:
            row["duplicates"] += 1
            continue
        late = greatest.get((source, flow), 0) > sequence
        greatest[source, flow] = max(sequence, greatest.get((source, flow), 0))
        row["received_packets"] += 1
        row["reordered"] += late
        row["latency_us_max"] = max(row["latency_us_max"], latency_ns / 1000)
    names_of_sums = ("sent_packets", "received_packets", "duplicates", "reordered")
    metrics: dict[str, Any] = {name: sum(row[name] for row in pairs.values()) for name in names_of_sums}
    metrics["misdelivered"] = misdelivered
    metrics["mean_us"] = sum(latencies) / len(latencies) / 1000 if latencies else None
    return metrics, pairs


def wrong(result: TrialResult, seen: Seen, topology: Topology) -> list[str]:
    """In words, what the result says that is not so."""
    metrics, pairs = expected(seen, topology)
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
    missing = len(seen.nics.sent) + duplicated - len(seen.nics.received)
    if not seen.stopped and missing > lost:
        said.append(f"{missing} packets did not come, and {lost} were lost by their causes")
    load = result.metrics["busiest_link_load"]
    if load is not None and not 0 <= float(str(load)) <= 1.3:
        said.append(f"a link carried {load} of its rate")
    return said


def nobody_tells(seen: Seen) -> bool:
    """Whether those who sent anything were stopped, and took their counts along."""
    return {each.host for each in seen.nics.sent} <= seen.stopped


def check(drawn: dict[str, Any]) -> Outcome:
    """Refused: an agent is stopped twice, or nothing is sent."""
    mistake, faults = drawn["mistake"], drawn["faults"]
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        folder = Path(name)
        entries, program, addressing = {
            "routes": (ROUTES, {}, "l3"),
            "bridge": (STATIC, {"path": BRIDGE}, "l2"),
            "learning": (FLOODED, {"path": LEARNING}, "l2"),
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
        seen = watch(topology, patch)
        try:
            result = run(folder, entries, drawn["seed"], **_copied(sections))
        except UserError as error:
            stopped_twice = "to be killed" in str(error)
            assert stopped_twice or ("no packet was sent" in str(error) and nobody_tells(seen))
            return "refused"
    found = wrong(result, seen, topology)
    if mistake is None:
        assert list(result.failures) == [], result.failures
        assert found == []
    assert result.failures or not found, found
    return "failed" if result.failures else "right"


def _copied(sections: dict[str, Any]) -> dict[str, Any]:
    return {name: dict(value) if isinstance(value, dict) else value for name, value in sections.items()}


RUNS = RandomRuns(workload(), check, few=8, right=100, failed=20)
