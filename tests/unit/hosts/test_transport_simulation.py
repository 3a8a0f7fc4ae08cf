"""Workers, switches and server over a network that loses, duplicates and reorders: every sum comes out exact."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.hosts.reordering_network import Hop, ReorderingNetwork
from tests.unit.hosts.simulation import JobSettings, JobSimulation


def simulate(
    *,
    workers: int = 4,
    fragments: int = 12,
    rounds: int = 3,
    window: int = 8,
    multicast: bool = True,
    first_number: int = 0,
    switches: int = 2,
    slots: int = 64,
    hop: Hop | None = None,
    seed: int = 1,
) -> JobSimulation:
    """Run a job over a perfect network unless told otherwise; its sums are checked."""
    network = ReorderingNetwork(
        workers=workers,
        switches=switches,
        slots=slots,
        hop=hop or Hop(loss=0, duplicate=0, delay_us=100, jitter_us=0),
        seed=seed,
    )
    job = JobSettings(
        workers=workers,
        fragments=fragments,
        rounds=rounds,
        window=window,
        multicast=multicast,
        first_number=first_number,
        seed=seed,
    )
    simulation = JobSimulation(job, network, paths=max(1, switches))
    simulation.run()
    simulation.check()
    return simulation


hops = st.builds(
    Hop,
    loss=st.sampled_from([0.0, 0.02, 0.2, 0.4]),
    duplicate=st.sampled_from([0.0, 0.02, 0.3]),
    delay_us=st.sampled_from([10, 300]),
    jitter_us=st.sampled_from([0, 20, 5000]),
)


@settings(max_examples=250, deadline=None)
@given(
    workers=st.integers(1, 6),
    fragments=st.integers(1, 9),
    rounds=st.integers(1, 4),
    window=st.integers(1, 9),
    multicast=st.booleans(),
    first_number=st.one_of(st.just(0), st.integers((1 << 32) - 40, (1 << 32) - 1)),
    switches=st.integers(0, 3),
    slots=st.integers(1, 6),
    hop=hops,
    seed=st.integers(0, 1 << 32),
)
def test_every_sum_is_exact_whatever_the_network_does(
    workers: int,
    fragments: int,
    rounds: int,
    window: int,
    multicast: bool,
    first_number: int,
    switches: int,
    slots: int,
    hop: Hop,
    seed: int,
) -> None:
    simulate(
        workers=workers,
        fragments=fragments,
        rounds=rounds,
        window=window,
        multicast=multicast,
        first_number=first_number,
        switches=switches,
        slots=slots,
        hop=hop,
        seed=seed,
    )


def test_perfect_network_needs_no_resends_and_one_packet_per_fragment() -> None:
    simulation = simulate()
    assert simulation.collector.statistics.merged_partials == 3 * 12
    assert simulation.collector.statistics.merged_singles == 0
    assert simulation.resends == 0
    network = simulation.network
    assert isinstance(network, ReorderingNetwork)
    assert all(slot.owner is None for switch in network.switches for slot in switch.slots)


def test_parameter_server_alone_merges_each_worker_singly() -> None:
    simulation = simulate(switches=0, multicast=False)
    assert simulation.collector.statistics.merged_singles == 3 * 12 * 4


def test_one_slot_for_all_fragments_still_sums() -> None:
    simulation = simulate(slots=1, switches=1)
    # Fragments that collide pass unsummed; those that find the slot free are summed in it.
    assert simulation.collector.statistics.merged_partials > 0
    assert simulation.collector.statistics.merged_singles > 0


def test_losses_are_repaired_before_the_timer_in_a_long_round() -> None:
    simulation = simulate(fragments=200, rounds=1, switches=1, window=32, hop=Hop(0.01, 0.0, 100, 0))
    assert simulation.early_resends > 0


def test_overlapping_partial_sums_are_dropped_and_repaired() -> None:
    """With heavy reordering and loss, the case that the collector must not merge does occur."""
    hop = Hop(loss=0.25, duplicate=0.25, delay_us=50, jitter_us=4000)
    overlaps = sum(simulate(seed=seed, slots=8, hop=hop).collector.statistics.overlaps for seed in range(12))
    assert overlaps > 0
