"""docs/tutorial.md to the letter: its changes are made, its commands run, and what they print is what it shows."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from gradbed.cli.main import app

TUTORIAL = Path(__file__).resolve().parents[2] / "docs" / "tutorial.md"
BLOCK = re.compile(r"^```(\w+) ?([^\n]*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
GRADBED = "./gradbed "


class Block(NamedTuple):
    """kind: console, diff, or the language of a file; about: the file, or how a command ends."""

    kind: str
    about: str
    text: str


def blocks() -> Iterator[Block]:
    for kind, about, text in BLOCK.findall(TUTORIAL.read_text()):
        yield Block(kind, about, text)


def change(file: Path, diff: str) -> None:
    """Lines without + were there, once; those without - are there afterwards."""
    lines = diff.splitlines(keepends=True)
    old = "".join(line[1:] for line in lines if not line.startswith("+"))
    new = "".join(line[1:] for line in lines if not line.startswith("-"))
    text = file.read_text()
    assert text.count(old) == 1, f"{file}: {text.count(old)} places look like\n{old}"
    file.write_text(text.replace(old, new))


def run(command: str) -> tuple[int, str]:
    """Exit status and standard output."""
    command, _, file = command.partition(" > ")
    if command.startswith("cat "):
        return 0, Path(command.removeprefix("cat ")).read_text()
    assert command.startswith(GRADBED), command
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        status = app(shlex.split(command.removeprefix(GRADBED)), prog_name="gradbed", standalone_mode=False)
    if file:
        Path(file).write_text(out.getvalue())
        return status or 0, ""
    return status or 0, out.getvalue()


def pattern(shown: str) -> re.Pattern[str]:
    """Of what is shown: a line "..." stands for any lines, "..." in a line for anything; spaces count as one."""
    parts = []
    for line in shown.splitlines():
        if line.strip() == "...":
            parts.append(r"(?:.*\n)*?")
        else:
            words = [re.escape(part) for part in " ".join(line.split()).split("...")]
            parts.append(".*".join(words) + r"\n")
    return re.compile("".join(parts))


def looks_like(shown: str, printed: str) -> bool:
    plain = "".join(" ".join(line.split()) + "\n" for line in printed.splitlines())
    return pattern(shown).fullmatch(plain) is not None


def console(block: Block) -> None:
    command, shown = "", ""
    sessions: list[tuple[str, str]] = []
    for line in [*block.text.splitlines(), "$ "]:
        if line.startswith("$ "):
            if command:
                sessions.append((command, shown))
            command, shown = line.removeprefix("$ "), ""
        else:
            shown += f"{line}\n"
    status = int(block.about.removeprefix("exits ") or 0)
    for command, shown in sessions:
        found, printed = run(command)
        assert found == status, f"{command} ended with {found}:\n{printed}"
        assert looks_like(shown, printed), f"{command} printed\n{printed}\nand the tutorial shows\n{shown}"


@pytest.mark.nightly
def test_every_step_of_the_tutorial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    for block in blocks():
        if block.kind == "console":
            console(block)
        elif block.kind == "diff":
            change(tmp_path / block.about, block.text)
        else:
            (tmp_path / block.about).write_text(block.text)


def test_what_differs_is_found() -> None:
    assert looks_like("one\n...\nthree  four\n", "one\ntwo\nthree four\n")
    assert looks_like("a ... c\n", "a b c\n")
    assert not looks_like("one\nthree\n", "one\ntwo\nthree\n")
    assert not looks_like("one\n...\n", "two\n")
    assert len(list(blocks())) > 20
