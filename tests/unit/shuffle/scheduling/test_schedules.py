"""What holds for every scheduler's schedules, and that the check finds what is wrong with one."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from pydantic import TypeAdapter

from gradbed.common.errors import UserError
from gradbed.controller.systems.shuffle.messages import ShuffleRequest
from gradbed.controller.systems.shuffle.scheduling.instance import ShuffleInstance, epochs
from gradbed.controller.systems.shuffle.scheduling.queues import CodedPacket, Loan, SendQueues, Timing
from gradbed.controller.systems.shuffle.scheduling.schedule import BadSchedule, Schedule, check_schedule
from gradbed.controller.systems.shuffle.scheduling.schedulers import SCHEDULERS, scheduler_named
from gradbed.controller.systems.shuffle.scheduling.trees import Trees
from gradbed.experiments.systems.shuffle.configuration import ShuffleSection
from gradbed.topo.generators import star
from gradbed.topo.registry import parse_topology


def small(share: float = 0.4, samples: int = 48, fabric: str = "fat-tree:4") -> tuple[ShuffleInstance, Trees]:
    topology = parse_topology(fabric)
    *workers, master = (host.name for host in topology.hosts)
    instance = next(epochs(workers, [100] * samples, share, seed=3, master=master))
    return instance, Trees(topology, instance.hosts)


@pytest.mark.parametrize("name", SCHEDULERS)
def test_every_schedule_serves_every_demand(name: str) -> None:
    instance, trees = small()
    schedule = scheduler_named(name).schedule(instance, trees, seed=1)
    check_schedule(instance, schedule, trees.topology)
    assert schedule.scheduler == name
    assert schedule == scheduler_named(name).schedule(instance, trees, seed=1)


def test_instance_and_schedule_survive_json() -> None:
    instance, trees = small()
    schedule = scheduler_named("coded-largest").schedule(instance, trees, seed=1)
    for kind, value in ((ShuffleInstance, instance), (Schedule, schedule)):
        adapter = TypeAdapter(kind)
        assert adapter.validate_json(adapter.dump_json(value)) == value


def lending() -> tuple[ShuffleInstance, Trees, Schedule]:
    """Worker 0 needs 0, worker 1 needs 1, and worker 2 sends both: it borrows 1 of worker 3; worker 0 has 1 of 4."""
    instance = ShuffleInstance(
        workers=("h1", "h2", "h3", "h4", "h5"),
        sizes_bytes=(10, 20),
        stored=((), (0,), (0,), (1,), (1,)),
        needed=((0,), (1,), (), (), ()),
    )
    trees = Trees(star(5), instance.hosts)
    queues = SendQueues(instance, trees)
    queues.add(CodedPacket(2, ((0, 0), (1, 1)), 0, 3, (Loan(3, 2, 1), Loan(4, 0, 1))))
    return instance, trees, queues.schedule("by hand")


def test_a_packet_with_loans_to_its_sender_and_to_a_receiver() -> None:
    instance, trees, schedule = lending()
    check_schedule(instance, schedule, trees.topology)
    assert [transmission.kind for transmission in schedule.transmissions] == ["B", "B", "A"]
    assert schedule.queues == ((), (), (2,), (0,), (1,))
    assert schedule.hops == 7


@pytest.mark.parametrize(
    ("number", "change", "message"),
    [
        (2, {"hops": 4}, "takes 3 hops, not 4"),
        (2, {"hops": 2}, "takes 3 hops, not 2"),
        (2, {"receivers": ((0, 0),), "samples": (0, 1)}, "carries a sample that nobody decodes"),
        (2, {"samples": (0,), "receivers": ((0, 0),)}, "has no use for sample 1"),
        (2, {"waits_for": ()}, "does not wait for loan 0"),
        (2, {"hops": 4, "receivers": ((0, 0), (1, 1), (3, 0))}, "worker 3 has no open need of 0"),
        (2, {"receivers": ((0, 0), (3, 1))}, "worker 3 cannot decode 1"),
        (2, {"tree": 1}, "there is no tree 1"),
        (1, {"receivers": ((1, 1),)}, "worker 0 cannot decode 0"),
        (0, {"lent_for": None}, "worker 2 has no open need of 1"),
        (0, {"sender": 4}, "in a place that is not its own"),
    ],
)
def test_what_is_wrong_is_found(number: int, change: dict[str, object], message: str) -> None:
    instance, trees, schedule = lending()
    transmissions = list(schedule.transmissions)
    transmissions[number] = replace(transmissions[number], **change)  # type: ignore[arg-type]
    with pytest.raises(BadSchedule, match=message):
        check_schedule(instance, replace(schedule, transmissions=tuple(transmissions)), trees.topology)


def test_a_demand_that_is_left_is_found() -> None:
    instance, trees, schedule = lending()
    with pytest.raises(BadSchedule, match="worker 0 never gets sample 0; 2 demands"):
        check_schedule(instance, replace(schedule, transmissions=(), queues=((),) * 5), trees.topology)


def test_queues_that_wait_for_each_other_are_found() -> None:
    """Two A packets, each before the loan that the other waits for."""
    instance = ShuffleInstance(
        workers=("h1", "h2", "h3", "h4"),
        sizes_bytes=(10,) * 4,
        stored=((0, 2), (1, 3), (1, 2), (0, 3)),
        needed=((), (), (0, 3), (1, 2)),
    )
    trees = Trees(star(4), instance.hosts)
    queues = SendQueues(instance, trees)
    queues.add(CodedPacket(0, ((2, 0), (3, 1)), 0, 3, (Loan(1, 0, 1),)))
    queues.add(CodedPacket(1, ((2, 3), (3, 2)), 0, 3, (Loan(0, 1, 2),)))
    schedule = queues.schedule("by hand")
    check_schedule(instance, schedule, trees.topology)
    turned = replace(schedule, queues=tuple(queue[::-1] for queue in schedule.queues))
    with pytest.raises(BadSchedule, match="wait in a circle"):
        check_schedule(instance, turned, trees.topology)


@pytest.mark.parametrize(
    ("stored", "needed", "message"),
    [
        ({"h1": [0], "h2": []}, {"h2": [1]}, "h2 needs sample 1, which no worker stores"),
        ({"h1": [0, 1], "h2": []}, {"h2": [7]}, "h2 has sample 7 among its needed ones"),
        ({"h1": [0, 1]}, {"h3": [1]}, "h3 needs samples, but is no worker"),
    ],
)
def test_impossible_instances(stored: dict[str, list[int]], needed: dict[str, list[int]], message: str) -> None:
    with pytest.raises(UserError, match=message):
        ShuffleInstance.of(stored, needed, sizes_bytes=[5, 5])


def test_a_master_is_no_worker_and_the_classical_scheme_needs_one() -> None:
    with pytest.raises(UserError, match="a host of its own"):
        ShuffleInstance.of({"h1": [0]}, {}, [5], master="h1")
    instance = ShuffleInstance.of({"h1": [0], "h2": []}, {"h2": [0]}, [5])
    with pytest.raises(UserError, match="needs a master"):
        scheduler_named("coded-master").schedule(instance, Trees(star(2), instance.hosts), seed=1)


def test_a_packet_waits_no_longer_than_the_threshold() -> None:
    """The longer it may be, the more packets are worth waiting."""
    instance, trees = small(share=0.2, samples=240)
    waiting = {}
    for threshold_us in (0, 120, 960):
        timing = Timing(threshold_us=threshold_us)
        schedule = scheduler_named("hop-aware", timing).schedule(instance, trees, seed=1)
        check_schedule(instance, schedule, trees.topology)
        waits = [sent.wait_us for sent in schedule.transmissions if sent.kind == "A"]
        assert max(waits, default=0) <= threshold_us
        waiting[threshold_us] = len(waits)
    assert 0 < waiting[0] < waiting[960]


def test_an_unknown_scheduler() -> None:
    with pytest.raises(UserError, match="unknown scheduler 'best'"):
        scheduler_named("best")


@pytest.mark.parametrize("name", SCHEDULERS)
def test_nothing_is_sent_where_everybody_stores_everything(name: str) -> None:
    instance, trees = small(share=1.0)
    assert scheduler_named(name).schedule(instance, trees, seed=1).transmissions == ()


@pytest.mark.parametrize("seed", range(12))
def test_the_default_is_as_safe_as_unicast_and_no_dearer(seed: int) -> None:
    """Whatever is stored and needed: also several who need one sample, some who need nothing, and storages of any
    size."""
    draw = random.Random(seed)
    topology = parse_topology(["fat-tree:4", "bcube:3,1", "star:7", "leaf-spine:3,2,2"][seed % 4])
    hosts = [host.name for host in draw.sample(topology.hosts, draw.randint(2, 6))]
    samples = range(draw.randint(1, 20))
    stored = {host: draw.sample(samples, draw.randint(0, len(samples))) for host in hosts}
    stored[hosts[0]] = list(samples)
    needed = {host: draw.sample(samples, draw.randint(0, len(samples))) for host in hosts}
    instance = ShuffleInstance.of(stored, needed, [10] * len(samples))
    trees = Trees(topology, instance.hosts, variants=draw.randint(1, 3))
    schedule = scheduler_named(ShuffleRequest.model_fields["scheduler"].default).schedule(instance, trees, seed)
    check_schedule(instance, schedule, trees.topology)
    assert schedule.hops <= scheduler_named("unicast-nearest").schedule(instance, trees, seed).hops


def test_runs_and_requests_have_the_same_default() -> None:
    assert ShuffleRequest.model_fields["scheduler"].default == ShuffleSection().scheduler == "improved"
