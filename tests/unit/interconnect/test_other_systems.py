"""Agents with programs of their own on this network: NDN's and the shuffle's, with counters that are exact."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gradbed.experiments.phases import TrialResult
from tests.unit.trials import virtual_trial

N = 2
LINKS = {2: N - 1, 3: N * (N - 1), 4: N * (N - 1), 5: N * (N - 1) ** 2}
"""Hosts by their distance."""


def trial(folder: Path, system: str, **sections: Any) -> TrialResult:
    topology = {"kind": f"optical-electrical:{N}", "link": {"rate_mbps": 100, "delay_us": 5}}
    return virtual_trial(system, folder, topology=topology, **sections)


@pytest.mark.thorough
@pytest.mark.parametrize("exchange", ["push", "unicast"])
def test_ndn_crosses_the_links_that_distances_say(tmp_path: Path, exchange: str) -> None:
    """A fragment of every one of the N^3 peers crosses a tree's links (all hosts' but the publisher's, and of the
    switches' one for each further switch that has to be reached), or the distances to all others."""
    workload = {"kind": "synthetic", "peers": N**3, "rounds": 2, "values": 960, "exchange": exchange}
    found = trial(tmp_path, "ndn", workload=workload)
    assert found.failures == []
    by_unicast = N**3 * sum(distance * hosts for distance, hosts in LINKS.items())
    assert found.metrics["unicast_transmissions"] == by_unicast
    # N^3 hosts; N^2 - 1 hybrid switches over links; to another unit light takes an optical switch between.
    tree = N**3 + N**2 - 1 + (N - 1)
    expected = N**3 * tree if exchange == "push" else by_unicast
    assert found.metrics["transmissions"] == found.metrics["expected_transmissions"] == expected


def test_a_shuffle_takes_the_hops_that_were_planned(tmp_path: Path) -> None:
    found = trial(tmp_path, "shuffle")
    assert found.failures == []
    assert found.metrics["counted_hops"] == found.metrics["hops"] >= found.metrics["bound_hops"]
    assert found.metrics["repairs"] == 0
