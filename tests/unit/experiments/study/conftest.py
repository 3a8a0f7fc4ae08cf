"""Studies of coins run in this process, one after the other in the same folder."""

from __future__ import annotations

import pytest

from gradbed.experiments.results import run_folder
from gradbed.experiments.study.running import runner
from tests.unit.experiments.study.coin import in_this_process


@pytest.fixture(autouse=True)
def trials_run_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "open_executor", in_this_process)
    # The lock would be held until this process ends.
    monkeypatch.setattr(run_folder, "_locked", lambda path: None)
