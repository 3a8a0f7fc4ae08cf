"""README.md and docs/ name files and folders that exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"\]\(([^)\s]+)\)")
CODE = re.compile(r"`([^`\n]+)`")
FENCED = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
PATH = re.compile(r"[\w.*-]+(/[\w.*-]+)*/?")
SOURCE = re.compile(r"\w+\.(py|p4|c)")


def missing(text: str, folder: Path) -> Iterator[str]:
    """Links to files that are not there, seen from the folder, and paths in `code` that no folder of the project has:
    those that begin with one of its folders, and bare names of sources."""
    text = FENCED.sub("", text)
    for target in LINK.findall(text):
        path = target.split("#")[0]
        if path and "://" not in path and not (folder / path).exists():
            yield target
    for code in CODE.findall(text):
        if SOURCE.fullmatch(code):
            found = (ROOT / code).exists() or any(any((ROOT / top).rglob(code)) for top in _TOP)
        elif PATH.fullmatch(code) and "/" in code and code.split("/")[0] in _TOP:
            found = any(ROOT.glob(code.rstrip("/")))
        else:
            continue
        if not found:
            yield code


_TOP = sorted({path.relative_to(ROOT).parts[0] for path in ROOT.glob("*/*") if path.suffix in (".py", ".md", ".p4")})


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_what_it_names_exists(document: Path) -> None:
    assert list(missing(document.read_text(), document.parent)) == []


def test_what_does_not_exist_is_found() -> None:
    text = "[a](docs/nothing.md#top) `p4src/nothing.p4` `nothing.py` `p4src/*.p4` [b](README.md) `results/x` `a/b`"
    assert list(missing(text, ROOT)) == ["docs/nothing.md#top", "p4src/nothing.p4", "nothing.py"]
