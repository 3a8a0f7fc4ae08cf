"""Whole shuffles on the virtual clock: hops as planned, bytes as they were, samples where they are to be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gradbed.common.errors import UserError
from gradbed.controller.systems.shuffle import service
from gradbed.controller.systems.shuffle.scheduling import schedule as checking
from gradbed.controller.systems.shuffle.scheduling.schedule import BadSchedule
from gradbed.controller.systems.shuffle.scheduling.schedulers import SCHEDULERS
from gradbed.controller.systems.shuffle.scheduling.trees import Trees
from gradbed.experiments.phases import TrialResult
from gradbed.experiments.runtimes.agents import AgentSpec
from gradbed.experiments.systems.shuffle import phase as training
from gradbed.experiments.systems.shuffle.phase import ShuffleJob, ShufflePhase
from gradbed.experiments.systems.shuffle.trial import ShuffleTrial
from gradbed.hosts.learning.dataset import Samples
from gradbed.hosts.systems.shuffle import sending as sending_module
from gradbed.hosts.systems.shuffle.reception import SampleReception, _Arriving
from gradbed.hosts.systems.shuffle.samples import Store
from tests.unit.trials import virtual_trial

SYNTHETIC = {"data": "synthetic", "samples": 64, "sample_bytes": 500, "spread_bytes": 300}
TOPOLOGIES = ["fat-tree:4", "bcube:4,1"]
FAST = [name for name in SCHEDULERS if name != "exact"]


@pytest.mark.commit_cases(2)
@pytest.mark.parametrize("kind", TOPOLOGIES)
@pytest.mark.parametrize("scheduler", FAST)
def test_switches_count_the_hops_of_the_schedule(scheduler: str, kind: str, tmp_path: Path) -> None:
    """On every direction of every link, in transmissions and in packets: the trial fails otherwise."""
    found = virtual_trial(
        "shuffle", tmp_path, topology={"kind": kind}, shuffle={"scheduler": scheduler}, samples={"samples": 64}
    )
    assert found.failures == []
    metrics = found.metrics
    assert metrics["counted_hops"] == metrics["hops"] > 0
    assert metrics["repairs"] == metrics["requests"] == 0
    assert sum(row["transmissions"] for row in found.tables["loads"]) == metrics["hops"]


@pytest.mark.commit_cases(2)
@pytest.mark.parametrize("multicast", ["bit-string", "groups"])
@pytest.mark.parametrize("kind", TOPOLOGIES)
def test_unequal_samples_in_several_fragments(kind: str, multicast: str, tmp_path: Path) -> None:
    """Shuffle after shuffle: what one leaves is what the next begins with."""
    found = virtual_trial(
        "shuffle",
        tmp_path,
        topology={"kind": kind},
        samples=SYNTHETIC,
        shuffle={"fragment_bytes": 150, "shuffles": 2, "multicast": multicast, "unicast": "trees", "trees": 2},
    )
    assert found.failures == []
    assert [row["counted_hops"] == row["hops"] > 0 for row in found.tables["shuffles"]] == [True, True]
    assert sum(row["packets"] for row in found.tables["loads"]) > 2 * sum(
        row["transmissions"] for row in found.tables["loads"]
    )


@pytest.mark.parametrize("multicast", ["bit-string", "groups"])
@pytest.mark.parametrize("kind", TOPOLOGIES)
def test_everything_arrives_though_links_lose_a_packet_in_twenty(kind: str, multicast: str, tmp_path: Path) -> None:
    found = virtual_trial(
        "shuffle",
        tmp_path,
        topology={"kind": kind, "link": {"loss": 0.05, "duplicate": 0.02}},
        samples=SYNTHETIC,
        shuffle={"fragment_bytes": 300, "multicast": multicast, "scheduler": "coded-largest"},
    )
    assert found.failures == []
    assert found.metrics["repairs"] > 0 and found.metrics["requests"] > 0


@pytest.mark.parametrize("multicast", ["bit-string", "groups"])
def test_what_several_lost_is_repaired_by_one_packet(multicast: str, tmp_path: Path) -> None:
    """A packet that is lost on its sender's link is missed by all its receivers, of a group by all members."""
    found = virtual_trial(
        "shuffle",
        tmp_path,
        topology={"kind": "star:6", "tiers": {"host": {"loss": 0.3}}},
        samples={**SYNTHETIC, "samples": 200, "storage": 0.7},
        shuffle={"scheduler": "coded-largest", "multicast": multicast},
    )
    assert found.failures == [] and found.metrics["coded_repairs"] > 0


def test_overflowing_queues_are_repaired_too(tmp_path: Path) -> None:
    found = virtual_trial(
        "shuffle",
        tmp_path,
        topology={"kind": "star:8", "link": {"queue_packets": 3}},
        samples={**SYNTHETIC, "sample_bytes": 4000, "spread_bytes": 0, "storage": 0.3},
        shuffle={"scheduler": "unicast-random"},
    )
    assert found.failures == [] and found.metrics["repairs"] > 0


def test_steiner_trees_carry_what_was_counted_on_them(tmp_path: Path) -> None:
    """Packets take trees that are no breadth-first ones; losses are repaired on them, too."""
    for loss in (0.0, 0.05):
        found = virtual_trial(
            "shuffle",
            tmp_path,
            topology={"kind": "bcube:4,1", "link": {"loss": loss}},
            samples={**SYNTHETIC, "samples": 128, "storage": 0.3},
            shuffle={"trees": 1},
        )
        assert found.failures == []
        assert found.decisions["joined_trees"][0] > 0
        if not loss:
            assert found.metrics["counted_hops"] == found.metrics["hops"]


def test_the_same_seed_gives_the_same_rows(tmp_path: Path) -> None:
    lossy = {"topology": {"kind": "bcube:3,1", "link": {"loss": 0.03}}, "samples": {"samples": 40}}
    one, other, third = (virtual_trial("shuffle", tmp_path, seed=seed, **lossy) for seed in (1, 1, 2))
    assert one.tables == other.tables and one.metrics == other.metrics
    assert one.metrics != third.metrics


# ---- What is wrong is told ----


def wrong_byte(patch: pytest.MonkeyPatch) -> str:
    put = Store.put

    def spoilt(self: Store, sample: int, fragments: np.ndarray) -> None:
        put(self, sample, fragments ^ 1 if sample == 7 else fragments)

    patch.setattr(Store, "put", spoilt)
    return "are not the original ones, such as 7"


def kept_too_much(patch: pytest.MonkeyPatch) -> str:
    patch.setattr(Store, "keep", lambda self, samples: None)
    return "samples that it was not to hold"


def kept_too_little(patch: pytest.MonkeyPatch) -> str:
    keep = Store.keep
    patch.setattr(Store, "keep", lambda self, samples: keep(self, list(samples)[1:]))
    return "does not hold 1 samples that it was to hold"


def on_another_tree(patch: pytest.MonkeyPatch) -> str:
    """A second copy of a packet, which no receiver's bytes would tell."""
    once = sending_module.Sending._send_scheduled

    def twice(self: sending_module.Sending, most: int, now_us: int) -> int:
        if self._frames is None and self._queue and not self._sent and self._config.index == 2:
            self._send(self._packed(self._queue[0]))
        return once(self, most, now_us)

    patch.setattr(sending_module.Sending, "_send_scheduled", twice)
    return "transmissions in"


def hops_off_by_one(patch: pytest.MonkeyPatch) -> str:
    """A schedule that counts one hop too many for every packet, which the check of schedules lets through."""
    best = Trees.best

    def one_more(self: Trees, sender: int, receivers: int) -> tuple[int, int]:
        hops, tree = best(self, sender, receivers)
        return hops + 1, tree

    patch.setattr(Trees, "best", one_more)
    patch.setattr(checking, "_check_hops", lambda *arguments: None)
    return "hops, the schedule says"


def needs_forgotten(patch: pytest.MonkeyPatch) -> str:
    """What is to be kept does not contain what was needed."""
    patch.setattr(ShuffleJob, "agents", forgetful(ShuffleJob.agents))
    return "does not hold"


def forgetful(agents: Callable[[ShuffleJob], list[AgentSpec]]) -> Callable[[ShuffleJob], list[AgentSpec]]:
    def made(self: ShuffleJob) -> list[AgentSpec]:
        needed = set(self.instance.needed[0])
        self.keep = [tuple(each for each in self.keep[0] if each not in needed), *self.keep[1:]]
        return agents(self)

    return made


@pytest.mark.parametrize(
    "spoil", [wrong_byte, kept_too_much, kept_too_little, on_another_tree, hops_off_by_one, needs_forgotten]
)
def test_what_goes_wrong_is_a_failure_of_the_trial(
    spoil: Callable[[pytest.MonkeyPatch], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = spoil(monkeypatch)
    found = virtual_trial("shuffle", tmp_path, samples={"samples": 32}, topology={"kind": "star:6"})
    assert any(words in line for line in found.failures), found.failures


def test_with_losses_no_link_carries_more_than_planned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_another_tree(monkeypatch)
    lossy = {"kind": "star:6", "tiers": {"host": {"loss": 0.02}}}
    found = virtual_trial("shuffle", tmp_path, samples={"samples": 64}, topology=lossy)
    assert any("planned are at most" in line for line in found.failures), found.failures


@pytest.mark.parametrize("plan_only", [True, False])
def test_a_schedule_that_counts_wrong_is_not_taken(
    plan_only: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every schedule is counted anew, in another way, before anything is sent."""
    hops_on = Trees.hops_on
    monkeypatch.setattr(Trees, "hops_on", lambda *arguments: hops_on(*arguments) + 1)
    with pytest.raises(BadSchedule, match=r"packet 0 takes \d+ hops, not"):
        virtual_trial(
            "shuffle",
            tmp_path,
            samples={"samples": 32},
            shuffle={"plan_only": plan_only, "scheduler": "unicast-nearest"},
        )


# ---- Neighbours that lend ----

LENDING = {
    "samples": {"data": "synthetic", "samples": 48, "sample_bytes": 300, "storage": 0.2},
    "shuffle": {"scheduler": "hop-aware", "fragment_bytes": 100},
}


@pytest.mark.parametrize("loss", [0.0, 0.05])
@pytest.mark.parametrize("kind", TOPOLOGIES)
def test_nothing_lent_stays_behind(kind: str, loss: float, tmp_path: Path) -> None:
    found = virtual_trial("shuffle", tmp_path, topology={"kind": kind, "link": {"loss": loss}}, **LENDING)
    assert found.failures == []
    assert found.metrics["loans"] > 0
    if not loss:
        assert found.metrics["counted_hops"] == found.metrics["hops"]


def test_what_stays_behind_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Store, "give_back", lambda self, transmission: None)
    found = virtual_trial("shuffle", tmp_path, **LENDING)
    assert any("samples that were lent to it were left" in line for line in found.failures)


def test_packets_wait_for_loans_as_told(tmp_path: Path) -> None:
    """There is a row for every packet of class A."""
    found = virtual_trial("shuffle", tmp_path, **LENDING)
    assert len(found.tables["waits"]) > 0
    assert found.metrics["max_wait_s"] == max(row["wait_s"] for row in found.tables["waits"])


# ---- Training ----


def test_global_shuffling_helps_where_first_samples_are_of_few_classes(tmp_path: Path) -> None:
    found = virtual_trial(
        "shuffle",
        tmp_path,
        topology={"kind": "star:8"},
        samples={"samples": 400, "storage": 0.2, "first": "sorted"},
        shuffle={"shuffles": 4, "scheduler": "unicast-nearest"},
        training={"train": True},
    )
    assert found.failures == []
    course = {(row["shuffling"], row["epoch"]): row["accuracy"] for row in found.tables["epochs"]}
    assert len(course) == 2 * 5
    assert course["global", 1] == course["local", 1], "before the first shuffle they are the same"
    assert found.metrics["accuracy_global"] == course["global", 5] > course["local", 5] + 0.1


TRAINED = {
    "topology": {"kind": "star:4"},
    "samples": {"samples": 200, "storage": 0.3},
    "shuffle": {"shuffles": 2, "scheduler": "unicast-nearest"},
    "training": {"train": True},
}


def accuracy(found: TrialResult, shuffling: str) -> list[float]:
    return [row["accuracy"] for row in found.tables["epochs"] if row["shuffling"] == shuffling]


def test_training_takes_the_bytes_that_came(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where all that is decoded becomes zeros, the run fails, and its accuracy is another."""
    right = virtual_trial("shuffle", tmp_path, **TRAINED)
    finish = SampleReception._finish

    def zeroed(self: SampleReception, arriving: _Arriving) -> None:
        arriving.plain[:] = 0
        finish(self, arriving)

    monkeypatch.setattr(SampleReception, "_finish", zeroed)
    wrong = virtual_trial("shuffle", tmp_path, **TRAINED)
    assert right.failures == [] and any("are not the original ones" in line for line in wrong.failures)
    assert accuracy(right, "local") == accuracy(wrong, "local")
    assert accuracy(right, "global")[0] == accuracy(wrong, "global")[0]
    assert accuracy(right, "global")[1] != accuracy(wrong, "global")[1]
    assert accuracy(right, "global")[2] > accuracy(wrong, "global")[2] + 0.1


def test_training_takes_what_workers_hold_and_not_what_was_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = virtual_trial("shuffle", tmp_path, **TRAINED)
    keep = Store.keep
    monkeypatch.setattr(Store, "keep", lambda self, samples: keep(self, list(samples)[::3]))
    wrong = virtual_trial("shuffle", tmp_path, **TRAINED)
    assert any("does not hold" in line for line in wrong.failures)
    assert accuracy(right, "global")[1:] != accuracy(wrong, "global")[1:]


def test_training_takes_what_workers_need_for_the_epoch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each sample once in an epoch, whatever workers store besides."""
    trained: list[int] = []
    samples = training._samples

    def counted(table: np.ndarray) -> Samples:
        trained.append(len(table))
        return samples(table)

    monkeypatch.setattr(training, "_samples", counted)
    found = virtual_trial("shuffle", tmp_path, **TRAINED)
    assert found.failures == []
    epochs = 2 * 3  # global and local
    assert sum(trained) == epochs * 200 and len(trained) == epochs * 4


# ---- Bad input ----


@pytest.mark.parametrize(
    ("sections", "words"),
    [
        ({"shuffle": {"workers": 17}}, "17 workers need as many hosts, fat-tree:4 has 16"),
        ({"shuffle": {"scheduler": "coded-master", "workers": 16}}, "has 15 for them"),
        ({"shuffle": {"scheduler": "magic"}}, "unknown scheduler 'magic'"),
        ({"shuffle": {"bits": 8}}, "--bits: 16 workers do not fit bit strings of 8 bits"),
        ({"shuffle": {"bits": 256, "fragment_bytes": 1400}}, "fragment_bytes"),
        ({"samples": {"storage": 0.01}}, "a worker stores between 1/16 and 1 of all samples, got 0.01"),
        ({"samples": {"samples": 5000}}, "the digits data set has 1438 training samples, not 5000"),
        ({"samples": {"data": "synthetic", "spread_bytes": 1000}}, "the spread of their sizes must be less"),
        ({"shuffle": {"plan_only": True}, "training": {"train": True}}, "--train: with --plan-only"),
        ({"samples": {"data": "synthetic"}, "training": {"train": True}}, "--train: there is nothing to learn"),
    ],
)
def test_bad_input_is_told_before_anything_runs(sections: dict[str, object], words: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError if words == "fragment_bytes" else UserError, match=words):
        virtual_trial("shuffle", tmp_path, **sections)


# ---- What the numbers of a run are held to ----


def changed_row(patch: pytest.MonkeyPatch, **changes: Any) -> None:
    row = ShuffleTrial._row
    patch.setattr(
        ShuffleTrial,
        "_row",
        lambda *arguments: {
            name: changes[name](value) if name in changes else value for name, value in row(*arguments).items()
        },
    )


@pytest.mark.commit_cases(3)
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"hops": lambda value: 1000}, "of unicast from the nearest holder"),
        ({"samples_per_packet": lambda value: value / 2}, "samples in each of"),
        ({"mean_wait_s": lambda value: 1.0}, "the mean wait is"),
        ({"load_max_over_mean": lambda value: value / 10}, "the largest load is"),
        ({"byte_hops": lambda value: value // 2}, "packets of"),
        ({"repairs": lambda value: 3}, "nothing was lost, but"),
    ],
)
def test_a_metric_that_contradicts_the_shuffle_is_a_failure(
    changes: dict[str, Any], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed_row(monkeypatch, **changes)
    found = virtual_trial("shuffle", tmp_path, samples={"samples": 64})
    assert any(words in line for line in found.failures)


def test_a_shuffle_that_is_faster_than_its_links_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hundredth of the time is told."""
    whole = ShufflePhase.time_us.fget
    assert whole is not None
    monkeypatch.setattr(ShufflePhase, "time_us", property(lambda self: whole(self) // 100))
    found = virtual_trial("shuffle", tmp_path, samples={"samples": 64})
    assert any("the shuffle took" in line for line in found.failures)


@pytest.mark.parametrize("scheduler", ["improved", "unicast-nearest"])
def test_a_holder_that_is_not_the_nearest_is_a_failure(
    scheduler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is asked for, any holder sends."""
    module = "gradbed.controller.systems.shuffle.service.scheduler_named"
    named = service.scheduler_named
    monkeypatch.setattr(module, lambda name, *rest: _Named(scheduler, named("unicast-random", *rest)))
    found = virtual_trial("shuffle", tmp_path, samples={"samples": 64}, shuffle={"scheduler": scheduler})
    assert any("nearest holder" in line for line in found.failures)


class _Named:
    """A scheduler by another name."""

    def __init__(self, name: str, scheduler: Any) -> None:
        self.name, self._scheduler = name, scheduler

    def schedule(self, *arguments: Any) -> Any:
        return replace(self._scheduler.schedule(*arguments), scheduler=self.name)
