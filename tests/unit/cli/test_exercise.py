"""gradbed exercise: from the start to all checks passed, as a student types it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from gradbed.cli.commands.exercise import EXERCISES
from gradbed.common.modules import command_from
from tests.conftest import GradbedHere

SOLUTION = EXERCISES / "forward" / "solution" / "forward.p4"


def test_from_start_to_passed(gradbed_here: GradbedHere, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said = gradbed_here("exercise", "list")
    assert "forward" in said.out and "begun" not in said.out and "passed" not in said.out
    assert gradbed_here("exercise", "start", "forward").out == "made forward/: cd forward, then read README.md\n"
    assert {file.name for file in Path("forward").iterdir()} == {
        "README.md",
        "forward.p4",
        "entries.yaml",
        ".exercise.json",
    }, "the checks and the solution are not in the student's folder"
    assert "Forward packets: begun (forward/)" in gradbed_here("exercise", "list").out
    failed = gradbed_here("exercise", "check", "forward")
    assert failed.status == 1 and "nothing left by port 2" in failed.out and "decided" in failed.out
    assert f"A hint: {command_from(tmp_path)} exercise hint forward\n" in failed.out
    monkeypatch.chdir("forward")
    failed_here = gradbed_here("exercise", "check")
    assert failed_here.status == 1 and f"A hint: {command_from(tmp_path)} exercise hint\n" in failed_here.out
    shutil.copy(SOLUTION, ".")
    passed = gradbed_here("exercise", "check")
    assert passed.status == 0 and "FAILED" not in passed.out and "All checks passed." in passed.out
    assert "Forward packets: passed\n" in gradbed_here("exercise", "list").out
    program = Path("forward.p4")
    program.write_text(program.read_text() + "\n")
    assert "Forward packets: changed since it passed\n" in gradbed_here("exercise", "list").out


def test_a_solution_that_p4c_would_refuse_passes_with_a_warning(gradbed_here: GradbedHere, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    gradbed_here("exercise", "solution", "forward", str(folder))
    assert "warning" not in gradbed_here("exercise", "check", str(folder)).out
    line = "        std.egress_spec = port;\n"
    text = (folder / "forward.p4").read_text()
    assert text.count(line) == 1
    (folder / "forward.p4").write_text(
        text.replace(line, f"{line}        if (port == 500) {{ mark_to_drop(std); }}\n")
    )
    said = gradbed_here("exercise", "check", str(folder))
    assert said.status == 0 and "All checks passed." in said.out
    assert "p4c's back end for BMv2 takes only assignments under a condition" in said.out
    assert "forward.p4:61:28: warning" in said.out


def test_hints_come_one_by_one(gradbed_here: GradbedHere, tmp_path: Path) -> None:
    folder = str(tmp_path / "mine")
    gradbed_here("exercise", "start", "forward", folder)
    assert "you have had no hint yet" in gradbed_here("exercise", "hint", folder, "--again").err
    first, second = (gradbed_here("exercise", "hint", folder).out for _ in range(2))
    assert first.startswith("Hint 1 of 3\n") and second.startswith("Hint 2 of 3\n")
    gradbed_here("exercise", "hint", folder)
    end = gradbed_here("exercise", "hint", folder)
    assert end.status == 2 and "these were all 3 hints" in end.err and end.err.count("\n") == 1
    assert gradbed_here("exercise", "hint", folder, "--again").out.startswith(first + second)


def test_the_solution_is_printed_or_made(gradbed_here: GradbedHere, tmp_path: Path) -> None:
    assert gradbed_here("exercise", "solution", "forward").out == SOLUTION.read_text()
    assert gradbed_here("exercise", "solution", "firewall").out.startswith("==> entries.yaml <==\n")
    gradbed_here("exercise", "solution", "forward", str(tmp_path / "whole"))
    assert (tmp_path / "whole" / "forward.p4").read_text() == SOLUTION.read_text()
    assert (tmp_path / "whole" / "entries.yaml").is_file()


def test_a_folder_without_record_is_known_by_its_program(gradbed_here: GradbedHere, tmp_path: Path) -> None:
    (tmp_path / "forward.p4").write_text("#include <core.p4>\nno program\n")
    broken = gradbed_here("exercise", "check", str(tmp_path))
    assert broken.status == 1 and "FAILED  it compiles: forward.p4:3:" in broken.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["start", "forwrad"], "there is no exercise 'forwrad'; did you mean 'forward'?"),
        (["start", "forward", "there"], "there is there already: choose another name"),
        (["start", "forward", "file/below"], "cannot make file/below: "),
        (["check", "nowhere"], "there is no folder nowhere: GRADBED exercise start NAME makes one"),
        (
            ["check", "there"],
            "there has no exercise's program: GRADBED exercise start NAME makes a folder with one",
        ),
        (["check", "two"], "two has programs of forward and count: keep each in a folder of its own"),
        (["hint", "lost"], "lost has no forward.p4"),
        (["solution", "nothing"], "there is no exercise 'nothing'; there are: forward, count, "),
    ],
)
def test_what_cannot_be_done_is_one_line(
    arguments: list[str], message: str, gradbed_here: GradbedHere, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("there", "two", "lost"):
        Path(folder).mkdir()
    Path("file").touch()
    Path("two/forward.p4").touch()
    Path("two/count.p4").touch()
    Path("lost/.exercise.json").write_text('{"exercise": "forward"}')
    ended = gradbed_here("exercise", *arguments)
    message = message.replace("GRADBED", command_from(tmp_path))
    assert ended.status == 2 and message in ended.err and ended.err.count("\n") == 1
