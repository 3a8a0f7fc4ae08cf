"""No schedule is below a bound, and where a bound is reached nothing better exists."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from gradbed.common.errors import UserError
from gradbed.controller.systems.shuffle.scheduling import clusters
from gradbed.controller.systems.shuffle.scheduling.bounds import bounds, cut_bound, packet_bound, regions
from gradbed.controller.systems.shuffle.scheduling.clusters import Column, Exact, Improved, best_columns
from gradbed.controller.systems.shuffle.scheduling.instance import ShuffleInstance, epochs
from gradbed.controller.systems.shuffle.scheduling.schedule import Schedule, Transmission, check_schedule
from gradbed.controller.systems.shuffle.scheduling.schedulers import SCHEDULERS
from gradbed.controller.systems.shuffle.scheduling.trees import Trees, members
from gradbed.topo.generators import fat_tree
from gradbed.topo.registry import parse_topology

LENDING = ("hop-aware", "hop-aware-corrected")
"""Schedulers that let neighbours lend."""


def drawn(fabric: str, share: float, samples: int, seed: int = 1, variants: int = 2) -> tuple[ShuffleInstance, Trees]:
    topology = parse_topology(fabric)
    instance = next(epochs([host.name for host in topology.hosts], [10] * samples, share, seed))
    return instance, Trees(topology, instance.hosts, variants)


@pytest.mark.parametrize("fabric", ["fat-tree:4", "bcube:4,1", "star:6"])
@pytest.mark.parametrize("share", [0.2, 0.3, 0.5])
def test_all_schedulers_are_between_bounds_and_exact_is_least(fabric: str, share: float) -> None:
    instance, trees = drawn(fabric, share, samples=64)
    hops = {}
    for name, scheduler in SCHEDULERS.items():
        if name != "coded-master":
            schedule = scheduler.schedule(instance, trees, seed=1)
            check_schedule(instance, schedule, trees.topology)
            hops[name] = schedule.hops
            for packet in _packets_without_loans(schedule):
                assert 2 * packet.hops >= _least_walk(instance, trees, packet)
    assert bounds(instance, trees).best <= min(hops.values())
    without_loans = [took for name, took in hops.items() if name not in LENDING]
    assert hops["exact"] == min(without_loans)
    assert hops["improved"] <= 1.01 * hops["exact"]


def _packets_without_loans(schedule: Schedule) -> list[Transmission]:
    with_loans = {sent.lent_for for sent in schedule.transmissions}
    return [sent for sent in schedule.transmissions if sent.lent_for is None and sent.number not in with_loans]


def _least_walk(instance: ShuffleInstance, trees: Trees, packet: Transmission) -> int:
    """Around a packet's tree and back: the sum of its receivers' distances from holders, and the largest again."""
    away = [
        min(int(trees.distances[holder, worker]) for holder in members(instance.holders[sample]))
        for worker, sample in packet.receivers
    ]
    return sum(away) + max(away)


def test_with_one_copy_of_every_sample_nothing_can_be_saved() -> None:
    instance, trees = drawn("fat-tree:4", 1 / 16, samples=64)
    nearest = SCHEDULERS["unicast-nearest"].schedule(instance, trees, seed=1).hops
    assert packet_bound(instance, trees, loans=False) == nearest
    assert SCHEDULERS["exact"].schedule(instance, trees, seed=1).hops == nearest


def test_a_cluster_in_a_rack_reaches_the_bound() -> None:
    """Three workers of a rack each store what the two others need, and a fourth all of it: 4 hops, not 6."""
    instance = ShuffleInstance(
        workers=("h1", "h2", "h3", "h4"),
        sizes_bytes=(10,) * 3,
        stored=((1, 2), (0, 2), (0, 1), (0, 1, 2)),
        needed=((0,), (1,), (2,), ()),
    )
    trees = Trees(fat_tree(8), instance.hosts)
    assert packet_bound(instance, trees) == 4
    assert Exact().schedule(instance, trees, seed=1).hops == 4
    assert Improved().schedule(instance, trees, seed=1).hops == 4


def test_what_enters_and_leaves_a_pod_crosses_its_host_rack_and_pod() -> None:
    """One sample from pod 1 to two workers of pod 2, in one rack: out of 3 cuts, into 3, and into another host."""
    instance = ShuffleInstance(
        workers=("h1", "h5", "h6"), sizes_bytes=(10,), stored=((0,), (), ()), needed=((), (0,), (0,))
    )
    trees = Trees(fat_tree(4), instance.hosts)
    assert cut_bound(instance, trees) == 7
    assert Exact().schedule(instance, trees, seed=1).hops == 7


def test_regions_are_hosts_racks_and_pods_and_servers_of_a_bcube() -> None:
    def sizes(fabric: str) -> list[int]:
        topology = parse_topology(fabric)
        found = regions(Trees(topology, [host.name for host in topology.hosts]))
        return sorted(inside.bit_count() for inside in found)

    assert sizes("fat-tree:4") == [1] * 16 + [2] * 8 + [4] * 4
    assert sizes("bcube:4,1") == [1] * 16


def test_a_sample_for_several_workers_is_multicast() -> None:
    instance = ShuffleInstance(
        workers=("h1", "h5", "h6", "h7"),
        sizes_bytes=(10,),
        stored=((0,), (), (), ()),
        needed=((), (0,), (0,), (0,)),
    )
    trees = Trees(fat_tree(4), instance.hosts)
    schedule = Improved().schedule(instance, trees, seed=1)
    assert [len(sent.receivers) for sent in schedule.transmissions] == [3]
    assert schedule.hops == 9


def test_the_exact_scheduler_refuses_what_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    instance, trees = drawn("fat-tree:4", 0.3, samples=64)
    monkeypatch.setattr(clusters, "MAX_COLUMNS", 10)
    with pytest.raises(UserError, match="more than 10 clusters"):
        Exact().schedule(instance, trees, seed=1)


def test_where_the_search_ends_without_any_result_the_best_columns_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clusters, "milp", lambda *arguments, **options: SimpleNamespace(x=None))
    best, beside, apart = Column((0, 1), 3, 4), Column((1, 2), 3, 3), Column((3, 4), 3, 1)
    assert best_columns(5, [apart, beside, best]) == [best, apart]


def test_large_shuffles_are_parted() -> None:
    instance, trees = drawn("fat-tree:4", 0.3, samples=480)
    whole = Improved().schedule(instance, trees, seed=1)
    parted = Improved(pairs=300).schedule(instance, trees, seed=1)
    check_schedule(instance, parted, trees.topology)
    nearest = SCHEDULERS["unicast-nearest"].schedule(instance, trees, seed=1)
    assert whole.hops <= parted.hops < nearest.hops
    once = Improved(pairs=300, rounds=0).schedule(instance, trees, seed=1)
    check_schedule(instance, once, trees.topology)
    assert once.hops > parted.hops, "mixing all packets and solving again pays"


@pytest.mark.parametrize("fabric", ["fat-tree:4", "bcube:4,1"])
def test_a_master_has_bounds_of_its_own(fabric: str) -> None:
    """It stores everything, so it may take fewer hops than is possible without it, and never fewer than with it."""
    topology = parse_topology(fabric)
    *workers, master = (host.name for host in topology.hosts)
    beaten = 0
    for share in (0.07, 0.2, 0.5, 0.8):
        storages = {name: next(epochs(workers, [10] * 120, share, seed=1, master=name)) for name in (None, master)}
        without, within = (
            bounds(each, Trees(topology, each.hosts, 2)) for each in (storages[None], storages[master])
        )
        trees = Trees(topology, storages[master].hosts, 2)
        hops = SCHEDULERS["coded-master"].schedule(storages[master], trees, seed=1).hops
        assert within.packets <= without.packets and within.cuts <= without.cuts
        assert within.best <= hops
        beaten += hops < without.best
    assert beaten > 0
