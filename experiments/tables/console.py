"""Where runs, studies and benchmarks print."""

from __future__ import annotations

from typing import Any

from rich.console import Console

from gradbed.common.errors import folded

FILE_COLUMNS = 200
"""A file takes what a terminal would have to fold, and rich would cut tables off at 80."""


class _Sentences(Console):
    """Folds text at words on a terminal alone, and never a path."""

    def print(self, *objects: Any, **how: Any) -> None:
        width = self.width if self.is_terminal else None
        super().print(*(folded(each, width) if isinstance(each, str) else each for each in objects), **how)


def make_console(stderr: bool = False) -> Console:
    """Standard output, or standard error."""
    console = _Sentences(highlight=False, soft_wrap=True, stderr=stderr)
    if not console.is_terminal:
        console.width = FILE_COLUMNS
    return console
