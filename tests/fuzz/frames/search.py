"""Programs as the C that is generated of them, under libFuzzer and sanitizers: targets whose inputs are frames."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradbed.switch.bmv2_json.load import load_program
from gradbed.switch.codegen.program import generate
from gradbed.switch.runtime.library import RUNTIME_SOURCES
from tests.fuzz.sanitized import table_lines
from tests.fuzz.sources import ROOT, SOURCES, program_json
from tests.fuzz.test_hostile_names import renamed
from tests.fuzz.test_ndn_frames import packets, routing_lines, small_router
from tests.fuzz.test_program_json import accepted_copies
from tests.sanitizers import guided
from tools.recordings.random_inputs import parser_frames

Json = dict[str, Any]

SEPARATOR = b"\xf7nxt"
"""Between the frames of an input (guided.c)."""
ENTRIES = 6
"""Of each table: they are set up anew for every input."""
WALKS = 120
FRAMES_OF_A_SEED = 3
_HERE = Path(__file__).parent


@dataclass(frozen=True)
class FrameTarget:
    """walked: the program whose parser says what frames look like, if not this one. frames: more to start from.
    lines: that set up further tables."""

    program: Callable[[], Json]
    walked: Callable[[], Json] | None = None
    frames: Callable[[random.Random], list[bytes]] = lambda _: []
    lines: Callable[[Json], list[str]] = lambda _: []

    def build(self, folder: Path) -> Path:
        """The program that searches."""
        sources = [_HERE / "guided.c", _HERE / "setup.c", *RUNTIME_SOURCES]
        return guided(folder / "guided", sources, generate(load_program(self.program())))

    def setup(self) -> str:
        program = self.program()
        lines = [*self.lines(program), *table_lines(load_program(program), ENTRIES, random.Random(1))]
        return "".join(f"{line}\n" for line in lines)

    def seeds(self) -> list[bytes]:
        rng = random.Random(1)
        walked = (self.walked or self.program)()
        frames = [*parser_frames(walked, rng, WALKS), *self.frames(rng)]
        parts = [bytes([rng.randrange(64)]) + frame for frame in frames]
        rng.shuffle(parts)
        return [SEPARATOR.join(group) for group in _batches(parts)]


def _batches(parts: list[bytes]) -> Iterator[list[bytes]]:
    rest = iter(parts)
    while group := list(itertools.islice(rest, FRAMES_OF_A_SEED)):
        yield group


def _ndn_packets(rng: random.Random) -> list[bytes]:
    return [frame for _ in range(4) for frame in packets(rng)]


def _of(source: Path) -> FrameTarget:
    return FrameTarget(lambda: program_json(source))


def _hostile_names() -> Json:
    return renamed(_stateful(), random.Random(1))


def _damaged() -> Json:
    """The first damaged copy that the loader takes and that is other C."""
    whole = generate(load_program(_stateful()))
    return next(copy for copy in accepted_copies(_stateful(), 7, 1000) if generate(load_program(copy)) != whole)


def _stateful() -> Json:
    return program_json(ROOT / "tests/p4/programs/stateful.p4")


TARGETS = {
    **{f"frames-{source.stem}": _of(source) for source in SOURCES},
    "frames-ndn": FrameTarget(small_router, None, _ndn_packets, routing_lines),
    "frames-names": FrameTarget(_hostile_names, _stateful),
    "frames-damaged": FrameTarget(_damaged, _stateful),
}
"""By name: every program that is fuzzed (programs.py), one whose names are C, and one whose JSON was damaged."""
