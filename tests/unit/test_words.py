"""Sentences of README.md, CONTRIBUTING.md and docs/ are short: a student reads them once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
LONGEST_WORDS = 33
FENCED = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
NO_PROSE = re.compile(r"^(?: {4}|[|#<]|!\[).*$", re.MULTILINE)
"""Code, rows of tables, headings, HTML and images."""
ITEM = re.compile(r"^ *(?:[-*]|\d+\.) ", re.MULTILINE)
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
CODE = re.compile(r"`[^`]*`")
END = re.compile(r"(?<=[.:;?!])[\"')*]*\s+")


def sentences(markdown: str) -> Iterator[str]:
    """Of the prose; code in a sentence is one word, and of a link its text counts."""
    text = ITEM.sub("\n\n", NO_PROSE.sub("\n\n", FENCED.sub("\n\n", markdown)))
    for paragraph in re.split(r"\n\s*\n", text):
        words = " ".join(LINK.sub(r"\1", CODE.sub("code", paragraph)).split())
        yield from filter(None, END.split(words))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_no_sentence_is_long(document: Path) -> None:
    found = list(sentences(document.read_text(encoding="utf-8")))
    assert found
    assert [sentence for sentence in found if len(sentence.split()) > LONGEST_WORDS] == []


def test_what_a_sentence_is() -> None:
    text = """# A heading

One [link of four words](there.md) and `code of three`. Two
goes on: three; four?

```
no sentence
```
- an item
- another one (**bold.**) Last.

| a | row |
"""
    assert list(sentences(text)) == [
        "One link of four words and code.",
        "Two goes on:",
        "three;",
        "four?",
        "an item",
        "another one (**bold.",
        "Last.",
    ]
