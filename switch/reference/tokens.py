"""P4 source as tokens. Macros and includes are the C preprocessor's work, as P4_16 (section 6.1) asks: `cc -E`."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from gradbed.common.c_library import compiler
from gradbed.common.errors import UserError

P4_INCLUDE = Path(__file__).resolve().parent.parent / "compiler" / "p4include"
"""core.p4 and v1model.p4, which are data: what the architecture declares."""


class Position(NamedTuple):
    """The place of something in the source, for messages."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class ProgramError(UserError):
    """The program is wrong, or uses what the reference does not have. Text: `file:line: what`."""

    def __init__(self, position: Position, what: str) -> None:
        super().__init__(f"{position}: {what}")


class SourceToken(NamedTuple):
    """A token of the source."""

    kind: str
    """name, number, string, symbol or end."""
    text: str
    position: Position
    start: int
    """Offset in the preprocessed text, as `end` is."""
    end: int


_TOKEN = re.compile(
    r"""
    (?P<marker>^\#[ ](?P<line>\d+)[ ]"(?P<file>[^"]*)"[^\n]*$)
  | (?P<space>[ \t\r\f\v]+|//[^\n]*|/\*.*?\*/|^\#[^\n]*$)
  | (?P<newline>\n)
  | (?P<number>(?:[0-9][0-9_]*[ws])?(?:0[xX][0-9a-fA-F_]+|0[bB][01_]+|0[oO][0-7_]+|0[dD][0-9_]+|[0-9][0-9_]*))
  | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
  | (?P<string>"(?:\\.|[^"\\])*")
  | (?P<symbol>\|\+\|=|\|-\|=|<<=|&&&|\|\+\||\|-\||\.\.\.|\.\.|&&|\|\||==|!=|<=|>=|<<|\+\+|\+:|\+=|-=|\*=|/=|%=|&=
      |\|=|\^=|[-+*/%&|^~!<>=?:;,.(){}\[\]@\#])
    """,
    re.VERBOSE | re.MULTILINE | re.DOTALL,
)
# `>>` is no token: in `register<bit<8>>` it closes two lists. The parser joins two `>` that touch.


def preprocess(source: Path | str, include_folders: Sequence[Path], defines: Mapping[str, str]) -> str:
    """Run the C preprocessor over a file, or over a text."""
    cc, _ = compiler()
    folders = [f"-I{folder}" for folder in (*include_folders, P4_INCLUDE)]
    macros = [f"-D{name}={value}" for name, value in defines.items()]
    if isinstance(source, Path) and not source.is_file():
        raise UserError(f"no such P4 program: {source}")
    command = [cc, "-E", "-x", "assembler-with-cpp", "-undef", "-nostdinc", *folders, *macros]
    if isinstance(source, Path):
        outcome = subprocess.run([*command, str(source)], capture_output=True, text=True)
    else:
        outcome = subprocess.run([*command, "-"], input=source, capture_output=True, text=True)
    if outcome.returncode:
        raise UserError(outcome.stderr.strip().splitlines()[0])
    return outcome.stdout


def tokens(text: str) -> list[SourceToken]:
    """Split preprocessed text; the last token is the end."""
    found: list[SourceToken] = []
    position = Position("program", 1)
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ProgramError(position, f"cannot read {text[at : at + 20]!r}")
        at = match.end()
        kind = match.lastgroup or ""
        if match["marker"] is not None:
            # The marker names the line that follows it.
            position = Position(match["file"], int(match["line"]) - 1)
        elif kind == "newline":
            position = Position(position.file, position.line + 1)
        elif kind == "space":
            position = Position(position.file, position.line + match.group().count("\n"))
        else:
            found.append(SourceToken(kind, match.group(), position, match.start(), at))
    found.append(SourceToken("end", "the end of the file", position, at, at))
    return found
