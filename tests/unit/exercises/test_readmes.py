"""Commands of READMEs can be typed in the exercise's folder; tests/unit/test_documented_sessions.py runs them."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
import typer.main

from gradbed.cli.commands.exercise import EXERCISES
from gradbed.cli.main import app
from gradbed.common.modules import PACKAGE, command_from
from gradbed.experiments.exercises.exercise import Exercise, exercises
from tests.unit.documented_sessions import in_readme

KNOWN = exercises(EXERCISES)
READ = (".p4", ".yaml")
"""Suffixes of files that commands read."""


@pytest.mark.parametrize("exercise", KNOWN.values(), ids=lambda each: each.name)
def test_commands_resolve_from_the_folder(
    exercise: Exercise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "my work" / exercise.name
    exercise.start(folder)
    monkeypatch.chdir(folder)
    commands = [shlex.split(line.command) for line in in_readme(folder / "README.md")]
    ours = [words for words in commands if words[0] != "cat"]
    for words in ours:
        assert Path(words[0]).resolve() == PACKAGE / "gradbed"
        for word in words[1:]:
            assert not word.endswith(READ) or Path(word).is_file(), word
        parse(words[1:])
    assert ["exercise", "check"] in [words[1:] for words in ours]
    assert ["exercise", "hint"] in [words[1:] for words in ours]
    assert len(ours) > 2, "and one that runs the program"
    for words in commands:
        if words[0] == "cat":  # of what a run leaves in this folder
            assert words[1].startswith("results/workload/latest/"), words
            assert any(others[1:3] == ["run", "workload"] for others in ours)


def parse(arguments: list[str]) -> None:
    """Parse a command line without running it; raise typer's error if the command or an option does not exist."""
    command = typer.main.get_command(app)
    context = command.make_context("gradbed", list(arguments))
    while hasattr(command, "resolve_command"):
        name, command, rest = command.resolve_command(context, [*context._protected_args, *context.args])
        assert command is not None
        context = command.make_context(name, rest, parent=context)


def test_how_the_command_line_is_called_from_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert command_from(PACKAGE) == "./gradbed"
    assert command_from(PACKAGE / "work" / "forward") == "../../gradbed"
    assert command_from(tmp_path) == shlex.quote(str(PACKAGE / "gradbed"))
    monkeypatch.setattr("gradbed.common.modules.INSTALLED", True)
    monkeypatch.setattr("gradbed.common.modules.COMMAND", "gradbed")
    assert command_from(tmp_path) == "gradbed"
