"""The tables of docs/testing.md: which deliberate mistakes a run finds in itself, and which a test finds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath

from tests.mutants.entries import Mutant, lists, mutants_of


def tables() -> str:
    """Both, as Markdown: how many of each system, and each of them."""
    named = {name: found for name in lists() if (found := [each for each in mutants_of(name) if each.mistake])}
    totals = "\n".join(_totals(named))
    each = "\n".join(_each(named))
    return f"{totals}\n\n{each}\n"


def _totals(named: dict[str, list[Mutant]]) -> Iterator[str]:
    yield "| system | mistakes | found by the run | by a test alone | by neither |"
    yield "|---|---|---|---|---|"
    everything = [mutant for found in named.values() for mutant in found]
    for name, found in [*named.items(), ("all", everything)]:
        by_run = sum(bool(each.run) for each in found)
        live = sum(bool(each.lives) for each in found)
        yield f"| {name} | {len(found)} | {by_run} | {len(found) - by_run - live} | {live} |"


def _each(named: dict[str, list[Mutant]]) -> Iterator[str]:
    yield "| system | mistake | found by the run | found by a test |"
    yield "|---|---|---|---|"
    for name, found in named.items():
        for mutant in found:
            test = mutant.lives or f"`{PurePath(mutant.tests[0].split('::')[0]).name}`"
            yield f"| {name} | {mutant.mistake} | {'yes' if mutant.run else 'no'} | {test} |"
