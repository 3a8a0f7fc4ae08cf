"""A worker as its launcher sees it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gradbed.hosts.collectives import exchange as worker


def test_the_first_gradient_is_there_when_a_worker_says_that_it_is_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers that share processors would otherwise begin to send as far apart as their computations take."""
    said: list[Any] = []

    class Workload:
        def gradient(self, round_number: int) -> Any:
            said.append(f"gradient {round_number}")
            return np.full(4, round_number, np.int32)

        def apply(self, total: Any) -> None: ...

        def report(self) -> dict[str, Any]:
            return {}

    class Exchange:
        def all_reduce(self, round_number: int, values: Any) -> Any:
            said.append(("handed over", values.tolist()))
            return values

        def flush(self) -> None: ...

        linger = drain = flush

        def report(self) -> dict[str, Any]:
            return {}

    context: Any = SimpleNamespace(
        emit=lambda event, **fields: said.append(event),
        wait_for_begin=lambda: True,
        compute=lambda work: work(),
        now_us=lambda: 0,
    )
    job: Any = SimpleNamespace(workload=SimpleNamespace(rounds=2), workers=[None])
    monkeypatch.setattr(worker, "workload", lambda *arguments: Workload())
    worker.Worker(job, 0, Exchange(), context).run()
    assert said[:3] == ["gradient 0", "ready", ("handed over", [0] * 4)]
    assert said[3:6] == ["round", "gradient 1", ("handed over", [1] * 4)]
