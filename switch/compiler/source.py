"""Source files and positions in them.

A position ("loc") is one integer. Each file owns a range of integers, one per character, so a position names the
file as well. Tokens that a macro put in place have positions in a range of their own, from EXPANSION_BASE on:
every expansion owns one integer per token of the macro's body and remembers where the macro was used.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

EXPANSION_BASE = 1 << 40
MAX_EXPANSION_NOTES = 4
P4INCLUDE = Path(__file__).parent / "p4include"
"""core.p4 and v1model.p4."""


@dataclass(frozen=True)
class SourceLocation:
    """A position for people."""

    file: str
    line: int
    """Counted from 1."""
    column: int
    """Counted from 1."""
    source_line: str


@dataclass
class SourceFile:
    """A file as read."""

    name: str
    """Name in messages."""
    short_name: str
    """Name in generated files."""
    directory: Path
    text: str
    base: int
    """Position of the first character."""
    line_starts: list[int]
    """Offset of each line."""
    # (offset from which it holds, what to add to the line number, file name or None), by #line
    presumed: list[tuple[int, int, str | None]] = field(default_factory=list)
    """By #line: offset from which it holds, number to add to the line, and file name or None."""

    @property
    def path(self) -> Path:
        """Path of the file; for macros of the command line it names no file."""
        return self.directory / os.path.basename(self.short_name)

    def line_index(self, offset: int) -> int:
        return bisect_right(self.line_starts, offset) - 1

    def line_text(self, index: int) -> str:
        start = self.line_starts[index]
        end = self.text.find("\n", start)
        return self.text[start:] if end < 0 else self.text[start:end]


@dataclass(frozen=True)
class Expansion:
    """A use of a macro."""

    macro: str
    used_at: int
    """Position of the use."""
    body: Sequence[int]
    """Position of each token of the body in the definition."""


class SourceManager:
    """The files of one compilation, and all macro expansions."""

    def __init__(self) -> None:
        self.main_loc = 1  # where the program's own file starts
        self._files: list[SourceFile] = []
        self._bases: list[int] = []
        self._next_base = 1
        self._expansions: list[Expansion] = []
        self._expansion_bases: list[int] = []
        self._next_expansion = EXPANSION_BASE

    def add(self, text: str, name: str, short_name: str, directory: Path) -> SourceFile:
        starts = [0]
        find = text.find
        at = find("\n")
        while at >= 0:
            starts.append(at + 1)
            at = find("\n", at + 1)
        source = SourceFile(name, short_name, directory, text, self._next_base, starts)
        self._files.append(source)
        self._bases.append(source.base)
        self._next_base += len(text) + 2
        return source

    def read(self, path: Path, name: str | None = None, short_name: str | None = None) -> SourceFile:
        """Read a file. Bytes that are not UTF-8 become U+FFFD, which is in no P4 token.

        Raises:
            OSError: The file cannot be read.
        """
        text = path.read_bytes().decode("utf-8", errors="replace").replace("\r\n", "\n")
        shown = name if name is not None else str(path)
        return self.add(text, shown, short_name or os.path.basename(shown), path.parent)

    @property
    def files(self) -> Sequence[SourceFile]:
        """Files read so far, in order; a file that is included twice is listed twice."""
        return self._files

    def add_expansion(self, macro: str, used_at: int, body: Sequence[int]) -> int:
        """Register a use of a macro; return the position of the first token of its body, which the others follow."""
        base = self._next_expansion
        self._expansions.append(Expansion(macro, used_at, body))
        self._expansion_bases.append(base)
        self._next_expansion += max(1, len(body))
        return base

    def is_expanded(self, loc: int) -> bool:
        return loc >= EXPANSION_BASE

    def written_at(self, loc: int) -> int:
        """Return the position in a file: that of the outermost use, for a token of a macro."""
        while loc >= EXPANSION_BASE:
            loc = self._expansion(loc).used_at
        return loc

    def end_of(self, end: int) -> int:
        """Return the end of a node in a file: after the name of the macro, if its last token is of one."""
        length = 0
        while end >= EXPANSION_BASE:
            expansion = self._expansion(end)
            end, length = expansion.used_at, len(expansion.macro)
        return end + length

    def expansions_of(self, loc: int) -> Iterator[tuple[str, int]]:
        """Return the macros that a token came through, outermost first, with the position in each definition."""
        chain: list[tuple[str, int]] = []
        while loc >= EXPANSION_BASE:
            index = bisect_right(self._expansion_bases, loc) - 1
            expansion = self._expansions[index]
            offset = loc - self._expansion_bases[index]
            if offset < len(expansion.body):
                chain.append((expansion.macro, expansion.body[offset]))
            loc = expansion.used_at
        return iter(chain[::-1][:MAX_EXPANSION_NOTES])

    def file_at(self, loc: int) -> tuple[SourceFile, int]:
        """Return the file of a position and the offset in it."""
        loc = self.written_at(loc)
        source = self._files[max(0, bisect_right(self._bases, loc) - 1)]
        return source, max(0, min(loc - source.base, len(source.text)))

    def is_standard(self, loc: int) -> bool:
        """Return whether a position is in core.p4 or v1model.p4."""
        return self.file_at(loc)[0].directory == P4INCLUDE

    def locate(self, loc: int) -> SourceLocation:
        """Return a position for people."""
        source, offset = self.file_at(loc)
        index = source.line_index(offset)
        column = offset - source.line_starts[index] + 1
        file, line = self._presumed(source, offset, index + 1, source.name)
        return SourceLocation(file, line, column, source.line_text(index))

    def source_info(self, loc: int, end: int) -> dict[str, str | int]:
        """Return a position as in BMv2 JSON, with the first line of the text from loc to end."""
        source, offset = self.file_at(loc)
        index = source.line_index(offset)
        file, line = self._presumed(source, offset, index + 1, source.short_name)
        last_source, last = self.file_at(self.end_of(end)) if end > 0 else (source, offset)
        text = source.text
        line_end = text.find("\n", offset)
        if line_end < 0:
            line_end = len(text)
        if last_source is not source or last <= offset:
            last = min(line_end, offset + 80)
        fragment = text[offset : min(last, line_end)].rstrip()
        if last > line_end:
            fragment += " ..."
        column = offset - source.line_starts[index]
        return {"filename": file, "line": line, "column": column, "source_fragment": fragment}

    def _expansion(self, loc: int) -> Expansion:
        return self._expansions[bisect_right(self._expansion_bases, loc) - 1]

    @staticmethod
    def _presumed(source: SourceFile, offset: int, line: int, name: str) -> tuple[str, int]:
        for start, delta, renamed in reversed(source.presumed):
            if offset >= start:
                return (renamed or name), line + delta
        return name, line
