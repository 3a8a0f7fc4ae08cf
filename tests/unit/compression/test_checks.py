"""What a run asserts fails where something is wrong: nobody throws anything away, or makes anything up, unseen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from hosts.compressors.error_feedback import ErrorFeedback
from hosts.systems.compression.exchange import CompressedExchange
from hosts.systems.compression.held_back import HeldBack
from hosts.systems.compression.packets.gradient_message import GradientMessage
from hosts.systems.compression.rate.rate_adaptation import Decision, RateAdaptation
from hosts.systems.compression.summation import Summation
from tests.unit.compression.points import run

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
    assert len(found.failures) == 6 and all(LOST in line for line in found.failures[:5])


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
