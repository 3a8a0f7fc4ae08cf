"""Random shuffles with random faults and mistakes: no run may close with its sentence over a wrong result.

What is right is said here, from the request and from bytes that NumPy draws, with networkx on the trees; of the
project only what agents have in their stores and what switches counted is looked at.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import strategies as st

from gradbed.common.errors import UserError
from gradbed.controller.systems.shuffle import delivery
from gradbed.controller.systems.shuffle.messages import ShuffleJob, ShuffleRequest
from gradbed.controller.systems.shuffle.scheduling import schedule as checking
from gradbed.controller.systems.shuffle.scheduling.schedule import BadSchedule
from gradbed.controller.systems.shuffle.scheduling.trees import Trees
from gradbed.controller.systems.shuffle.service import ShuffleService
from gradbed.experiments.phases import TrialResult
from gradbed.hosts.systems.shuffle import agents, reception, sending
from gradbed.hosts.systems.shuffle.samples import Store
from gradbed.topo.graph import Topology
from gradbed.topo.registry import parse_topology
from tests.unit import random_runs
from tests.unit.random_runs import Mistake, Outcome, RandomRuns
from tests.unit.trials import virtual_trial

NETWORKS = ["star:4", "star:6", "leaf-spine:2,2,2", "bcube:2,1", "bcube:3,1", "fat-tree:4"]
SCHEDULERS = [
    "unicast-random",
    "unicast-nearest",
    "coded-master",
    "coded-largest",
    "hop-aware",
    "hop-aware-corrected",
    "improved",
]


# ---- What is drawn ----


KINDS = ["link-down", "link-up", "link-change", "switch-restart", "agent-stop", "agent-start"]


def fault(topology: Topology, workers: int) -> st.SearchStrategy[dict[str, Any]]:
    agents = [f"worker {place}" for place in range(workers)]
    return random_runs.fault(topology, KINDS, 3, change=st.just({"loss": 0.2}), agents=agents)


@st.composite
def configurations(draw: st.DrawFn) -> dict[str, Any]:
    network = draw(st.sampled_from(NETWORKS))
    topology = parse_topology(network)
    scheduler = draw(st.sampled_from(SCHEDULERS))
    workers = draw(st.integers(3, min(6, len(topology.hosts) - 1)))
    mean_bytes = draw(st.integers(2, 900))
    lossy = draw(st.sampled_from([{}, {}, {"loss": 0.05}, {"duplicate": 0.05}, {"loss": 0.02, "queue_packets": 4}]))
    return {
        "topology": {"kind": network, "link": {"rate_mbps": 100, "delay_us": 10, **lossy}},
        "samples": {
            "data": "synthetic",
            "samples": draw(st.integers(8, 40)),
            "sample_bytes": mean_bytes,
            "spread_bytes": draw(st.integers(0, mean_bytes - 1)),
            "storage": draw(st.sampled_from([0.35, 0.5, 0.7])),
            "replacement": draw(st.sampled_from(["random", "least-recent"])),
        },
        "shuffle": {
            "workers": workers,
            "scheduler": scheduler,
            "shuffles": draw(st.integers(1, 2)),
            "trees": draw(st.integers(1, 4)),
            "tree_choice": draw(st.sampled_from(["first", "ecmp", "least-loaded"])),
            "multicast": draw(st.sampled_from(["bit-string", "groups"])),
            "unicast": draw(st.sampled_from(["trees", "routes"])),
            "fragment_bytes": draw(st.sampled_from([100, 300, 1200])),
            "bits": 128,
        },
        "timing": {"compute_us": draw(st.sampled_from([0, 0, 30])), "control_delay_us": 200},
        "faults": draw(st.lists(fault(topology, workers), max_size=3)) if draw(st.booleans()) else [],
    }


# ---- Mistakes ----


def flipped_decoding(patch: pytest.MonkeyPatch) -> None:
    decoded = reception.decoded
    patch.setattr(reception, "decoded", lambda *arguments: decoded(*arguments) ^ 1)


def swapped_samples(patch: pytest.MonkeyPatch) -> None:
    put = Store.put
    patch.setattr(
        Store, "put", lambda self, sample, fragments: put(self, sample ^ 1 if sample % 5 == 4 else sample, fragments)
    )


def kept_too_little(patch: pytest.MonkeyPatch) -> None:
    keep = Store.keep
    patch.setattr(Store, "keep", lambda self, samples: keep(self, sorted(samples)[:-1]))


def kept_too_much(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Store, "keep", lambda self, samples: None)


def hops_off_by_one(patch: pytest.MonkeyPatch) -> None:
    best = Trees.best
    patch.setattr(Trees, "best", lambda *arguments: (best(*arguments)[0] + 1, best(*arguments)[1]))
    patch.setattr(checking, "_check_hops", lambda *arguments: None)


def sent_twice(patch: pytest.MonkeyPatch) -> None:
    packed = sending.Sending._packed
    patch.setattr(sending.Sending, "_packed", lambda *arguments: np.repeat(packed(*arguments), 2))


def masks_too_wide(patch: pytest.MonkeyPatch) -> None:
    behind = delivery.hosts_behind
    patch.setattr(
        delivery, "hosts_behind", lambda *arguments: {pair: bits | 1 for pair, bits in behind(*arguments).items()}
    )


def zeros_asked_for(patch: pytest.MonkeyPatch) -> None:
    """What is sent again is wrong."""
    patch.setattr(Store, "fragment", lambda self, sample, number: self._zeros if sample in self._own else None)


def nothing(patch: pytest.MonkeyPatch) -> None: ...


MISTAKES: list[Mistake] = [
    nothing,
    nothing,
    flipped_decoding,
    swapped_samples,
    kept_too_little,
    kept_too_much,
    hops_off_by_one,
    sent_twice,
    masks_too_wide,
    zeros_asked_for,
]


# ---- What is seen ----


@dataclass
class Seen:
    """By phase: requests, what was decided, and by the agent's name what its store had in the end, as bytes."""

    requests: list[ShuffleRequest] = field(default_factory=list)
    jobs: list[ShuffleJob] = field(default_factory=list)
    stores: list[dict[str, dict[int, bytes]]] = field(default_factory=list)


@contextmanager
def watched() -> Iterator[tuple[Seen, pytest.MonkeyPatch]]:
    seen = Seen()
    with pytest.MonkeyPatch.context() as patch:
        admit, run = ShuffleService.admit, agents._ShuffleWorker.run

        def admitted(self: ShuffleService, number: int, request: ShuffleRequest, others: Any) -> ShuffleJob:
            seen.requests.append(request)
            seen.jobs.append(admit(self, number, request, others))
            seen.stores.append({})
            return seen.jobs[-1]

        def ran(self: agents._ShuffleWorker) -> None:
            run(self)
            contents = {sample: parts.tobytes() for sample, parts in self._store._own.items()}
            seen.stores[-1][self._context.name] = contents

        patch.setattr(ShuffleService, "admit", admitted)
        patch.setattr(agents._ShuffleWorker, "run", ran)
        yield seen, patch


# ---- What is right ----


def wrong(configuration: dict[str, Any], seed: int, seen: Seen, found: TrialResult) -> list[str]:
    samples = configuration["samples"]
    longest = samples["sample_bytes"] + samples["spread_bytes"]
    faults = sorted(configuration["faults"], key=lambda each: each["at_ms"])
    last = {each["agent"]: each["fault"] for each in faults if "agent" in each}
    stopped = {each["agent"] for each in faults if each["fault"] == "agent-stop"}
    lines = []
    for phase, (request, stores) in enumerate(zip(seen.requests, seen.stores, strict=True), start=1):
        for place, needed in enumerate(request.needed):
            name = f"worker {place}"
            held = stores.get(name, {})
            if not held.keys() <= {*needed, *request.stored[place]}:
                lines.append(f"{phase}, {name} has what it neither stored nor needed")
            for sample, found_bytes in held.items():
                draw = np.random.default_rng([seed, sample])
                right = draw.integers(0, 256, longest, np.uint8).tobytes()[: request.sizes_bytes[sample]]
                if found_bytes[: len(right)] != right:
                    lines.append(f"{phase}, {name}: sample {sample} has other bytes")
            # Nobody waits for those who are to be stopped for good, also where all is over before.
            if last.get(name) == "agent-stop" or (name in stopped and name not in stores):
                continue
            if not set(needed) <= held.keys():
                lines.append(f"{phase}, {name} lacks {sorted(set(needed) - held.keys())}")
            if len(held) != max(len(request.stored[place]), len(needed)):
                lines.append(f"{phase}, {name} holds {len(held)}, and not as many as its storage has places")
    link = configuration["topology"]["link"]
    if not configuration["faults"] and not {"loss", "duplicate", "queue_packets"} & link.keys():
        lines += wrong_counts(configuration, seen, found)
    return lines


def wrong_counts(configuration: dict[str, Any], seen: Seen, found: TrialResult) -> list[str]:
    """Hops that switches counted, and that the schedule claims, beside those of trees and of shortest paths."""
    topology = parse_topology(configuration["topology"]["kind"])
    inside = {
        frozenset((each.a.node, each.b.node))
        for each in topology.links
        if any(
            not topology.is_host(end) and topology.switch(end).tier == "relay" for end in (each.a.node, each.b.node)
        )
        and any(map(topology.is_host, (each.a.node, each.b.node)))
    }
    whole = nx.Graph([(each.a.node, each.b.node) for each in topology.links])
    lines = []
    for number, job in enumerate(seen.jobs, start=1):
        expected = 0
        directions: Counter[tuple[str, str]] = Counter()
        for sent, way in zip(job.schedule.transmissions, job.deliveries, strict=True):
            sender = job.instance.hosts[sent.sender]
            ends = [job.instance.hosts[worker] for worker, _ in sent.receivers]
            on_route = way.dst_ip in {host.ip for host in topology.hosts}
            graph = whole if on_route else nx.Graph(job.schedule.trees[sent.tree].links)
            links = {pair for end in ends for pair in pairwise(nx.shortest_path(graph, sender, end))}
            links = {pair for pair in links if frozenset(pair) not in inside}
            expected += len(links)
            if not on_route:
                directions.update(links)
        counted = {
            (row["from"], row["to"]): row["transmissions"]
            for row in found.tables["loads"]
            if row["phase"] == f"shuffle {number}"
        }
        if expected != sum(counted.values()) or expected != job.schedule.hops:
            lines.append(f"{number}: {sum(counted.values())} hops counted, {job.schedule.hops} said, not {expected}")
        if any(counted[pair] < times for pair, times in directions.items()):
            lines.append(f"{number}: a link carried less than the trees say")
    return lines


def check(drawn: tuple[dict[str, Any], int, Mistake]) -> Outcome:
    """Of a configuration, a seed and a mistake."""
    configuration, seed, mistake = drawn
    with watched() as (seen, patch), tempfile.TemporaryDirectory() as folder:
        mistake(patch)
        try:
            found = virtual_trial("shuffle", Path(folder), seed=seed, **configuration)
        except (UserError, BadSchedule) as error:
            assert isinstance(error, UserError) or mistake is not nothing, error
            assert mistake is not nothing or configuration["faults"], error
            return "refused"
        lines = wrong(configuration, seed, seen, found)
    if found.failures:
        assert lines or mistake is not nothing, found.failures
        return "failed"
    assert lines == []
    return "right"


def plain(mistake: Mistake) -> tuple[dict[str, Any], int, Mistake]:
    """On which the mistake shows."""
    # The counts are compared where nothing is lost.
    lossless = mistake in (hops_off_by_one, sent_twice, masks_too_wide)
    link = {"rate_mbps": 100, "delay_us": 10, **({} if lossless else {"loss": 0.2})}
    configuration = {
        "topology": {"kind": "star:6", "link": link},
        "samples": {"data": "synthetic", "samples": 40, "sample_bytes": 90, "spread_bytes": 0, "storage": 0.5},
        "shuffle": {"workers": 5, "scheduler": "coded-largest", "fragment_bytes": 100},
        "faults": [],
    }
    return configuration, 1, mistake


RUNS = RandomRuns(
    st.tuples(configurations(), st.integers(1, 1000), st.sampled_from(MISTAKES)),
    check,
    few=8,
    mistaken={mistake.__name__: plain(mistake) for mistake in MISTAKES[2:]},
    right=20,
    failed=20,
)
