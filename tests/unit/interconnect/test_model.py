"""The model in slots: exact sizes, bounds, and that it agrees with packets on the virtual clock."""

from __future__ import annotations

import pytest

from gradbed.controller.systems.interconnect.entries import PolicyName
from gradbed.experiments.systems.interconnect.bounds import least_largest_load
from gradbed.experiments.systems.interconnect.comparison import Case, compare
from gradbed.experiments.systems.interconnect.figures import balanced_dragonfly, size_of_network, sizes
from gradbed.experiments.systems.interconnect.model import OpticalElectrical, ShortestPaths, of_pattern, simulate
from gradbed.experiments.tables.console import make_console
from gradbed.topo.optical_electrical import optical_electrical
from gradbed.topo.registry import parse_topology
from tools.bench.interconnect import (
    COMMON,
    Largest,
    comparison_table,
    largest_loads,
    largest_table,
    meets,
)


@pytest.mark.parametrize("n", [2, 3, 4])
@pytest.mark.parametrize("per_wavelength", [True, False])
def test_the_bounds_of_all_to_all(n: int, per_wavelength: bool) -> None:
    """(N^3-1)/N^3 with a channel for each wavelength; with one for a fibre, min of that and
    2 (N^3-1) / (N^3 (N-1))."""
    places = [(x, y) for x in range(n) for y in range(n)]
    share = n * n / (n**3 - 1)
    demands = tuple(sorted((a, b, share) for a in places for b in places if a != b))
    bound = 1 / max(1.0, least_largest_load(demands, 1.0 if per_wavelength else None))
    expected = (n**3 - 1) / n**3
    if not per_wavelength:
        expected = min(expected, 2 * (n**3 - 1) / (n**3 * (n - 1)))
    assert bound == pytest.approx(expected, rel=1e-6)


@pytest.mark.commit_cases(1)
@pytest.mark.parametrize("policy", ["least-loaded", "random-plane", "fixed-plane", "mesh-first", "ecmp"])
@pytest.mark.parametrize("per_wavelength", [True, False])
def test_packets_of_the_model_take_the_right_number_of_links(policy: PolicyName, per_wavelength: bool) -> None:
    n = 3
    found = simulate(
        OpticalElectrical(n, policy, per_wavelength),
        of_pattern("all-to-all", n**3, 0.2, 1),
        slots=400, warm_up_slots=0, queue_packets=64, seed=1,
    )  # fmt: skip
    assert found.loss == 0
    assert set(found.links) == {2, 3, 4, 5}
    mean = (5 * n**2 + 2 * n + 2) / (n**2 + n + 1)
    assert found.links.mean() == pytest.approx(mean, rel=0.03)
    # Without waiting a packet takes a slot for each link.
    assert (found.latency_slots >= found.links).all()


@pytest.mark.thorough
def test_an_overloaded_fibre_limits_the_model() -> None:
    """N = 4 with one channel for a fibre: 2 (N^3-1) / (N^3 (N-1)) = 0.656 of what goes to other units (48 of 63);
    what stays in its unit arrives."""
    found = simulate(
        OpticalElectrical(4, "least-loaded", per_wavelength=False),
        of_pattern("all-to-all", 64, 1.0, 1),
        slots=1200, warm_up_slots=200, queue_packets=16, seed=1,
    )  # fmt: skip
    most = (15 + 48 * 2 * 63 / (64 * 3)) / 63
    assert 0.95 * most < found.accepted_load < 1.02 * most


@pytest.mark.parametrize("kind", ["fat-tree:4", "dragonfly:9,4,2", "torus:3,3,3", "leaf-spine:4,2,2"])
def test_other_networks_take_shortest_paths(kind: str) -> None:
    topology = parse_topology(kind)
    found = simulate(
        ShortestPaths(topology), of_pattern("all-to-all", len(topology.hosts), 0.1, 1),
        slots=400, warm_up_slots=0, queue_packets=64, seed=1,
    )  # fmt: skip
    size = size_of_network(kind, topology)
    assert found.links.max() == size.diameter
    assert found.links.mean() == pytest.approx(size.mean_distance, rel=0.05)


def test_sizes() -> None:
    for n in (2, 3):
        own, *others = sizes(n)
        assert own.mean_distance == pytest.approx((5 * n**2 + 2 * n + 2) / (n**2 + n + 1))
        assert (own.diameter, own.switches, own.optical_ports) == (5, n**2 + 2 * n, 2 * n**2)
        assert all(n**3 <= other.hosts for other in others)
    assert size_of_network("", optical_electrical(2)).electrical_ports == 4 * 5
    assert len(balanced_dragonfly(72).hosts) == 72


@pytest.mark.parametrize(
    "case",
    [
        Case("optical-electrical:2", "all-to-all", "least-loaded", 0.5, slots=500),
        Case("torus:2,2,2", "permutation", "routes", 0.6, slots=500),
    ],
    ids=lambda case: case.topology,
)
def test_model_and_packets_agree(case: Case) -> None:
    """Two such cases; all of them, networks of other kinds included, in the slow test."""
    assert meets(compare(case))


@pytest.mark.nightly
def test_model_and_packets_agree_on_all_common_cases() -> None:
    compared = [compare(case) for case in COMMON]
    make_console().print(comparison_table(compared))
    assert [each.case for each in compared if not meets(each)] == []


MOST_WORSE, MOST_WORSE_ON_AVERAGE = 0.01, 0.001
"""Coins between planes fall differently in two runs of packets."""


def test_least_loaded_has_no_larger_link_load_where_a_far_link_is_the_busiest() -> None:
    """Permutation 3 of N = 2: a mesh link that carries all of one host's packets, and to which another unit may send
    by light first."""
    (found,) = largest_loads(2, ("permutation",), range(3, 4), 0.6, 1600)
    assert found.worse <= MOST_WORSE
    assert found.loads["least-loaded"] < 0.98 < 0.999 < found.loads["mesh-first"]


@pytest.mark.nightly
@pytest.mark.parametrize(("n", "seeds"), [(2, 14), (3, 3)])
@pytest.mark.parametrize("pattern", ["permutation", "hotspot:0.2"])
def test_least_loaded_has_no_larger_link_load(n: int, seeds: int, pattern: str) -> None:
    """Than fixed plane and mesh first: on average, and in each run but for chance."""
    found: list[Largest] = list(largest_loads(n, (pattern,), range(1, 1 + seeds), 0.6, 1600))
    make_console().print(largest_table(found))
    assert [each for each in found if each.worse > MOST_WORSE] == []
    assert sum(each.worse for each in found) <= MOST_WORSE_ON_AVERAGE * len(found)
