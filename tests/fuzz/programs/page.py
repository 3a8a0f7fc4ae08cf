"""docs/random-programs.md: the coverage of a run of random programs, by construct."""

from __future__ import annotations

from collections.abc import Sequence

from tests.fuzz.programs.constructs import CONSTRUCTS
from tests.fuzz.programs.search import Coverage

HEAD = """# Coverage of random programs

`{command}` generated this page: {programs:,} programs of {frames} frames each, {outcome}.

The column *programs* counts programs with the construct. The column *frames* counts frames that reached it, in
every {probes_every}th program, which is built a second time with probes. If a program has the construct on
several lines, the line with the most frames counts. A `-` marks constructs without code of their own, for
example declarations. The code of a table is counted where the table is declared, so lines that apply it show 0.
`tests/fuzz/programs/constructs.py` has the list. [Own programs](conformance.md#own-programs) describes how
programs are drawn and compared.

| construct | programs | frames |
|---|---|---|
"""


def page(coverage: Coverage, command: str, programs: int, frames: int, probes_every: int, findings: int) -> str:
    head = HEAD.format(
        command=command,
        programs=programs,
        frames=frames,
        probes_every=probes_every,
        outcome="without a difference" if not findings else f"{findings} with a difference",
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
    """Return how many programs had each construct on a page, in the order of the rows."""
    rows = [line[3:].split("` | ") for line in text.splitlines() if line.startswith("| `")]
    return {name.replace("\\|", "|"): int(rest.split(" | ")[0].replace(",", "")) for name, rest in rows}
