"""docs/random-programs.md: what a run of random programs covered, by construct."""

from __future__ import annotations

from collections.abc import Sequence

from tests.fuzz.programs.constructs import CONSTRUCTS
from tests.fuzz.programs.search import Coverage

HEAD = """# What random programs cover

`{command}` wrote this page: {programs:,} programs of {frames} frames each, {outcome}.

The first number counts programs with the construct. The second counts frames that came by, in every {probes_every}th
program, which is also built with probes. Of several lines with the construct it is the one that most frames reached;
`-` is of lines that have no code of their own, such as declarations. The code of a table is where it is declared, so
lines that apply it show 0. `tests/fuzz/programs/constructs.py` has the list, and
[Own programs](conformance.md#own-programs) says how programs are drawn and compared.

| construct | programs | frames |
|---|---|---|
"""


def page(coverage: Coverage, command: str, programs: int, frames: int, probes_every: int, findings: int) -> str:
    head = HEAD.format(
        command=command,
        programs=programs,
        frames=frames,
        probes_every=probes_every,
        outcome="none with a difference" if not findings else f"{findings} with a finding",
    )
    return head + "".join(f"{line}\n" for line in _rows(coverage))


def _rows(coverage: Coverage) -> Sequence[str]:
    return [
        f"| `{_escaped(construct)}` | {coverage.programs[construct]:,} | {_frames(coverage, construct)} |"
        for construct in CONSTRUCTS
    ]


def _escaped(construct: str) -> str:
    return construct.replace("|", "\\|")


def _frames(coverage: Coverage, construct: str) -> str:
    return f"{coverage.frames[construct]:,}" if coverage.probed[construct] else "-"


def programs_by_construct(text: str) -> dict[str, int]:
    """Of a page: how many programs had each construct, in the order of the rows."""
    rows = [line[3:].split("` | ") for line in text.splitlines() if line.startswith("| `")]
    return {name.replace("\\|", "|"): int(rest.split(" | ")[0].replace(",", "")) for name, rest in rows}
