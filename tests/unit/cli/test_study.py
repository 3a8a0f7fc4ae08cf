"""gradbed run STUDY.yaml as a command: what it prints, and its exit status."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from gradbed.experiments.study import command
from gradbed.experiments.study.running import runner
from tests.conftest import GradbedHere
from tests.unit.experiments.study import coin  # registers the system

STUDY = """
name: tosses
system: coins
sweep: {product: {coins.count: [2, 4]}}
metrics: [heads, limit]
figures: {heads: {x: coins.count, y: heads, bound: limit}}
quick: {sweep.product: {coins.count: [3]}}
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No calibration, and trials that run in this process, whoever's it is."""
    monkeypatch.setenv("GRADBED_CALIBRATION", str(tmp_path / "none"))
    monkeypatch.setattr(runner, "open_executor", coin.in_this_process)
    monkeypatch.setattr(command, "os", SimpleNamespace(geteuid=lambda: 0))


def write(tmp_path: Path, text: str = STUDY) -> str:
    path = tmp_path / "study.yaml"
    path.write_text(text)
    return str(path)


def test_a_study_ends_with_a_table_and_figures(tmp_path: Path, gradbed_here: GradbedHere) -> None:
    said = gradbed_here("run", write(tmp_path), "--output", str(tmp_path))
    assert said.status == 0
    assert "verdict: 2 valid" in said.out
    assert "heads.svg" in said.out
    assert "not calibrated" in said.err
    assert "[2/2] count=4, seed 1" in said.err


def test_options_may_stand_before_the_file(tmp_path: Path, gradbed_here: GradbedHere) -> None:
    arguments = ["--quick", "--scale", "0.5", write(tmp_path), "--output", str(tmp_path)]
    said = gradbed_here("run", *arguments)
    assert said.status == 0
    assert "[1/1] count=3, seed 1" in said.err
    assert "calibrated" not in said.err


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            STUDY.replace("[2, 4]", "[0]"),
            "study.yaml:4: coins.count: must be at least 1, got 0",
        ),
        (STUDY + "coin: {}", "study.yaml:8: a study has no section 'coin'; did you mean 'coins'?"),
    ],
)
def test_a_wrong_study_is_one_line_and_status_2(
    tmp_path: Path, gradbed_here: GradbedHere, text: str, line: str
) -> None:
    said = gradbed_here("run", write(tmp_path, text), "--output", str(tmp_path))
    assert (said.status, said.err) == (2, f"{tmp_path}/{line}\n")
    assert not (tmp_path / "tosses").exists()


@pytest.mark.parametrize(
    ("ends", "status", "word"),
    [
        ("edge", 1, "FAILED: count=4, seed 1: a coin stands on its edge"),
        ("stuck", 1, "BROKEN: count=2, seed 1: no answer for 2 s (--resume tries it again)"),
        ("interrupt", 130, "0 of 2 trials are done; --resume goes on"),
    ],
)
def test_how_a_study_can_end(tmp_path: Path, gradbed_here: GradbedHere, ends: str, status: int, word: str) -> None:
    file = write(tmp_path, f"{STUDY}coins: {{ends: {ends}}}")
    said = gradbed_here("run", file, "--output", str(tmp_path))
    assert said.status == status and word in said.out


def test_a_study_that_misses_a_goal_fails(tmp_path: Path, gradbed_here: GradbedHere) -> None:
    """With this seed one coin of two shows its head, and two of four."""
    text = (
        f"{STUDY}goals: {{many: {{metric: heads, at_least: 2}}, half: {{metric: heads, over: limit, at_most: 0.5}}}}"
    )
    said = gradbed_here("run", write(tmp_path, text), "--output", str(tmp_path))
    assert said.status == 1
    assert [line for line in said.out.splitlines() if line.startswith("FAILED")] == [
        "FAILED: goal many, count=2: 1, at least 2: missed",
    ]
    assert said.out.count("met") == 3 and coin.CoinSystem.report.assurance not in said.out
    said = gradbed_here("run", write(tmp_path, text.replace("at_least: 2", "at_least: 1")), "--output", str(tmp_path))
    assert said.status == 0 and coin.CoinSystem.report.assurance in said.out


def test_a_figure_whose_points_cross_its_bound_is_refused(tmp_path: Path, gradbed_here: GradbedHere) -> None:
    """With this seed one coin of two shows its head, and two of four."""
    crossed = "crossed: {x: coins.count, y: limit, bound: heads}"
    text = STUDY.replace("figures: {", f"figures: {{{crossed}, ")
    said = gradbed_here("run", write(tmp_path, text), "--output", str(tmp_path))
    assert said.status == 1
    assert [line for line in said.out.splitlines() if line.startswith("FAILED")] == [
        "FAILED: no figure crossed: count=2, seed 1: limit is 2, above its bound (heads), 1",
        "FAILED: no figure crossed: count=4, seed 1: limit is 4, above its bound (heads), 2",
    ]
    assert "heads.svg" in said.out and "crossed.svg" not in said.out and "data of figures" not in said.out
    assert coin.CoinSystem.report.assurance not in said.out
    (folder,) = (path for path in (tmp_path / "tosses").iterdir() if not path.is_symlink())
    assert {path.stem for path in folder.glob("*.svg")} == {"heads"} and not (folder / "data").exists()


def test_the_same_trouble_everywhere_is_one_line_and_status_2(tmp_path: Path, gradbed_here: GradbedHere) -> None:
    file = write(tmp_path, f"{STUDY}coins: {{ends: broken}}")
    said = gradbed_here("run", file, "--output", str(tmp_path))
    assert said.status == 2
    assert said.out == ""
    assert said.err.splitlines()[-1] == "gradbed: count=4, seed 1: RuntimeError: the coin rolled away"
    assert "Traceback" not in said.err


def test_a_system_is_a_command_that_runs_one_trial(tmp_path: Path, gradbed_here: GradbedHere) -> None:
    arguments = ("run", "coins", "--output", str(tmp_path))
    said = gradbed_here(*arguments, "--count", "4", "--bias", "1")
    assert said.status == 0 and "4 heads" in said.out
    (folder,) = (path for path in (tmp_path / "coins").iterdir() if not path.is_symlink())
    assert {"study.json", "trials.csv", "throws.csv", "environment.json"} <= {path.name for path in folder.iterdir()}
    said = gradbed_here(*arguments, "--ends", "edge")
    assert said.status == 1 and "FAILED: a coin stands on its edge" in said.out
    for wrong, line in (
        (["--ends", "broken"], "RuntimeError: the coin rolled away"),
        (["--count", "13"], "thirteen coins bring bad luck"),
        (["--count", "0"], "--count: must be at least 1, got 0"),
    ):
        said = gradbed_here(*arguments, "--scale", "1", *wrong)
        assert (said.status, said.err) == (2, f"gradbed: {line}\n")
