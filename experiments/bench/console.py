"""The console that benchmarks print their tables on."""

from __future__ import annotations

from rich.console import Console

WIDTH_OF_FILES = 200
"""Columns where output is no terminal: rich would cut tables off at 80."""


def bench_console() -> Console:
    """Standard output, wide enough for a table."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=WIDTH_OF_FILES)
