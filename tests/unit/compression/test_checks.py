"""What a run asserts fails where something is wrong: nobody throws anything away, or makes anything up, unseen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gradbed.experiments.systems.compression import trial
from gradbed.hosts.compressors import methods
from gradbed.hosts.compressors.error_feedback import ErrorFeedback
from gradbed.hosts.compressors.methods import Qsgd
from gradbed.hosts.learning.trainer import Replica, Shard
from gradbed.hosts.learning.workload import TrainingWorkload
from gradbed.hosts.systems.compression.exchange import CompressedExchange
from gradbed.hosts.systems.compression.gradients import HeldBack
from gradbed.hosts.systems.compression.rate import Decision, Pace, RateAdaptation
from gradbed.hosts.systems.compression.server import Summation
from gradbed.hosts.systems.compression.transport import GradientMessage
from tests.unit.compression.trials import run

SMALL: dict[str, Any] = {
    "topology": {"kind": "star:4"},
    "workload": {"kind": "training", "workers": 3, "rounds": 2, "hidden_units": 16},
}
LOST = "what was sent and what is held back are not all gradients"


def changed(method: Callable[..., Any], change: Callable[[Any], Any]) -> Callable[..., Any]:
    """The method with another first argument."""
    return lambda self, first, *rest: method(self, change(first), *rest)


def half(gradient: Any) -> Any:
    kept = gradient.copy()
    kept[::2] = 0
    return kept


@pytest.mark.parametrize("compression", [{}, {"error_feedback": False}, {"momentum": 0.5, "compress": "topk:0.1"}])
@pytest.mark.parametrize("owner", [ErrorFeedback, HeldBack, CompressedExchange])
def test_a_worker_that_throws_half_of_every_gradient_away_is_found_out(
    owner: type, compression: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    if owner is CompressedExchange:
        method = CompressedExchange.all_reduce
        altered = lambda self, number, values: method(self, number, half(values))  # noqa: E731
        monkeypatch.setattr(CompressedExchange, "all_reduce", altered)
    else:
        monkeypatch.setattr(owner, "take", changed(owner.take, half))  # type: ignore[attr-defined]
    found = run(compression=compression, **SMALL)
    assert len(found.failures) >= 6 and all(LOST in line for line in found.failures[:5])


def test_a_worker_that_forgets_what_it_holds_back_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        ErrorFeedback, "take", lambda self, gradient: self.held.__setitem__(slice(None), gradient.copy())
    )
    found = run(compression={"compress": "topk:0.1"}, **SMALL)
    assert [line.split(":")[0] for line in found.failures] == [f"round 2, worker {index}" for index in range(3)]


def test_a_sum_that_no_trainer_gets_as_the_server_made_it_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """All workers agree with each other."""
    method: Any = CompressedExchange.all_reduce
    monkeypatch.setattr(
        CompressedExchange, "all_reduce", lambda self, number, values: method(self, number, values) // 2
    )
    assert "the sum that came is not the server's" in run(**SMALL).failures[0]


def test_a_server_that_leaves_a_worker_out_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def forgetful(self: Summation, worker: int, gradient: Any, *, is_whole: bool = True) -> None:
        if worker == 1:
            gradient.values = np.zeros_like(gradient.values)
        method(self, worker, gradient, is_whole=is_whole)

    method = Summation.add
    monkeypatch.setattr(Summation, "add", forgetful)
    assert "the server's sum is not that of what it received" in run(**SMALL).failures[0]


def test_a_part_that_is_left_out_though_nothing_has_happened_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def first_half(self: RateAdaptation, finding: Any, message: Any, sent_bytes: int) -> Decision:
        return Decision(0.5, 1.0, 0.5)

    monkeypatch.setattr(RateAdaptation, "decide", first_half)
    workload = {"workers": 2, "rounds": 1, "values": 17_600}
    found = run(topology={"kind": "star:3"}, workload=workload)
    assert "a part was left out, though nothing has happened" in found.failures[0]
    loss = {"kind": "star:3", "link": {"loss": 0.001}}
    assert run(topology=loss, workload=workload).failures == []


def test_a_switch_that_counts_otherwise_than_workers_send_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    method = GradientMessage._planned
    monkeypatch.setattr(GradientMessage, "_planned", lambda self, made: method(self, made) - 1)
    (failure,) = run(**SMALL).failures
    assert "B of gradients, switch s1 counted" in failure


# ---- What the numbers of a run are held to ----


def test_the_smallest_values_in_place_of_the_largest_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    largest = methods.top_k
    monkeypatch.setattr(
        methods, "top_k", lambda values, k: np.setdiff1d(np.arange(len(values)), largest(values, len(values) - k))
    )
    found = run(compression={"compress": "topk:0.1"}, **SMALL)
    assert any("was sent, and one of" in line and "is held back" in line for line in found.failures)


@pytest.mark.parametrize(
    ("owner", "name", "words"),
    [("TopK", "topk:0.1", "values were sent"), ("RandomK", "randomk:0.1", "values were sent")],
)
def test_more_values_than_asked_for_are_found_out(
    owner: str, name: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = getattr(methods, owner).kept
    monkeypatch.setattr(getattr(methods, owner), "kept", lambda *arguments: 1 + kept(*arguments))
    found = run(compression={"compress": name}, **SMALL)
    assert any(words in line for line in found.failures)


def test_a_quantisation_that_is_coarser_than_its_bits_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    class Coarse(Qsgd):
        def compress(self, gradient: Any, round_number: int) -> Any:
            found = super().compress(gradient, round_number)
            return replace(found, codes=found.codes // 4, unit=4 * found.unit)

    monkeypatch.setitem(methods._MAKE, "quantise", lambda bits, setting: Coarse(8, setting.seed, setting.worker))
    found = run(compression={"compress": "quantise:8"}, **SMALL)
    assert any("an error of" in line for line in found.failures)


@pytest.mark.parametrize("change", ["doubled step", "other minibatches", "a gradient of the wrong sign"])
def test_a_training_that_is_not_that_of_a_single_process_is_found_out(
    change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if change == "doubled step":
        apply = Replica.apply
        monkeypatch.setattr(Replica, "apply", lambda self, total: apply(self, 2 * total))
    elif change == "other minibatches":
        minibatch = Shard.minibatch
        monkeypatch.setattr(Shard, "minibatch", lambda self, number: minibatch(self, number + 1))
    else:
        contribution = Replica.contribution

        def turned(self: Replica, samples: Any) -> Any:
            found = contribution(self, samples)
            return replace(found, values=-found.values)

        monkeypatch.setattr(Replica, "contribution", turned)
    found = run(**SMALL)
    assert any("a single process has" in line for line in found.failures)


def test_weights_that_differ_in_their_last_bits_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """All workers take the same sum, which is larger by one than it was sent in its first value."""
    apply = TrainingWorkload.apply

    def off_by_one(self: TrainingWorkload, total: Any) -> None:
        apply(self, total + (np.arange(len(total)) == 0))

    monkeypatch.setattr(TrainingWorkload, "apply", off_by_one)
    found = run(**SMALL)
    assert any("its weights are not those of a single process" in line for line in found.failures)


@pytest.mark.thorough
def test_twice_the_pace_is_found_out_by_the_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    sections: dict[str, Any] = {"topology": {"kind": "star:5", "link": {"rate_mbps": 100, "queue_packets": 1000}}}
    workload = {"workers": 4, "rounds": 2, "values": 40_000}
    assert run(workload=workload, **sections).failures == []
    begin = Pace.begin

    def twice(self: Pace, now_us: int) -> None:
        self._even_bps = 2 * (self._link_bps // len(self._job.workers))
        begin(self, now_us)

    monkeypatch.setattr(Pace, "begin", twice)
    found = run(workload=workload, **sections)
    assert any("packets waited for the server's link" in line for line in found.failures)


@pytest.mark.parametrize(
    ("name", "factor", "words"),
    [
        ("iteration_time_s", 0.5, "the median iteration is told"),
        ("longest_iteration_s", 0.9, "the longest iteration is told"),
        ("server_bytes", 0.5, "the server's link carried"),
    ],
)
def test_a_metric_that_its_rounds_contradict_is_found_out(
    name: str, factor: float, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = trial.metrics
    monkeypatch.setattr(
        trial, "metrics", lambda *arguments: {**told(*arguments), name: factor * told(*arguments)[name]}
    )
    found = run(topology={"kind": "star:3"}, workload={"workers": 2, "rounds": 2, "values": 5000})
    assert any(words in line for line in found.failures)


def test_rounds_that_are_faster_than_the_servers_link_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = trial.round_rows
    shorter = {"iteration_time_s": 0.4, "sending_time_s": 0.4}
    monkeypatch.setattr(
        trial,
        "round_rows",
        lambda phase: [{**row, **{name: part * row[name] for name, part in shorter.items()}} for row in rows(phase)],
    )
    found = run(topology={"kind": "star:3"}, workload={"workers": 2, "rounds": 1, "values": 50_000})
    assert any("less than gradients take on the server's link" in line for line in found.failures)
