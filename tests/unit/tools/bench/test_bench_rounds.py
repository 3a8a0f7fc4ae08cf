"""What a round of gradients costs: how the bench counts."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tools.bench import rounds
from tools.bench.rounds import ROOT, run_bench_rounds, shares

SENDER = (str(ROOT / "hosts/sender.py"), 1, "send")
SERVER = (str(ROOT / "hosts/server.py"), 1, "serve")
WRAPPER = (str(ROOT / ".venv/lib/site-packages/numpy/wrapper.py"), 1, "all")
REDUCE = ("~", 0, "reduce")


def test_what_libraries_take_is_their_callers() -> None:
    called: dict[Any, Any] = {
        # calls, primitive calls, own time, cumulative time, callers
        SENDER: (1, 1, 1.0, 5.5, {}),
        SERVER: (1, 1, 2.0, 3.5, {}),
        WRAPPER: (2, 2, 2.0, 4.0, {SENDER: (1, 1, 1.5, 3.0), SERVER: (1, 1, 0.5, 1.0)}),
        REDUCE: (3, 3, 5.0, 5.0, {WRAPPER: (2, 2, 4.0, 4.0), SENDER: (1, 1, 1.0, 1.0)}),
    }
    found = dict(shares(SimpleNamespace(stats=called)))  # type: ignore[arg-type]
    # Of reduce 4/5 are the wrapper's, 3/4 of which are the sender's.
    assert found == pytest.approx({"hosts/sender.py": (1 + 1.5 + 4) / 10, "hosts/server.py": (2 + 0.5 + 1) / 10})


def test_functions_that_call_each_other_in_circles_are_the_rest() -> None:
    one, two = (("library.py", line, "f") for line in (1, 2))
    called = {one: (1, 1, 1.0, 2.0, {two: (1, 1, 1.0, 1.0)}), two: (1, 1, 1.0, 2.0, {one: (1, 1, 1.0, 1.0)})}
    assert dict(shares(SimpleNamespace(stats=called))) == {"the rest": 1.0}  # type: ignore[arg-type]


@pytest.mark.parametrize(("round_s", "status"), [(1.9, 0), (2.0, 1)])
def test_the_goal_decides(round_s: float, status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "processor_s", lambda rounds: 3.0 + rounds * round_s)
    monkeypatch.setattr(rounds, "parts", lambda rounds: [("hosts/sender.py", 1.0)])
    assert run_bench_rounds(1) == status
