"""Workers, switches and server over a network that loses, duplicates and reorders: every sum comes out exact."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradbed.formats.aggregation import MAX_MAGNITUDE
from gradbed.hosts.systems.aggregation.worker.sender import RETRIES
from tests.examples import examples
from tests.unit.hosts.aggregation.labels import labels
from tests.unit.hosts.aggregation.reordering_network import Hop, ReorderingNetwork
from tests.unit.hosts.aggregation.simulation import JobSettings, JobSimulation
from tests.unit.hosts.aggregation.slot_model import Label

PERFECT = Hop(loss=0, duplicate=0, delay_us=100, jitter_us=0)


def simulate(
    *,
    workers: int = 4,
    switches: int = 2,
    designated: Sequence[Sequence[int]] | None = None,
    second: int = 0,
    slots: int = 64,
    static: bool = False,
    hop: Hop = PERFECT,
    forget_at_us: Sequence[int] = (),
    seed: int = 1,
    **job: Any,
) -> JobSimulation:
    """Run a job over a perfect network unless told otherwise; its sums are checked.

    designated: by worker and turn, the designated switch; without any, all workers deal fragments to all switches in
    turn.
    forget_at_us: when all switches restart with empty slots.
    """
    turns = list(range(1, switches + 1)) or [0]
    network = ReorderingNetwork(
        labels=labels(designated or [turns] * workers, second),
        switches=switches,
        slots=slots,
        hop=hop,
        seed=seed,
        second=second,
        static=static,
    )
    for at_us in forget_at_us:
        for switch in network.switches.values():
            network.clock.at(at_us, switch.forget)
    defaults: dict[str, Any] = {"fragments": 12, "rounds": 3, "window": 8, "multicast": True}
    described = {**defaults, **job}
    if static:
        described |= {"window": min(described["window"], slots), "span": slots}
    simulation = JobSimulation(JobSettings(workers=workers, seed=seed, **described), network)
    simulation.run()
    simulation.check()
    return simulation


def network_of(simulation: JobSimulation) -> ReorderingNetwork:
    assert isinstance(simulation.network, ReorderingNetwork)
    return simulation.network


hops = st.builds(
    Hop,
    loss=st.sampled_from([0.0, 0.02, 0.2, 0.4]),
    duplicate=st.sampled_from([0.0, 0.02, 0.3]),
    delay_us=st.sampled_from([10, 300]),
    jitter_us=st.sampled_from([0, 20, 5000]),
    mark=st.sampled_from([0.0, 0.1]),
)


@st.composite
def designations(draw: st.DrawFn) -> dict[str, Any]:
    """Any choice of switches, by worker and turn, on one or two levels."""
    workers, switches, turns = draw(st.integers(1, 6)), draw(st.integers(0, 3)), draw(st.integers(1, 3))
    turns_of_worker = st.lists(st.integers(0, switches), min_size=turns, max_size=turns)
    return {
        "workers": workers,
        "switches": switches,
        "designated": draw(st.lists(turns_of_worker, min_size=workers, max_size=workers)),
        "second": draw(st.integers(0, switches)),
    }


JOBS = st.fixed_dictionaries(
    {
        "fragments": st.integers(1, 9),
        "rounds": st.integers(1, 4),
        "window": st.integers(1, 9),
        "multicast": st.booleans(),
        "first_number": st.one_of(st.just(0), st.integers((1 << 32) - 40, (1 << 32) - 1)),
        "magnitude": st.sampled_from([0, 1 << 20, 1 << 30, MAX_MAGNITUDE]),
        "congestion_control": st.sampled_from(["aimd", "none"]),
        "static": st.booleans(),
        "retries": st.sampled_from([0, 1, RETRIES, 9]),
        "slots": st.integers(1, 6),
        "hop": hops,
        "forget_at_us": st.lists(st.integers(0, 60_000), max_size=3),
        "seed": st.integers(0, 1 << 32),
    }
)


@pytest.mark.thorough
@settings(max_examples=examples(300), deadline=None)
@given(designations(), JOBS)
def test_every_sum_is_exact_whatever_the_network_does(designated: dict[str, Any], job: dict[str, Any]) -> None:
    simulate(**designated, **job)


@pytest.mark.parametrize("static", [False, True])
def test_perfect_network_needs_no_resends_and_one_packet_per_fragment(static: bool) -> None:
    simulation = simulate(static=static)
    assert simulation.collector.statistics.merged_partials == 3 * 12
    assert simulation.collector.statistics.merged_singles == 0
    assert simulation.resends == 0
    assert all(slot.owner is None for switch in network_of(simulation).switches.values() for slot in switch.slots)


def test_two_levels_leave_one_packet_per_fragment_too() -> None:
    """Two racks, a worker without a switch in its rack, and fragments that the second level has for itself."""
    designated = [[1, 3], [1, 3], [2, 3], [2, 3], [3, 3]]
    simulation = simulate(workers=5, switches=3, designated=designated, second=3, slots=4096)
    assert simulation.collector.statistics.merged_partials == 3 * 12
    assert simulation.collector.statistics.merged_singles == 0
    assert simulation.resends == 0


def test_parameter_server_alone_merges_each_worker_singly() -> None:
    simulation = simulate(switches=0, multicast=False)
    assert simulation.collector.statistics.merged_singles == 3 * 12 * 4


def test_one_slot_for_all_fragments_still_sums() -> None:
    simulation = simulate(slots=1, switches=1)
    # Fragments that collide pass unsummed; those that find the slot free are summed in it.
    assert simulation.collector.statistics.merged_partials > 0
    assert simulation.collector.statistics.merged_singles > 0


def test_static_slots_as_many_as_the_window_never_collide() -> None:
    simulation = simulate(slots=8, window=8, switches=1, fragments=100, static=True, congestion_control="none")
    assert simulation.collector.statistics.merged_singles == 0
    assert simulation.collector.statistics.merged_partials == 300


def test_sums_that_could_overflow_in_a_switch_become_exact_at_the_server_without_a_timer() -> None:
    simulation = simulate(magnitude=MAX_MAGNITUDE, workers=5)
    statistics = simulation.collector.statistics
    assert statistics.overflows > 0
    assert statistics.requests > 0
    assert statistics.shifted_acks > 0
    assert simulation.timeout_resends == 0


def test_losses_are_repaired_before_the_timer_in_a_long_round() -> None:
    simulation = simulate(fragments=200, rounds=1, switches=1, window=32, hop=Hop(0.01, 0.0, 100, 0))
    assert simulation.early_resends > 0


@pytest.mark.parametrize(
    ("designated", "second"),
    [([[1]] * 8, 0), ([[1]] * 4 + [[2]] * 4, 3)],
    ids=["one level", "two levels"],
)
def test_retries_leave_switches_their_sums(designated: list[list[int]], second: int) -> None:
    """What is lost on the way to a switch costs its way to the server nothing, and rounds take no longer."""
    network = {"workers": 8, "switches": 3, "slots": 4096, "designated": designated, "second": second}
    retried, given_up = (
        simulate(**network, fragments=200, rounds=2, window=32, hop=Hop(0.01, 0.0, 100, 0), retries=retries)
        for retries in (RETRIES, 0)
    )
    assert retried.given_up < 10
    # In the one case lost sums and ACKs alone cost the server packets beyond one for each fragment.
    packets = [s.collector.statistics.merged_singles + s.collector.statistics.duplicates for s in (retried, given_up)]
    assert 2 * packets[0] < packets[1]
    assert max(retried.round_times_us) < 1.5 * max(given_up.round_times_us)


def test_a_switch_that_loses_its_slots_again_and_again_costs_little() -> None:
    hop = Hop(loss=0, duplicate=0, delay_us=100, jitter_us=50)
    undisturbed = simulate(fragments=100, switches=1, slots=4096, hop=hop)
    disturbed = simulate(fragments=100, switches=1, slots=4096, hop=hop, forget_at_us=range(5000, 12_000, 500))
    assert disturbed.resends > undisturbed.resends
    assert disturbed.given_up == 0
    assert max(disturbed.round_times_us) < 2 * max(undisturbed.round_times_us)


def test_marks_halve_the_window_and_change_nothing_else() -> None:
    free, marked = (
        simulate(fragments=200, window=64, switches=1, slots=4096, hop=Hop(0, 0, 100, 0, mark))
        for mark in (0.0, 0.02)
    )
    assert all(state.sender.statistics.window.decreases == 0 for state in free.workers)
    for state in marked.workers:
        window = state.sender.statistics.window
        assert window.congestion_marks > window.decreases > 3
        assert 2 <= window.least < window.mean < window.greatest <= 64
    assert marked.resends == free.resends == 0
    assert marked.collector.statistics.merged_partials == free.collector.statistics.merged_partials


def test_overlapping_partial_sums_are_dropped_and_repaired() -> None:
    """With heavy reordering and loss, the case that the collector must not merge does occur."""
    hop = Hop(loss=0.25, duplicate=0.25, delay_us=50, jitter_us=4000)
    designated = [[1], [1], [2], [2], [3], [3]]
    runs = [
        simulate(seed=seed, workers=6, switches=3, designated=designated, second=3, slots=4, hop=hop, retries=1)
        for seed in range(6)
    ]
    assert sum(run.collector.statistics.overlaps for run in runs) > 0
    assert sum(run.collector.statistics.requests for run in runs) > 0


def test_labels_count_those_who_meet() -> None:
    assert labels([[1], [1], [2], [3], [0]], second=3) == [
        [Label(1, 2, 3, 4)],
        [Label(1, 2, 3, 4)],
        [Label(2, 1, 3, 4)],
        [Label(3, 4)],
        [Label()],
    ]
