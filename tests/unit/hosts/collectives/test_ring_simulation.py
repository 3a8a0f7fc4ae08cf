"""Ring all-reduce in simulation: exact whatever links do, and with no more packets than it needs."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.unit.hosts.collectives.ring_network import RingSettings, RingSimulation

LARGEST = (1 << 31) - 1


def run(**fields: object) -> RingSimulation:
    simulation = RingSimulation(RingSettings(**fields))  # type: ignore[arg-type]
    simulation.run()
    simulation.check()
    return simulation


@settings(max_examples=examples(150), deadline=None)
@given(
    workers=st.integers(1, 7),
    fragments=st.integers(1, 40),
    rounds=st.integers(1, 4),
    window=st.integers(1, 100),
    loss=st.sampled_from([0.0, 0.02, 0.2, 0.5]),
    duplicate=st.sampled_from([0.0, 0.1, 0.5]),
    mark=st.sampled_from([0.0, 0.3]),
    jitter_us=st.sampled_from([0, 50, 2000]),
    control=st.sampled_from(["aimd", "ecn", "none"]),
    first_sequence=st.sampled_from([0, (1 << 32) - 5]),
    magnitude=st.sampled_from([1, 1 << 20, LARGEST]),
    seed=st.integers(0, 1 << 30),
)
def test_every_worker_gets_every_sum(control: str, **fields: object) -> None:
    run(congestion_control=control, **fields)


@pytest.mark.parametrize("workers", [2, 3, 4, 8])
@pytest.mark.parametrize("fragments", [1, 8, 13])
def test_the_packets_that_a_ring_needs(workers: int, fragments: int) -> None:
    """Every fragment makes 2 (n - 1) hops, each acknowledged: no worker sends more than 2 (n - 1) / n of them."""
    simulation = run(workers=workers, fragments=fragments, rounds=3, min_timeout_us=1_000_000)
    assert simulation.resends == 0
    assert simulation.packets == 2 * 3 * fragments * 2 * (workers - 1)


def test_sums_that_leave_int32_take_two_packets_only_where_they_do() -> None:
    """Three workers: the partial sum of step 1 is of two gradients."""
    needed = {}
    for magnitude in (1 << 29, LARGEST):
        simulation = run(
            workers=3, fragments=30, rounds=1, lanes=8, magnitude=magnitude, window=64, min_timeout_us=1_000_000
        )
        needed[magnitude] = simulation.packets
    assert needed[1 << 29] == 2 * 30 * 4
    # Of eight sums of two numbers hardly ever none leaves int32: 30 more packets at most, each acknowledged.
    assert needed[1 << 29] + 2 * 15 < needed[LARGEST] <= needed[1 << 29] + 2 * 30


def test_losses_are_repaired_without_timers_while_later_packets_come() -> None:
    simulation = run(workers=4, fragments=200, rounds=4, window=32, loss=0.02, congestion_control="none")
    statistics = [worker.sender.statistics for worker in simulation.workers]
    early = sum(each.early_resends for each in statistics)
    assert early > 5 * sum(each.timeout_resends for each in statistics)
    assert early > 0


def test_windows_follow_marks() -> None:
    calm = run(workers=3, fragments=300, window=32)
    marked = run(workers=3, fragments=300, window=32, mark=0.2)
    assert all(worker.sender.statistics.window.greatest == 32 for worker in calm.workers)
    assert all(worker.sender.statistics.window.decreases > 0 for worker in marked.workers)
    assert max(worker.sender.statistics.window.mean for worker in marked.workers) < 16
