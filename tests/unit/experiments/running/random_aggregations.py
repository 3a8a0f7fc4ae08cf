"""Random aggregations with random faults and mistakes: no run may close with its sentence over a wrong result.

What is right is said here: sums are NumPy's, of the gradients that workers computed, hashed with hashlib; the traffic
of hosts is what their NICs took and gave.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st
from numpy.typing import NDArray

from gradbed.common.errors import UserError
from gradbed.emulation.backend import VirtualBackend
from gradbed.experiments.phases import TrialResult
from gradbed.experiments.runtimes.virtual import VirtualRuntime
from gradbed.experiments.systems.aggregation.phase import AggregationPhase
from gradbed.hosts.learning import workload
from gradbed.hosts.transport.statistics import EndpointStatistics
from gradbed.switch.virtual import HostInterface
from gradbed.topo.graph import Topology
from gradbed.topo.registry import parse_topology
from tests.unit import random_runs
from tests.unit.experiments.virtual_trials import run
from tests.unit.random_runs import Nics, Outcome, RandomRuns, watched_nics

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


def fault(topology: Topology) -> st.SearchStrategy[dict[str, Any]]:
    change = {"loss": st.sampled_from([0.0, 0.2]), "rate_mbps": st.sampled_from([5, 50])}
    return random_runs.fault(topology, ["switch-restart", "link-change"], 6, change=st.fixed_dictionaries(change))


# ---- What happened ----


@dataclass
class Seen:
    """What workers computed, and said of sums; what each host's NIC took and gave."""

    nics: Nics
    phases: list[tuple[int, int]] = field(default_factory=list)
    """How many frames NICs had sent and received when each began."""
    gradients: dict[tuple[int, int, int], NDArray[np.int64]] = field(default_factory=dict)
    """By seed of the job, worker and round."""
    digests: list[tuple[int, str]] = field(default_factory=list)
    """Round, and what a worker said."""

    def carried(self, phase: int, host: str, direction: str) -> dict[str, int]:
        """Packets and bytes."""
        sent = direction == "sent"
        frames = self.nics.sent if sent else self.nics.received
        begun = [counts[not sent] for counts in self.phases]
        own = [each for each in frames[begun[phase] : [*begun, None][phase + 1]] if each.host == host]
        return {"packets": len(own), "bytes": sum(len(each.frame) for each in own)}


class Blunder:
    """A mistake that is made once."""

    def __init__(self, name: str | None) -> None:
        self.name = name
        self._left = True

    def is_due(self, name: str) -> bool:
        due = self._left and name == self.name
        self._left = self._left and not due
        return due


def flip_a_bit(patch: pytest.MonkeyPatch, blunder: Blunder) -> None:
    """Of the first gradient that is sent."""
    send = HostInterface.send

    def flipping(self: HostInterface, frames: Any, lengths: Any = None, times_ns: Any = None) -> int:
        rows = np.ascontiguousarray(frames).copy()
        raw = rows.view(np.uint8).reshape(len(rows), -1)
        if raw.shape[1] > 100 and blunder.is_due("bit"):
            raw[0, -1] ^= 1
        return send(self, rows, lengths, times_ns)

    patch.setattr(HostInterface, "send", flipping)


def watch_workers(patch: pytest.MonkeyPatch, seen: Seen, blunder: Blunder) -> None:
    start, take, compute = VirtualRuntime.add_job, AggregationPhase._take_round, workload.synthetic_gradient

    def watch_start(self: VirtualRuntime, *asked: Any) -> Any:
        seen.phases.append((len(seen.nics.sent), len(seen.nics.received)))
        return start(self, *asked)

    def watch_gradient(settings: Any, worker: int, round_number: int) -> Any:
        values = compute(settings, worker, round_number)
        seen.gradients[settings.seed, worker, round_number] = values.astype(np.int64)
        return values + 1 if blunder.is_due("gradient") else values

    def watch_round(self: AggregationPhase, place: int, event: Any) -> None:
        said = event["sums_sha256"]
        seen.digests.append((event["round"], said))
        # What is said to have been computed is not believed here.
        take(self, place, {**event, "sums_sha256": "0" * 64} if blunder.is_due("digest") else event)

    patch.setattr(VirtualRuntime, "add_job", watch_start)
    patch.setattr(workload, "synthetic_gradient", watch_gradient)
    patch.setattr(AggregationPhase, "_take_round", watch_round)


def miscount(patch: pytest.MonkeyPatch, blunder: Blunder) -> None:
    """Links claim a loss, hosts a frame, that was none."""
    told, count = VirtualBackend.link_statistics, EndpointStatistics.to_json

    def link_statistics(self: VirtualBackend) -> Any:
        rows = told(self)
        if blunder.name == "link":
            last = max(range(len(rows)), key=lambda place: rows[place].packets)
            rows[last] = dataclasses.replace(rows[last], losses=rows[last].losses + (rows[last].packets > 0))
        return rows

    def to_json(self: EndpointStatistics) -> Any:
        found = count(self)
        if blunder.is_due("count"):
            found["gradient_sent"] = {**found["gradient_sent"], "frames": found["gradient_sent"]["frames"] + 1}
        return found

    patch.setattr(VirtualBackend, "link_statistics", link_statistics)
    patch.setattr(EndpointStatistics, "to_json", to_json)


# ---- What is right ----


def wrong(result: TrialResult, seen: Seen, rounds: int, workers: int) -> list[str]:
    """In words, what the result says that is not so."""
    said = []
    for number in range(rounds):
        found = [values for (_, _, of), values in seen.gradients.items() if of == number]
        if len(found) != workers:
            said.append(f"round {number + 1}: {len(found)} of {workers} workers computed a gradient")
            continue
        right = hashlib.sha256(np.sum(found, axis=0).astype("<i8").tobytes()).hexdigest()
        told = Counter(digest for of, digest in seen.digests if of == number)
        if told != {right: workers * len(seen.phases)}:
            said.append(f"round {number + 1}: workers tell of {dict(told)}, and {right} is right")
    phases = list(dict.fromkeys(row["phase"] for row in result.tables["summary"]))
    for row in result.tables["hosts"]:
        for direction in ("sent", "received"):
            carried = seen.carried(phases.index(row["phase"]), row["host"], direction)
            for unit in ("packets", "bytes"):
                if row[f"host_{direction}_{unit}"] != carried[unit]:
                    said.append(
                        f"{row['host']} is told to have {direction} {row[f'host_{direction}_{unit}']} {unit}, and "
                        f"its NIC {carried[unit]}"
                    )
    return said


def check(drawn: dict[str, Any]) -> Outcome:
    mistake, sizes = drawn["mistake"], drawn["workload"]
    topology = parse_topology(drawn["topology"]["kind"])
    sections = {name: drawn[name] for name in ("topology", "switches", "workload", "faults")}
    with pytest.MonkeyPatch.context() as patch:
        seen, blunder = Seen(watched_nics(topology, patch)), Blunder(mistake)
        flip_a_bit(patch, blunder)
        watch_workers(patch, seen, blunder)
        miscount(patch, blunder)
        try:
            result = run(drawn["seed"], **sections)
        except UserError as error:
            assert drawn["faults"] or mistake, error
            return "refused"
    found = wrong(result, seen, sizes["rounds"], sizes["workers"])
    if mistake is None:
        assert list(result.failures) == [], result.failures
        assert found == []
    assert result.failures or not found, found
    return "failed" if result.failures else "right"


RUNS = RandomRuns(aggregation(), check, few=6, right=80, failed=20)
