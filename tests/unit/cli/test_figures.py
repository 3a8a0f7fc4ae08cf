"""gradbed figures as a command: which studies it runs, and its exit status."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import experiments.study.make_figures
from experiments.study.command import RunOptions
from tests.conftest import GradbedHere


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, Any]]]:
    """The studies that were to run, in place of running them; the second one fails its checks."""
    calls: list[tuple[str, dict[str, Any]]] = []

    def run_study_file(path: Path, options: RunOptions, **more: Any) -> int:
        calls.append((path.stem, {**vars(options), **more}))
        return 1 if len(calls) == 2 else 0

    monkeypatch.setattr(experiments.study.make_figures, "run_study_file", run_study_file)
    return calls


def test_some_figures(gradbed_here: GradbedHere, asked: list[tuple[str, dict[str, Any]]]) -> None:
    assert gradbed_here("figures", "aggregation", "--only", "7,3", "--quick", "--scale", "0.5").status == 1
    assert [stem for stem, _ in asked] == ["aggregation_7_accuracy", "aggregation_3_loss"]
    assert {(options["quick"], options["resume"], options["factor"]) for _, options in asked} == {(True, False, 0.5)}


def test_all_figures_go_on_after_one_that_failed(
    gradbed_here: GradbedHere, asked: list[tuple[str, dict[str, Any]]]
) -> None:
    assert gradbed_here("figures", "aggregation", "--resume").status == 1
    assert len(asked) == 7
    assert all(options["resume"] for _, options in asked)


def test_an_interruption_ends_all(gradbed_here: GradbedHere, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Path] = []

    def run_study_file(path: Path, options: RunOptions, **more: Any) -> int:
        calls.append(path)
        return 130

    monkeypatch.setattr(experiments.study.make_figures, "run_study_file", run_study_file)
    assert gradbed_here("figures", "aggregation").status == 130
    assert len(calls) == 1
