"""Random configurations and faults: a run that says that all is right is right, by what this file computes itself.

The reference is plain NumPy over the definition of the random gradients, breadth-first search, and packets read from
captures (crossings.py): no code of the project that is checked."""

from __future__ import annotations

import hashlib
import random
import tempfile
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

from gradbed.common.errors import UserError
from gradbed.experiments.phases import TrialResult
from gradbed.topo.registry import parse_topology
from tests.unit.ndn.crossings import DATA, INTEREST, Captured, Crossings
from tests.unit.ndn.runs import run
from tests.unit.random_runs import Outcome, RandomRuns

TOPOLOGIES = ("star:6", "leaf-spine:2,2,3", "fat-tree:4", "dragonfly:4,4,2", "torus:2,2,2")
LANES = 96
SHIFT = 16
SEED = 5


def drawn(seed: int) -> dict[str, Any]:
    """A configuration with faults, by chance."""
    rng = random.Random(seed)
    kind = rng.choice(TOPOLOGIES)
    topology = parse_topology(kind)
    peers = rng.randint(2, min(8, len(topology.hosts)))
    loss = rng.choice([0, 0, 0, 0.01, 0.05])
    exchange = rng.choice(["push", "push", "push", "pull", "unicast", "ring"])
    workload = {
        "exchange": exchange, "peers": peers, "rounds": rng.randint(1, 8), "values": rng.choice([90, 192, 700]),
        "give_up_ms": 400.0,
    }  # fmt: skip
    if exchange == "push" and peers < len(topology.hosts) and rng.random() < 0.3:
        workload["observers"] = [{"join_ms": rng.choice([0, 20])}]
    link = {"rate_mbps": 100, "delay_us": rng.choice([10, 50]), "queue_packets": rng.choice([50, 1000]), "loss": loss}
    if rng.random() < 0.1:
        link["duplicate"] = 0.02
    faults = [] if exchange == "ring" else _faults(rng, topology, peers)
    return {
        "topology": {"kind": kind, "link": link},
        "workload": workload,
        "routers": {"epoch_shift": SHIFT, "contents": rng.choice([4096, 64, 0])},
        "timing": {"compute_us": 6000, "control_delay_us": rng.choice([0, 2000])},
        "faults": faults,
    }


def _faults(rng: random.Random, topology: Any, peers: int) -> list[dict[str, Any]]:
    links = [[link.a.node, link.b.node] for link in topology.switch_links]
    found: list[dict[str, Any]] = []
    for _ in range(rng.choice([0, 0, 1, 2, 3])):
        at_ms = rng.uniform(1, 60)
        what = rng.choice(["link", "link", "restart", "stop", "loss"])
        if what == "link" and links:
            link = rng.choice(links)
            found.append({"fault": "link-down", "at_ms": at_ms, "link": link})
            found.append({"fault": "link-up", "at_ms": at_ms + rng.uniform(1, 40), "link": link})
        elif what == "restart":
            found.append({"fault": "switch-restart", "at_ms": at_ms, "switch": rng.choice(topology.switches).name})
        elif what == "stop" and not any(each["fault"] == "agent-stop" for each in found):
            found.append({"fault": "agent-stop", "at_ms": at_ms, "agent": f"peer {rng.randrange(peers)}"})
        elif what == "loss" and links:
            found.append({"fault": "link-change", "at_ms": at_ms, "link": rng.choice(links), "change": {"loss": 0.2}})
    return sorted(found, key=lambda each: each["at_ms"])


def sums(workload: Mapping[str, Any]) -> list[str]:
    """SHA-256 of every version's sum over all peers, of int64 little-endian: small enough to be sent unshifted."""
    digests = []
    for version in range(workload["rounds"]):
        total = np.zeros(workload["values"], np.int64)
        for peer in range(workload["peers"]):
            generator = np.random.default_rng([SEED, peer, version])
            total += generator.integers(-(2**24), 2**24, workload["values"], dtype=np.int32, endpoint=True)
        digests.append(hashlib.sha256(total.astype("<i8").tobytes()).hexdigest())
    return digests


def distances(edges: Sequence[tuple[str, str]], source: str) -> dict[str, int]:
    """By breadth-first search."""
    found, waiting = {source: 0}, deque([source])
    while waiting:
        here = waiting.popleft()
        for a, b in edges:
            for near, far in ((a, b), (b, a)):
                if near == here and far not in found:
                    found[far] = found[here] + 1
                    waiting.append(far)
    return found


def is_right(sections: Mapping[str, Any], result: TrialResult, crossings: Crossings) -> list[str]:
    """What the reference finds wrong with a run that says that nothing is."""
    workload, wrong = sections["workload"], []
    if result.metrics["versions"] != workload["rounds"]:
        wrong.append("not all rounds")
    if list(result.decisions["digests"]) != sums(workload):
        wrong.append("sums")
    fragments = -(-workload["values"] // LANES)
    if not any(fault["fault"] == "switch-restart" for fault in sections["faults"]) and (
        not sections["topology"]["link"].get("duplicate")
    ):
        if crossings.worst_push() > 1:
            wrong.append("a push crossed a link twice")
        if answers_without_interests(crossings):
            wrong.append("an answer crossed a link that no Interest had")
    link = sections["topology"]["link"]
    quiet = not sections["faults"] and not link["loss"] and not link.get("duplicate")
    lost = sum(row["losses"] + row["queue_drops"] for row in result.tables["links"])
    if quiet and not lost and workload["exchange"] == "unicast":
        hosts = list(result.decisions["peers"])
        topology = parse_topology(sections["topology"]["kind"])
        edges = [(each.a.node, each.b.node) for each in topology.links]
        total = sum(distances(edges, one)[other] for one in hosts for other in hosts)
        if sum(count for _, _, count in crossings.pushes()) != workload["rounds"] * fragments * total:
            wrong.append("copies crossed other links")
    if quiet and not lost and workload["exchange"] == "push" and not workload.get("observers"):
        wrong += trees_that_are_none(result, crossings, workload["rounds"] * fragments)
    return wrong


def answers_without_interests(crossings: Crossings) -> bool:
    """A router answers and passes answers on where Interests came from."""
    counts: Counter[tuple[tuple[str, str], Any]] = Counter()
    for (kind, (here, there), name), count in crossings.packets.items():
        if len(name) == 4:
            if kind == INTEREST:
                counts[(there, here), name] += count
            elif kind == DATA:
                counts[(here, there), name] -= count
    return any(left < 0 for left in counts.values())


def trees_that_are_none(result: TrialResult, crossings: Crossings, frames: int) -> list[str]:
    """Each publisher's pushes cross the links of one tree, all of them, away from it, to all other peers."""
    wrong = []
    links: dict[str, Counter[tuple[str, str]]] = {}
    for direction, name, count in crossings.pushes():
        links.setdefault(name[1][2:].decode(), Counter())[direction] += count
    for publisher in result.decisions["peers"]:
        tree = links.get(publisher, Counter())
        reached = distances(list(tree), publisher)
        if set(tree.values()) != {frames} or len(reached) != len(tree) + 1:
            wrong.append(f"pushes of {publisher} follow no tree")
        if not set(result.decisions["peers"]) <= set(reached):
            wrong.append(f"pushes of {publisher} do not come to all peers")
    return wrong


def check(seed: int) -> Outcome:
    sections = drawn(seed)
    with tempfile.TemporaryDirectory() as folder, Captured(Path(folder)) as captured:
        try:
            result = run(seed=SEED, **sections)
        except UserError:
            return "refused"  # it says so, and has no closing sentence
        crossings = captured.crossings()
    if result.failures:
        assert sections["faults"] or sections["topology"]["link"]["loss"], result.failures
        return "failed"
    assert is_right(sections, result, crossings) == []
    return "right"


RUNS = RandomRuns(st.integers(0, 10_000), check, few=6, always=(79, 177, 2100))
