"""Which of the program's sources a trial depends on."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from gradbed.common import congestion_control
from gradbed.experiments.scale import Scale
from gradbed.experiments.study.definition import TrialSpec
from gradbed.experiments.study.running import digest as module
from gradbed.experiments.study.running.digest import NOT_PART, ROOT, source_digest
from gradbed.experiments.systems.training.configuration import TrainingConfiguration

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


# ---- Plug-ins ----


@pytest.fixture
def windows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The source of a congestion control of another package, `mine`; `other` is of a package that is one module."""
    package = tmp_path / "my_windows"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('its digest needs no import')\n")
    (package / "control.py").write_text("first\n")
    (tmp_path / "other_windows.py").write_text("first\n")
    controls = {"mine": "my_windows.control:Mine", "other": "other_windows:Other"}
    for place in (module, congestion_control):
        monkeypatch.setattr(place, "plugins", lambda group: controls if group == "congestion_controls" else {})
    monkeypatch.syspath_prepend(tmp_path)
    return package / "control.py"


def trial_digest(**sections: object) -> str:
    module.package_digest.cache_clear()
    configuration = TrainingConfiguration.model_validate(sections)
    return module.digest(module.identity("training", TrialSpec({}, 1, 1, configuration), Scale()))


def test_a_plugin_that_changed_is_another_trial(windows: Path) -> None:
    before = (
        trial_digest(transport={"congestion_control": "mine"}),
        trial_digest(transport={"congestion_control": "other"}),
    )
    windows.write_text("second\n")
    assert trial_digest(transport={"congestion_control": "mine"}) != before[0]
    assert trial_digest(transport={"congestion_control": "other"}) == before[1]
    (windows.parents[1] / "other_windows.py").write_text("second\n")
    assert trial_digest(transport={"congestion_control": "other"}) != before[1]


def test_a_plugin_that_is_gone_is_still_a_trial(windows: Path) -> None:
    """Which says so when it runs."""
    shutil.rmtree(windows.parent)
    assert trial_digest(transport={"congestion_control": "mine"})


def test_a_system_of_one_module_is_part_of_its_trials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "my_system.py"
    source.write_text("first = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(module, "systems", lambda: {"mine": "my_system:Mine"})
    before = source_digest.__wrapped__("mine")
    source.write_text("second = 1\n")
    assert source_digest.__wrapped__("mine") != before
