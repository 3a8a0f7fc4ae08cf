"""Which of the program's sources a trial depends on."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradbed.experiments.study.running import digest as module
from gradbed.experiments.study.running.digest import NOT_PART, ROOT, source_digest

PART = (
    "hosts/agents/worker.py",
    "switch/runtime/trace.c",
    "p4src/forward.p4",
    "experiments/study/running/worker.py",
)


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small tree in place of this one."""
    for name in (*PART, "experiments/plotting/style.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("first\n")
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "_outside", lambda system: [])
    return tmp_path


def digest() -> str:
    return source_digest.__wrapped__("aggregation")


@pytest.mark.parametrize("name", PART)
def test_what_a_trial_runs_is_part_of_it(tree: Path, name: str) -> None:
    before = digest()
    assert digest() == before
    (tree / name).write_text("second\n")
    assert digest() != before
    (tree / name).write_text("first\n")
    assert digest() == before
    (tree / name).rename((tree / name).with_stem("other"))
    assert digest() != before


@pytest.mark.parametrize(
    "name",
    [
        "experiments/plotting/style.py",
        "experiments/systems/aggregation/figures.py",
        "hosts/notes.md",
        "docs/hosts.py",
    ],
)
def test_what_draws_or_explains_it_is_not(tree: Path, name: str) -> None:
    before = digest()
    (tree / name).parent.mkdir(parents=True, exist_ok=True)
    (tree / name).write_text("second\n")
    assert digest() == before


def test_what_is_left_out_is_there() -> None:
    for name in NOT_PART:
        assert (ROOT / name).exists(), name
