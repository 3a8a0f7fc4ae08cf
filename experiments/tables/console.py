"""Where runs, studies and benchmarks print."""

from __future__ import annotations

from rich.console import Console

FILE_COLUMNS = 200
"""A file takes what a terminal would have to fold, and rich would cut tables off at 80."""


def make_console(stderr: bool = False) -> Console:
    """Standard output, or standard error; lines are never folded."""
    console = Console(highlight=False, soft_wrap=True, stderr=stderr)
    if not console.is_terminal:
        console.width = FILE_COLUMNS
    return console
