"""Who reaches whom in large networks: by the graph, and on the virtual clock."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from gradbed.topo.registry import parse_topology
from tools.bench import large
from tools.bench.large import connected, frame, permutation


def test_pairs_by_the_graph() -> None:
    star = parse_topology("star:3")
    assert connected(star) == {(a, b) for a in ("h1", "h2", "h3") for b in ("h1", "h2", "h3") if a != b}
    kept = tuple(link for link in star.links if "h2" not in (link.a.node, link.b.node))
    without = star.model_copy(update={"links": kept})
    assert connected(without) == {("h1", "h3"), ("h3", "h1")}
    assert len(connected(parse_topology("fat-tree:8"))) == 128 * 127


def test_nobody_is_its_own_partner() -> None:
    names = [f"h{number}" for number in range(1, 1025)]
    for seed in range(20):
        partners = permutation(names, random.Random(seed))
        assert sorted(partners) == sorted(partners.values()) == sorted(names)
        assert all(a != b for a, b in partners.items())


def test_all_pairs_reach_each_other_on_the_virtual_clock(tmp_path: Path) -> None:
    found = large._virtual(4, tmp_path)
    assert found.reached == found.connected > large.ROUNDS * 16 / 2
    assert found.up_s > 0 and found.cpu_s > 0 and found.bytes > 50 << 20


def test_frames_that_go_astray_are_missed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """h1's frames go to its own address."""
    monkeypatch.setattr(large, "frame", lambda topology, a, b: frame(topology, a, "h1" if a == "h1" else b))
    found = large._virtual(4, tmp_path)
    assert found.connected - large.ROUNDS <= found.reached < found.connected
