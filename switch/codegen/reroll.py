"""Loops in place of runs of statements that differ only by integers in arithmetic progression.

Programs for gradients repeat the same few statements for hundreds of lanes. As loops they compile in a fraction of
the time and stay in the instruction cache. The loop executes the very same statements in the same order, so no
statement needs to be understood: only its tokens are compared.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[A-Za-z_]\w*|(0x[0-9a-fA-F]+|\d+)(ULL)?|\s+|.')
_ROLLABLE = re.compile(r"(phv\[|key\[|gb_|p->|if \(|\{).*[;}]$", re.DOTALL)
_MIN_REPEATS = 4
_MAX_PERIOD = 64
_WORD = 1 << 64


@dataclass(frozen=True)
class _Statement:
    """A statement, split at its integers."""

    text: str
    pieces: tuple[str, ...]
    """Text between the integers."""
    suffixes: tuple[str, ...]
    """Suffix of each integer, which gives its C type."""
    integers: tuple[int, ...]
    rollable: bool
    """Whether the statement may be part of a loop."""


def reroll(lines: Sequence[str]) -> list[str]:
    """Return the lines with runs replaced by loops."""
    statements = [_cut(line) for line in lines]
    shape_ids: dict[tuple[tuple[str, ...], tuple[str, ...]], int] = {}
    shapes = [shape_ids.setdefault((s.pieces, s.suffixes), len(shape_ids)) if s.rollable else -1 for s in statements]
    result: list[str] = []
    at = 0
    while at < len(lines):
        period, repeats = _longest_run(statements, shapes, at)
        if repeats:
            result.extend(_loop(statements[at : at + 2 * period], period, repeats))
            at += period * repeats
        else:
            result.append(lines[at])
            at += 1
    return result


def _cut(line: str) -> _Statement:
    pieces: list[str] = [""]
    suffixes: list[str] = []
    integers: list[int] = []
    for match in _TOKEN.finditer(line):
        if match.group(1):
            integers.append(int(match.group(1), 0))
            suffixes.append(match.group(2) or "")
            pieces.append("")
        else:
            pieces[-1] += match.group(0)
    # A label or half a block cannot be moved into a loop; a declaration would lose its scope.
    rollable = bool(_ROLLABLE.match(line)) and line.count("{") == line.count("}")
    return _Statement(line, tuple(pieces), tuple(suffixes), tuple(integers), rollable)


def _longest_run(statements: Sequence[_Statement], shapes: Sequence[int], at: int) -> tuple[int, int]:
    """Return period and repeats of the run from `at` on that covers most statements; 0 repeats without a run."""
    best = (0, 0)
    for period in range(1, min(_MAX_PERIOD, (len(statements) - at) // _MIN_REPEATS) + 1):
        if shapes[at + period - 1] < 0:
            break
        if shapes[at + period] != shapes[at]:
            continue
        repeats = _repeats(statements, shapes, at, period)
        if repeats >= _MIN_REPEATS and repeats * period > best[0] * best[1]:
            best = (period, repeats)
    return best


def _repeats(statements: Sequence[_Statement], shapes: Sequence[int], at: int, period: int) -> int:
    steps = []
    for first in range(at, at + period):
        if shapes[first + period] != shapes[first]:
            return 1
        steps.append(_steps(statements[first], statements[first + period]))
    repeats = 2
    while at + (repeats + 1) * period <= len(statements):
        for offset in range(period):
            this = at + offset + repeats * period
            if shapes[this] != shapes[at + offset]:
                return repeats
            if _steps(statements[this - period], statements[this]) != steps[offset]:
                return repeats
        repeats += 1
    return repeats


def _steps(a: _Statement, b: _Statement) -> tuple[int, ...]:
    return tuple(y - x for x, y in zip(a.integers, b.integers, strict=True))


def _loop(statements: Sequence[_Statement], period: int, repeats: int) -> list[str]:
    lines = [f"for (int lane = 0; lane < {repeats}; lane++) {{"]
    for first, second in zip(statements[:period], statements[period:], strict=True):
        text = first.pieces[0]
        for start, step, suffix, piece in zip(
            first.integers, _steps(first, second), first.suffixes, first.pieces[1:], strict=True
        ):
            text += _progression(start, step, suffix) + piece
        lines.append(text)
    return [*lines, "}"]


def _progression(start: int, step: int, suffix: str) -> str:
    """Return the integer of iteration `lane`, with its C type."""
    if step == 0:
        return f"{start:#x}{suffix}" if start > 9 and suffix else f"{start}{suffix}"
    if suffix:
        return f"({start:#x}ULL + {step % _WORD:#x}ULL * lane)"
    return f"({start} {'+' if step > 0 else '-'} {abs(step)} * lane)"
