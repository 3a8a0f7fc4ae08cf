"""Random trainings with random faults and mistakes: no run may close with its sentence over a wrong result.

What is right is said here, by NumPy, of what trainers handed over and got back; of the project only what workers hold
back in the end is looked at.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st
from numpy.typing import NDArray

from gradbed.common.errors import UserError
from gradbed.experiments.phases import TrialResult
from gradbed.hosts.compressors.error_feedback import ErrorFeedback
from gradbed.hosts.learning.workload import SyntheticWorkload
from gradbed.hosts.systems.compression import gradients
from gradbed.hosts.systems.compression.exchange import CompressedExchange
from gradbed.hosts.systems.compression.gradients import HeldBack
from gradbed.hosts.systems.compression.server import Summation
from gradbed.hosts.systems.compression.transport import GradientMessage
from tests.unit.compression.trials import run
from tests.unit.random_runs import Mistake, Outcome, RandomRuns

COMPRESSORS = ["none", "topk:0.1", "randomk:0.1", "threshold:3", "quantise:8", "quantise:4", "sign", "powersgd:2"]
UNCUT = ("sign", "powersgd:2")

Vector = NDArray[np.int64]


# ---- What is drawn ----


@st.composite
def faults(draw: st.DrawFn, workers: int) -> list[dict[str, Any]]:
    link = ["h1" if draw(st.booleans()) else f"h{draw(st.integers(2, workers + 1))}", "s1"]
    at_ms, kind = draw(st.integers(0, 40)) / 10, draw(st.sampled_from(["rate", "loss", "down", "stop"]))
    if kind == "stop":
        return [{"fault": "agent-stop", "agent": f"worker {draw(st.integers(0, workers - 1))}", "at_ms": at_ms}]
    if kind == "down":
        times = (("link-down", at_ms), ("link-up", at_ms + draw(st.integers(1, 20))))
        return [{"fault": fault, "link": link, "at_ms": when} for fault, when in times]
    change = {"rate_mbps": draw(st.sampled_from([5, 25, 50]))} if kind == "rate" else {"loss": 0.1}
    return [{"fault": "link-change", "link": link, "change": change, "at_ms": at_ms}]


@st.composite
def configurations(draw: st.DrawFn) -> dict[str, Any]:
    workers, compress = draw(st.integers(1, 5)), draw(st.sampled_from(COMPRESSORS))
    rules = ["none"] if compress in UNCUT else ["none", "corrected", "corrected", "source"]
    trouble = draw(st.sampled_from([{}, {}, {"loss": 0.03}, {"duplicate": 0.05}, {"queue_packets": 4}]))
    return {
        "topology": {"kind": f"star:{workers + 1}", "link": trouble},
        "compression": {
            "compress": compress,
            "error_feedback": draw(st.booleans()),
            "momentum": draw(st.sampled_from([0.0, 0.0, 0.5])),
        },
        "ratio": {"rule": draw(st.sampled_from(rules)), "interval_us": draw(st.sampled_from([500, 1000, 5000]))},
        "transport": {
            "pacing": draw(st.sampled_from(["none", "even", "active", "aimd"])),
            "left_after_us": 100_000,
            "give_up_us": 2_000_000,
        },
        "workload": {
            "workers": workers,
            "rounds": draw(st.integers(1, 3)),
            "values": draw(st.sampled_from([1, 300, 2000, 9000])),
        },
        "faults": draw(st.sampled_from([[], draw(faults(workers))])),
    }


# ---- Mistakes ----


def throw_half_away(patch: pytest.MonkeyPatch) -> None:
    take = ErrorFeedback.take
    patch.setattr(ErrorFeedback, "take", lambda self, gradient: take(self, gradient // 2))


def forget_what_is_held_back(patch: pytest.MonkeyPatch) -> None:
    take = HeldBack.take

    def forgetful(self: HeldBack, gradient: Any, number: int) -> Any:
        self._feedback.held[:] = 0
        return take(self, gradient, number)

    patch.setattr(HeldBack, "take", forgetful)


def take_more_off_than_was_sent(patch: pytest.MonkeyPatch) -> None:
    sent = ErrorFeedback.sent
    patch.setattr(ErrorFeedback, "sent", lambda self, places, values: sent(self, places, 2 * values))


def read_a_place_too_far(patch: pytest.MonkeyPatch) -> None:
    read = gradients.read

    def wrong(*arguments: Any) -> Any:
        found = read(*arguments)
        return found and (found[0], np.roll(found[1], 1))

    patch.setattr(gradients, "read", wrong)


def leave_a_worker_out(patch: pytest.MonkeyPatch) -> None:
    add = Summation.add

    def partial(self: Summation, worker: int, gradient: Any, *, is_whole: bool = True) -> None:
        gradient.values = gradient.values * (worker != 0)
        add(self, worker, gradient, is_whole=is_whole)

    patch.setattr(Summation, "add", partial)


def give_back_the_half(patch: pytest.MonkeyPatch) -> None:
    all_reduce: Any = CompressedExchange.all_reduce

    def wrong(self: CompressedExchange, number: int, values: Any) -> Any:
        total = all_reduce(self, number, values)
        return total if total is None else total // 2

    patch.setattr(CompressedExchange, "all_reduce", wrong)


def forget_what_was_cut(patch: pytest.MonkeyPatch) -> None:
    """What was left out counts as sent."""
    cut = GradientMessage.cut

    def wrong(self: GradientMessage, target_bytes: float) -> bool:
        rest = list(self._rest)
        done = cut(self, target_bytes)
        self.sent = lambda: iter([*self._sent, *rest]) if done else iter(rest)  # type: ignore[method-assign]
        return done

    patch.setattr(GradientMessage, "cut", wrong)


MISTAKES: list[Mistake] = [
    throw_half_away,
    forget_what_is_held_back,
    take_more_off_than_was_sent,
    read_a_place_too_far,
    leave_a_worker_out,
    give_back_the_half,
    forget_what_was_cut,
]


# ---- What is right ----


@dataclass
class Seen:
    """gradients: by worker and round. sums: of all rounds that a worker came through. held: by worker, in the end."""

    gradients: dict[tuple[int, int], Vector] = field(default_factory=dict)
    sums: dict[int, list[Vector]] = field(default_factory=dict)
    workers: dict[int, HeldBack] = field(default_factory=dict)

    def watch(self, patch: pytest.MonkeyPatch) -> None:
        gradient, apply, init = SyntheticWorkload.gradient, SyntheticWorkload.apply, HeldBack.__init__

        def seen_gradient(workload: SyntheticWorkload, number: int) -> NDArray[np.int32]:
            made = gradient(workload, number)
            self.gradients[workload._worker, number] = made.astype(np.int64)
            return made

        def seen_sum(workload: SyntheticWorkload, total: Vector) -> None:
            self.sums.setdefault(workload._worker, []).append(total.copy())
            apply(workload, total)

        def seen_worker(held_back: HeldBack, job: Any, index: int) -> None:
            init(held_back, job, index)
            self.workers[index] = held_back

        patch.setattr(SyntheticWorkload, "gradient", seen_gradient)
        patch.setattr(SyntheticWorkload, "apply", seen_sum)
        patch.setattr(HeldBack, "__init__", seen_worker)


def is_wrong(seen: Seen, configuration: dict[str, Any]) -> bool:
    """Whether trainers got what they should not have, as far as that follows from what they handed over."""
    workload, compression = configuration["workload"], configuration["compression"]
    rounds, workers = workload["rounds"], range(workload["workers"])
    whole = [sums for sums in seen.sums.values() if len(sums) == rounds]
    if any(not np.array_equal(one, other) for sums in whole for one, other in zip(sums, whole[0], strict=True)):
        return True
    if len(whole) < len(workers) or compression["momentum"]:
        return False  # of those who left nobody knows what came
    gradients = [sum(seen.gradients[worker, number] for worker in workers) for number in range(rounds)]
    if compression["error_feedback"]:
        held = sum(seen.workers[worker]._feedback.held.astype(np.int64) for worker in workers)
        if not np.array_equal(sum(whole[0]) + held, sum(gradients)):
            return True
    if configuration["ratio"]["rule"] != "none":
        return False
    expected = _expected(seen, configuration)
    return expected is not None and any(
        not np.array_equal(one, other) for one, other in zip(whole[0], expected, strict=True)
    )


def _expected(seen: Seen, configuration: dict[str, Any]) -> list[Vector] | None:
    """The sums of all rounds, of compressors that are a sentence of NumPy; None: of others."""
    compress, keeps = configuration["compression"]["compress"], configuration["compression"]["error_feedback"]
    workload = configuration["workload"]
    if compress not in ("none", "topk:0.1"):
        return None
    held = {worker: np.zeros(workload["values"], np.int64) for worker in range(workload["workers"])}
    sums = []
    for number in range(workload["rounds"]):
        total = np.zeros(workload["values"], np.int64)
        for worker, before in held.items():
            now = keeps * before + seen.gradients[worker, number]
            count = len(now) if compress == "none" else -(-len(now) // 10)
            places = np.argsort(-np.abs(now), kind="stable")[:count]
            total[places] += now[places]
            now[places] = 0
            held[worker] = now
        sums.append(total)
    return sums


Drawn = tuple[dict[str, Any], Mistake | None, int]
"""Configuration, mistake, seed."""


def check(drawn: Drawn) -> Outcome:
    """ "failed" where a result was wrong, and the run said so or had none."""
    configuration, mistake, seed = drawn
    seen = Seen()
    with pytest.MonkeyPatch.context() as patch:
        seen.watch(patch)
        if mistake is not None:
            mistake(patch)
        try:
            found: TrialResult | None = run(seed, **configuration)
        except UserError:
            found = None  # nobody was left, or nothing came through
    wrong = is_wrong(seen, configuration)
    assert found is None or found.failures or not wrong, "closes with its sentence over a wrong result"
    if mistake is None:
        assert not wrong
        nobody_is_left = not any(len(sums) == configuration["workload"]["rounds"] for sums in seen.sums.values())
        assert found is None or bool(found.failures) == nobody_is_left, found.failures
    return "failed" if wrong else "refused" if found is None else "right"


PLAIN: dict[str, Any] = {
    "topology": {"kind": "star:3"},
    "compression": {"compress": "topk:0.1", "error_feedback": True, "momentum": 0.0},
    "ratio": {"rule": "none"},
    "workload": {"workers": 2, "rounds": 2, "values": 300},
}
RUNS = RandomRuns(
    st.tuples(configurations(), st.sampled_from([None, None, *MISTAKES]), st.integers(1, 1000)),
    check,
    few=6,
    mistaken={mistake.__name__: (PLAIN, mistake, 1) for mistake in MISTAKES[:-1]},
)
