"""Trees that change while gradients are pushed along them: no fragment goes round."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from gradbed.topo.registry import parse_topology
from tests.unit.ndn.crossings import Captured
from tests.unit.ndn.runs import run

SHIFT = 16
"""Epochs of 65 ms."""
TOPOLOGIES = ("dragonfly:4,4,2", "torus:3,3,2", "fat-tree:4")


def at_random(seed: int) -> dict[str, Any]:
    """Two to four links that go down within two epochs, some of which come back; routes follow after a while."""
    rng = random.Random(seed)
    kind = TOPOLOGIES[0] if seed < 100 else rng.choice(TOPOLOGIES)
    links = [[link.a.node, link.b.node] for link in parse_topology(kind).switch_links]
    faults = []
    begin_ms = rng.uniform(40, 150)
    for link in rng.sample(links, rng.choice([2, 2, 3, 4])):
        down_ms = begin_ms + rng.uniform(0, 2 * 2**SHIFT / 1000)
        faults.append({"fault": "link-down", "at_ms": down_ms, "link": link})
        if rng.random() < 0.4:
            faults.append({"fault": "link-up", "at_ms": down_ms + rng.uniform(1, 60), "link": link})
    return {
        "topology": {"kind": kind},
        "workload": {"rounds": 25, "peers": 16, "values": 192},
        "routers": {"epoch_shift": SHIFT},
        "timing": {"compute_us": 8000, "control_delay_us": rng.choice([0, 1000, 20_000])},
        "faults": sorted(faults, key=lambda fault: fault["at_ms"]),
    }


def check(seed: int, folder: Path) -> None:
    with Captured(folder) as captured:
        result = run(**at_random(seed))
    assert result.failures == []
    crossings = captured.crossings()
    assert crossings.worst_push() == 1
    assert max(crossings.by_link().values()) <= 2


# Each seed is a run like the other; 200 are below.
@pytest.mark.thorough
@pytest.mark.parametrize("seed", [pytest.param(3, marks=pytest.mark.nightly), 11])
def test_no_fragment_crosses_a_link_twice_in_a_direction(seed: int, tmp_path: Path) -> None:
    check(seed, tmp_path)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(100, 300))
def test_nor_in_any_of_200_runs(seed: int, tmp_path: Path) -> None:
    check(seed, tmp_path)
