"""Diagnostics: errors, warnings and notes, each with its source line."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from gradbed.common.errors import UserError
from gradbed.switch.compiler.source import SourceManager

Severity = Literal["error", "warning", "note"]

MAX_ERRORS = 20


@dataclass(frozen=True)
class Diagnostic:
    """A message about one place in the source."""

    severity: Severity
    message: str
    file: str
    line: int
    """Counted from 1."""
    column: int
    """Counted from 1."""
    source_line: str
    """Text of the line, which is shown with a caret."""
    length: int = 1
    notes: tuple[Diagnostic, ...] = field(default=())
    category: str = ""
    """Category of a warning, as in @noWarn("unused")."""
    hint: str = ""
    """Advice on how to mend the program."""

    def __str__(self) -> str:
        text = _printable(self.source_line.rstrip())
        before = text[: self.column - 1]
        indent = "".join(char if char == "\t" else " " for char in before)
        underline = "^" + "~" * (max(1, min(self.length, len(text) - self.column + 1)) - 1)
        category = f" [{self.category}]" if self.category else ""
        head = f"{self.file}:{self.line}:{self.column}: {self.severity}: {self.message}{category}"
        hint = [f"hint: {self.hint}"] if self.hint else []
        return "\n".join([head, text, indent + underline, *hint, *map(str, self.notes)])


def _printable(line: str) -> str:
    """Replace what a terminal would interpret, keeping the length of the line."""
    return "".join(char if char.isprintable() or char == "\t" else "\N{REPLACEMENT CHARACTER}" for char in line)


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return "; did you mean ...?" if a known name is similar, otherwise an empty string."""
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.65)
    return f"; did you mean '{close[0]}'?" if close else ""


class CompileError(UserError):
    """The program has errors. The text shows all `diagnostics`, warnings included."""

    prefix = ""

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__("\n".join(map(str, diagnostics)))


class FatalError(Exception):
    """Compilation cannot continue; the reporter holds the reason."""


class Reporter:
    """Collects diagnostics of one compilation."""

    def __init__(self, sources: SourceManager) -> None:
        self.sources = sources
        self.diagnostics: list[Diagnostic] = []
        self.error_count = 0
        self._seen: set[tuple[str, int, int, str]] = set()
        self._silenced: list[tuple[int, int, str]] = []

    def error(
        self, loc: int, message: str, end: int = -1, note: tuple[int, str] | None = None, hint: str = ""
    ) -> None:
        """Record an error at `loc` (see SourceManager).

        Raises:
            FatalError: There are MAX_ERRORS errors.
        """
        if self._add("error", loc, message, end, note, hint=hint):
            self.error_count += 1
            if self.error_count >= MAX_ERRORS:
                raise FatalError

    def warning(self, loc: int, message: str, end: int = -1, *, category: str, about: int = 0) -> None:
        """Record a warning. @noWarn counts at `loc` and at `about`, the declaration that the warning is about."""
        places = [self.sources.written_at(place) for place in (loc, about) if place]
        for start, stop, silenced in self._silenced:
            if silenced == category and any(start <= place < stop for place in places):
                return
        self._add("warning", loc, message, end, None, category)

    def silence(self, start: int, end: int, category: str) -> None:
        """Drop warnings of this category between two positions."""
        self._silenced.append((self.sources.written_at(start), self.sources.end_of(end), category))

    def fatal(self, loc: int, message: str) -> FatalError:
        """Record an error that ends the compilation, for `raise reporter.fatal(...)`."""
        self._add("error", loc, message, -1, None)
        self.error_count += 1
        return FatalError()

    def raise_if_errors(self) -> None:
        if self.error_count:
            raise CompileError(self.diagnostics)

    def _add(
        self,
        severity: Severity,
        loc: int,
        message: str,
        end: int,
        note: tuple[int, str] | None,
        category: str = "",
        hint: str = "",
    ) -> bool:
        notes = [self._make("note", note[0], note[1], -1)] if note else []
        notes += [
            self._make("note", spelling, f"in the expansion of macro '{macro}'", -1)
            for macro, spelling in self.sources.expansions_of(loc)
        ]
        diagnostic = self._make(severity, loc, message, end, tuple(notes), category, hint)
        key = (diagnostic.file, diagnostic.line, diagnostic.column, message)
        if key in self._seen:
            return False
        self._seen.add(key)
        self.diagnostics.append(diagnostic)
        return True

    def _make(
        self,
        severity: Severity,
        loc: int,
        message: str,
        end: int,
        notes: tuple[Diagnostic, ...] = (),
        category: str = "",
        hint: str = "",
    ) -> Diagnostic:
        place = self.sources.locate(loc)
        length = 1
        if end > loc and not self.sources.is_expanded(loc):
            last = self.sources.locate(self.sources.end_of(end))
            if (last.file, last.line) == (place.file, place.line):
                length = last.column - place.column
        return Diagnostic(
            severity,
            message,
            place.file,
            place.line,
            place.column,
            place.source_line,
            length,
            notes,
            category,
            hint,
        )
