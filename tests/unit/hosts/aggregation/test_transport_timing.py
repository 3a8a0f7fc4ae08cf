"""Round times and resends over links with rates, queues and loss, in simulated time."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, replace

import pytest

from gradbed.formats.lanes import frame_bytes
from gradbed.topo.link import LinkModel
from tests.unit.hosts.aggregation.constant_timers import mean_round_s
from tests.unit.hosts.aggregation.queueing_network import LANES, SLOTS, QueueingNetwork, fat_tree_of_eight, star
from tests.unit.hosts.aggregation.repair_tries import mean_resends
from tests.unit.hosts.aggregation.simulation import JobSettings, JobSimulation

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
    mark_from: int | None = None


def simulate(case: Case, in_network: bool, seed: int = 1) -> JobSimulation:
    """Eight workers hang on a fat-tree, other numbers of them on a star."""
    link = LinkModel(case.rate_mbps * 1_000_000, case.delay_us, case.loss, case.duplicate)
    parents = fat_tree_of_eight() if case.workers == 8 else star(case.workers)
    network = QueueingNetwork(parents, case.workers, link, seed, sums=in_network, mark_from=case.mark_from)
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
    simulation = JobSimulation(job, network)
    simulation.run()
    simulation.check()
    return simulation


@pytest.mark.commit_cases(1)
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


@pytest.mark.commit_cases(1)
@IN_NETWORK
@pytest.mark.parametrize("seed", [1, 2])
def test_losses_cost_tenths_of_a_second(in_network: bool, seed: int) -> None:
    """Two percent on each of up to six links: 57 of 100 fragments miss somebody's gradient at first."""
    simulation = simulate(Case(loss=0.02, duplicate=0.02, rounds=40), in_network, seed)
    assert statistics.median(simulation.round_times_us) < 400_000
    assert max(simulation.round_times_us) < 2_000_000
    # All eight workers resend those (87 a round), one each of the lost ACKs (15), and both may be lost again.
    assert simulation.resends / 40 < 130


@IN_NETWORK
def test_losses_on_slow_links_do_not_pile_up(in_network: bool) -> None:
    """Every resend occupies the server's link for 4 ms."""
    simulation = simulate(Case(rate_mbps=2, loss=0.02, duplicate=0.02), in_network)
    assert statistics.median(simulation.round_times_us) < 2_500_000
    assert simulation.resends / 20 < 150


@pytest.mark.thorough
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


@pytest.mark.thorough
@IN_NETWORK
def test_heavy_loss_ends(in_network: bool) -> None:
    """Rounds that last long must not make timers, and so later rounds, longer and longer."""
    simulation = simulate(Case(loss=0.05, duplicate=0.05, rounds=30), in_network)
    assert statistics.median(simulation.round_times_us[:15]) < 6_000_000
    assert statistics.median(simulation.round_times_us[15:]) < 6_000_000


def test_workers_with_small_windows_do_not_wait_for_each_other_longer_and_longer() -> None:
    """A worker that waits for a timer holds up the others, whose timers must not take that for a round trip."""
    simulation = simulate(Case(loss=0.05, duplicate=0.05, rounds=12, mark_from=16), True)
    assert statistics.median(simulation.round_times_us) < 6_000_000


def test_marks_keep_queues_short_and_links_busy() -> None:
    """Six workers behind one link, without loss: windows meet at the marks, not at the end of the queue."""

    def job(control: str) -> JobSettings:
        settings = JobSettings(8, 100, 2, window=256, multicast=False, min_timeout_us=50_000)
        return replace(settings, congestion_control=control)

    networks, simulations = [], []
    controls: tuple[str, ...] = ("aimd", "none")
    for control in controls:
        link = LinkModel(20_000_000, 50, queue_packets=100)
        network = QueueingNetwork(fat_tree_of_eight(), 8, link, seed=1, sums=False, mark_from=16)
        simulation = JobSimulation(job(control), network)
        simulation.run()
        simulation.check()
        simulations.append(simulation)
        networks.append(network)
    controlled, uncontrolled = simulations
    assert networks[0].to_server.longest_queue < 40
    assert controlled.resends == 0 < uncontrolled.resends
    wire_us = 8 * 100 * 8 * frame_bytes(256) / 20
    assert wire_us < statistics.median(controlled.round_times_us) < 1.1 * wire_us


@pytest.mark.thorough
@IN_NETWORK
@pytest.mark.parametrize("loss", [0.03, 0.05])
def test_timers_do_not_grow_under_steady_loss(loss: float, in_network: bool) -> None:
    """Workers that wait for each other's repairs must not take that for round trips: a parameter server is no slower
    than one whose timers stay ten minimum timeouts long, in the last rounds as in the first."""
    link = LinkModel(100_000_000, 50, loss)
    network = QueueingNetwork(fat_tree_of_eight(), 8, link, 1, sums=in_network, mark_from=20)
    job = JobSettings(8, 27, 36, window=32, multicast=in_network, min_timeout_us=10_000)
    simulation = JobSimulation(job, network)
    simulation.run()
    simulation.check()
    packet_s = 8e-8 * frame_bytes(LANES)
    constant_s = mean_round_s(
        workers=8, fragments=27, hops=6, loss=loss, timeout_s=0.1, packet_s=packet_s, rounds=40, seed=1
    )
    times_s = [time_us / 1e6 for time_us in simulation.round_times_us]
    assert statistics.mean(times_s) < constant_s
    assert statistics.mean(times_s[18:]) < constant_s


@pytest.mark.thorough
@pytest.mark.parametrize("control", ["aimd", "ecn"])
@pytest.mark.parametrize("loss", [0.0001, 0.01, 0.03])
def test_a_range_of_slots_of_ones_own_costs_no_resends(loss: float, control: str) -> None:
    """Packet numbers take turns in the range, so whoever waits for a repair may go on to its end. If it stopped where
    its window ends, all workers would wait for it, and their timers would repeat what nobody lost."""
    workers, fragments, rounds = 8, 200, 10
    link = LinkModel(100_000_000, 50, loss)
    network = QueueingNetwork(star(workers), workers, link, 1, sums=True, mark_from=20)
    job = JobSettings(workers, fragments, rounds, window=32, multicast=True, min_timeout_us=10_000, span=SLOTS)
    simulation = JobSimulation(replace(job, congestion_control=control), network)
    simulation.run()
    simulation.check()
    needed = fragments * mean_resends(workers=workers, loss=loss, fragments=20_000, seed=1)
    # Five standard deviations of the fragments that meet a loss: each of them costs up to `workers` resends.
    spread = 5 * workers * math.sqrt((2 * workers + 2) * loss * fragments / rounds)
    assert simulation.resends / rounds < needed + spread
