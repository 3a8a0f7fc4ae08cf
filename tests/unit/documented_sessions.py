"""What people type by README.md and docs/: the lines of each document, in its order."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.command import ROOT

DOCUMENTS = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
FENCED = re.compile(r"^ *```([^\n]*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`(\./gradbed [a-z][^`\n]*|\.venv/bin/python -m tools\.[a-z][^`\n]*)`")
"""In running text `gradbed run`, without ./, names a command; with it, it is one to type."""
IN_README = re.compile(r"`(\.{0,2}/[^`\s]*gradbed [a-z][^`\n]*)`")
"""The same where gradbed lies in another folder."""
TYPED = re.compile(r"(?:\$ )?(((?:\./)?gradbed|\.venv/bin/python -m tools\.\w+)(?: [^#\n]*)?)(?:#.*)?$")
PLACEHOLDERS = {
    "NAME": "my_program",
    "PROGRAM.p4": "my_program/my_program.p4",
    "ONE.p4": "my_program/my_program.p4",
    "OTHER.p4": "other/other.p4",
    "STUDY.yaml": "my_program/study.yaml",
    "SCRIPT.py": "script.py",
    "SCRIPT": "examples/torch_digits.py",
    "TOPOLOGY": "fat-tree:4",
    "yaml|graphml|dot|svg": "svg",
    "CLASS_FOLDER": "class",
    "FRAME": "02000000000102000000000208004500002800010000401165bc0a0000020a00010703e80035001400007477656c7665",
    "FOLDER": "my_network",
}
"""What stands for something of the reader's, and what the tests put in its place."""


SYSTEMS = {"run NAME --help": "run shuffle --help", "figures NAME --quick": "figures shuffle --quick"}
"""Where NAME is a system, not the reader's program."""


@dataclass(frozen=True)
class Typed:
    """A line of a document, without root. status: what the document says it ends with."""

    document: str
    command: str
    status: int = 0


def typed(document: Path) -> Iterator[Typed]:
    """Yield what the document tells people to type without sudo, each line once, in order."""
    text = document.read_text(encoding="utf-8").replace("\\\n", " ")
    seen = set()
    for found in sorted([*_fenced(text), *_inline(text)], key=lambda each: each[0]):
        _, command, status = found
        if "..." not in command and "[" not in command and command not in seen:
            seen.add(command)
            yield Typed(document.name, command, status)


def in_readme(readme: Path) -> list[Typed]:
    """What the README of a folder that gradbed has made tells people to type without sudo; files to look at, too."""
    text = readme.read_text(encoding="utf-8").replace("\\\n", " ")
    blocks = [line.strip() for block in FENCED.finditer(text) for line in block[2].splitlines()]
    typed_lines = [line for line in blocks if re.match(r"\S*/gradbed |cat ", line)]
    return [Typed(readme.parent.name, line) for line in [*typed_lines, *IN_README.findall(text)]]


def _fenced(text: str) -> Iterator[tuple[int, str, int]]:
    for block in FENCED.finditer(text):
        about = block[1].split()
        if about[:1] not in ([], ["console"]):
            continue
        status = int(about[2]) if about[1:2] == ["exits"] else 0
        place = block.start(2)
        for line in block[2].splitlines(keepends=True):
            if found := TYPED.match(line.strip()):
                yield place, _with_names(found[1]), status
            place += len(line)


def _inline(text: str) -> Iterator[tuple[int, str, int]]:
    blank = FENCED.sub(lambda block: " " * len(block[0]), text)
    for found in INLINE.finditer(blank):
        yield found.start(), _with_names(found[1]), 0


def _with_names(command: str) -> str:
    command = " ".join(command.split())
    for general, of_a_system in SYSTEMS.items():
        command = command.replace(general, of_a_system)
    for placeholder, name in PLACEHOLDERS.items():
        command = re.sub(rf"(?<![\w.]){re.escape(placeholder)}(?![\w.])", name, command)
    command = re.sub(r"(?<![\w.])NAME(?=\.p4\b)", "my_program", command)
    return command if command.startswith(("./", ".venv/")) else f"./{command}"
