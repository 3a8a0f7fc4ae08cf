"""python -m tools.prose [FILE...]: look for long sentences and for paths that do not exist in the documents.

It prints one line for each, as compilers do, and ends with status 1 if there are any. Without FILE it reads all
documents: README.md, CONTRIBUTING.md and the pages of docs/. It advises authors and is no test: what it finds may be
meant.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
LONGEST_WORDS = 33
"""A student reads a longer sentence twice."""
FENCED = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
NO_PROSE = re.compile(r"^(?: {4}|[|#<]|!\[).*$", re.MULTILINE)
"""Code, rows of tables, headings, HTML and images."""
ITEM = re.compile(r" *(?:[-*]|\d+\.) ")
LINK = re.compile(r"\[([^\]]*)\]\(([^)\s]*)\)")
CODE = re.compile(r"`([^`\n]*)`")
END_OF_SENTENCE = re.compile(r"(?<=[.:;?!])[\"')*]*\s+")
PATH = re.compile(r"[\w.*-]+(/[\w.*-]+)*/?")
SOURCE = re.compile(r"\w+\.(py|p4|c)")
PLACEHOLDER = re.compile(r"\b[A-Z]{2,}\b(?!\.md)")
"""NAME in `p4src/NAME.p4`; README.md is none."""


class Finding(NamedTuple):
    """One thing that an author should look at."""

    line: int
    """From 1 on."""
    text: str


def documents() -> list[Path]:
    """Return the pages that people read, README.md first."""
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def findings(markdown: str, folder: Path) -> list[Finding]:
    """Return the long sentences and the missing paths of a page, by line.

    Args:
        markdown: The page's text.
        folder: Where the page lies; its links begin there.
    """
    return sorted([*_long_sentences(markdown), *_missing_paths(markdown, folder)])


def sentences(markdown: str) -> Iterator[tuple[int, str]]:
    """Yield line and text of every sentence. Code in a sentence counts as one word, a link as its text."""
    for first_line, paragraph in _paragraphs(_blanked(NO_PROSE, _blanked(FENCED, markdown))):
        start = 0
        for end in [*(found.end() for found in END_OF_SENTENCE.finditer(paragraph)), len(paragraph)]:
            if words := paragraph[start:end].split():
                yield first_line + paragraph.count("\n", 0, start), " ".join(words)
            start = end


def _paragraphs(prose: str) -> Iterator[tuple[int, str]]:
    """Yield first line and text; an item of a list is a paragraph."""
    first_line, lines = 1, list[str]()
    for number, line in enumerate([*prose.splitlines(), ""], 1):
        starts_item = ITEM.match(line)
        if lines and (starts_item or not line.strip()):
            yield first_line, LINK.sub(r"\1", CODE.sub("code", "\n".join(lines)))
            lines.clear()
        if line.strip():
            first_line = first_line if lines else number
            lines.append(line[starts_item.end() :] if starts_item else line)


def _long_sentences(markdown: str) -> Iterator[Finding]:
    for line, sentence in sentences(markdown):
        if (words := len(sentence.split())) > LONGEST_WORDS:
            yield Finding(line, f"a sentence of {words} words: {sentence[:60]}...")


def _missing_paths(markdown: str, folder: Path) -> Iterator[Finding]:
    """Find links to missing files, and paths in `code` that begin with a folder of the project and are missing."""
    text = _blanked(FENCED, markdown)
    for link in LINK.finditer(text):
        path = link[2].split("#")[0]
        if path and "://" not in path and not (folder / path).exists():
            yield Finding(_line(text, link), f"no such file: {link[2]}")
    for code in CODE.finditer(text):
        if not _exists(code[1]):
            yield Finding(_line(text, code), f"no such file in the project: {code[1]}")


def _exists(code: str) -> bool:
    """Return whether this is no path of the project, or one that exists."""
    if PLACEHOLDER.search(code):
        return True
    if SOURCE.fullmatch(code):
        return (ROOT / code).exists() or any(any((ROOT / top).rglob(code)) for top in _source_folders())
    if PATH.fullmatch(code) and "/" in code and code.split("/")[0] in _source_folders():
        return any(ROOT.glob(code.rstrip("/")))
    return True


@cache
def _source_folders() -> frozenset[str]:
    return frozenset(path.parent.name for path in ROOT.glob("*/*") if path.suffix in (".py", ".md", ".p4"))


def _blanked(pattern: re.Pattern[str], text: str) -> str:
    """Remove what matches from the text; line numbers stay."""
    return pattern.sub(lambda found: "\n" * found[0].count("\n"), text)


def _line(text: str, found: re.Match[str]) -> int:
    return text.count("\n", 0, found.start()) + 1


def main(names: Sequence[str]) -> int:
    """Print the findings of these files, or of all documents; return the exit status."""
    paths = [Path(name) for name in names] or documents()
    count = 0
    for path in paths:
        try:
            text = path.read_text(encoding="utf-8")
        except OSError as error:
            print(f"{path}: {error.strerror}", file=sys.stderr)
            return 2
        for finding in findings(text, path.parent):
            shown = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
            print(f"{shown}:{finding.line}: {finding.text}")
            count += 1
    return int(count > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
