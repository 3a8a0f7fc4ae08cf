"""Round times and resends over links with rates, queues and loss, in simulated time."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

import pytest

from switch.link import LinkModel
from tests.unit.hosts.queueing_network import QueueingNetwork, fat_tree_of_eight, star
from tests.unit.hosts.simulation import JobSettings, JobSimulation

FRAGMENTS = 19
IN_NETWORK = pytest.mark.parametrize("in_network", [False, True], ids=["server alone", "in-network"])


@dataclass(frozen=True)
class Case:
    rate_mbps: int = 20
    delay_us: int = 50
    loss: float = 0.0
    duplicate: float = 0.0
    workers: int = 8
    fragments: int = FRAGMENTS
    rounds: int = 20
    pause_us: int = 8000
    stall_us: int = 0


def simulate(case: Case, in_network: bool, seed: int = 1) -> JobSimulation:
    """Eight workers hang on a fat-tree, other numbers of them on a star."""
    link = LinkModel(case.rate_mbps * 1_000_000, case.delay_us, case.loss, case.duplicate)
    parents = fat_tree_of_eight() if case.workers == 8 else star(case.workers)
    network = QueueingNetwork(parents, ("tor",) if in_network else (), link, seed)
    job = JobSettings(
        workers=case.workers,
        fragments=case.fragments,
        rounds=case.rounds,
        window=32,
        multicast=in_network,
        min_timeout_us=50_000,
        pause_us=case.pause_us,
        stall_us=case.stall_us,
        seed=seed,
    )
    simulation = JobSimulation(job, network, paths=1)
    simulation.run()
    simulation.check()
    return simulation


@IN_NETWORK
@pytest.mark.parametrize(
    "case",
    [
        Case(),
        Case(rate_mbps=2, rounds=10),
        Case(rate_mbps=2, rounds=3, fragments=200),
        Case(delay_us=20_000),
        Case(duplicate=0.02),
        Case(pause_us=300_000),
        Case(stall_us=40_000),
        Case(stall_us=200_000),
        Case(rate_mbps=2, workers=64, fragments=12, rounds=4),
    ],
    ids=str,
)
def test_without_loss_nothing_is_resent(case: Case, in_network: bool) -> None:
    """However slow the links are, however late some workers begin, however long agents are kept waiting."""
    simulation = simulate(case, in_network)
    assert simulation.resends == 0
    if not case.duplicate:
        network = simulation.network
        assert isinstance(network, QueueingNetwork)
        packets = case.rounds * case.fragments * (1 if in_network else case.workers)
        assert network.to_server.packets == network.from_server.packets == packets


@IN_NETWORK
@pytest.mark.parametrize("seed", [1, 2])
def test_losses_cost_tenths_of_a_second(in_network: bool, seed: int) -> None:
    """Two percent on each of up to six links: 57 of 100 fragments miss somebody's gradient at first."""
    simulation = simulate(Case(loss=0.02, duplicate=0.02, rounds=40), in_network, seed)
    assert statistics.median(simulation.round_times_us) < 400_000
    assert max(simulation.round_times_us) < 2_000_000
    # All eight workers resend those (87 a round), one each of the lost answers (15), and both may be lost again.
    assert simulation.resends / 40 < 130


@IN_NETWORK
def test_losses_on_slow_links_do_not_pile_up(in_network: bool) -> None:
    """Every resend occupies the server's link for 4 ms."""
    simulation = simulate(Case(rate_mbps=2, loss=0.02, duplicate=0.02), in_network)
    assert statistics.median(simulation.round_times_us) < 2_500_000
    assert simulation.resends / 20 < 140


@IN_NETWORK
def test_rare_losses_in_long_rounds_are_found_without_timers(in_network: bool) -> None:
    simulation = simulate(Case(loss=0.002, duplicate=0.002, fragments=200, rounds=5), in_network)
    assert simulation.early_resends / 5 < 200
    assert simulation.timeout_resends / 5 < 10


@IN_NETWORK
def test_a_round_of_one_fragment_needs_timers_only(in_network: bool) -> None:
    simulation = simulate(Case(loss=0.02, duplicate=0.02, fragments=1, rounds=60), in_network)
    assert statistics.median(simulation.round_times_us) < 200_000
    assert simulation.early_resends == 0
    assert simulation.timeout_resends / 60 < 12


@IN_NETWORK
def test_heavy_loss_ends(in_network: bool) -> None:
    simulation = simulate(Case(loss=0.05, duplicate=0.05, rounds=10), in_network)
    assert statistics.median(simulation.round_times_us) < 2_000_000
