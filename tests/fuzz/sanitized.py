"""A program with runtime, engine and driver in one binary, with address and undefined-behaviour sanitizers."""

from __future__ import annotations

import random
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from gradbed.switch.bmv2_json.load import load_program
from gradbed.switch.bmv2_json.model import Action, ProgramModel, Table
from gradbed.switch.codegen.program import generate
from gradbed.switch.runtime.library import RUNTIME_SOURCES
from gradbed.switch.state.abi import packed
from tests.sanitizers import sanitized
from tools.recordings.random_inputs import parser_frames

FRAMES = Path(__file__).with_name("frames")
ENTRIES = 40
SEED_FRAMES = 200
MEMBERS = 4
"""Of each action profile."""


def build_driver(program: dict[str, Any], folder: Path) -> Path:
    """The program with runtime, engine and frames/driver.c."""
    sources = [FRAMES / "driver.c", FRAMES / "setup.c", *RUNTIME_SOURCES]
    return sanitized(folder / "driver", sources, generate(load_program(program)))


def run_driver(
    driver: Path,
    program: dict[str, Any],
    seed: int,
    frames: int,
    *,
    entries: int = ENTRIES,
    parser_of: dict[str, Any] | None = None,
    walks: int = SEED_FRAMES,
    more: Sequence[str] = (),
    counted: Counter[str] | None = None,
) -> int:
    """Send that many frames, all made from the seed; how many came out. Fails the test on any finding.

    entries: of each table, at most. parser_of: the program whose parser takes the frames apart, if not this one.
    walks: so many of the frames to start from are walks over the parser's states. more: further lines for the driver
    (frames/driver.c). counted: what the program's counters have is added, by the last parts of their names.
    """
    rng = random.Random(seed)
    lines = [
        *more,
        *table_lines(load_program(program), entries, rng),
        *(f"seed {frame.hex()}" for frame in parser_frames(parser_of or program, rng, walks)),
        f"seed {rng.randbytes(200).hex()}",
        "seed ",
    ]
    outcome = subprocess.run(
        [str(driver), str(seed), str(frames)],
        input="\n".join(lines) + "\n",
        capture_output=True,
        text=True,
        check=False,
    )
    assert outcome.returncode == 0, f"seed {seed}: {outcome.stderr}"
    out, *counters = outcome.stdout.splitlines()
    for name, packets in map(str.split, counters):
        if counted is not None:
            counted[name.rsplit(".", 1)[-1]] += int(packets)
    return int(out)


# ---- Tables: the program's own defaults and entries, and random ones with small numbers ----


def table_lines(model: ProgramModel, entries: int, rng: random.Random) -> Iterator[str]:
    """What the driver takes (frames/setup.h)."""
    for number, table in enumerate(model.tables.values()):
        if table.default is not None:
            arguments = to_words(
                (value, parameter.width)
                for value, parameter in zip(
                    table.default.arguments, model.actions[table.default.action_id].parameters, strict=True
                )
            )
            yield f"default {number} {table.default.action_id}{_hexadecimal(arguments)}"
        if table.profile is not None:
            profile = list(model.profiles).index(table.profile)
            for _ in range(MEMBERS):
                action = rng.choice(table.actions)
                yield f"member {profile} {action.id}{_hexadecimal(to_words(_arguments(action, rng)))}"
        if table.actions and table.key:
            for _ in range(entries):
                yield _entry_line(number, table, rng)


def _entry_line(number: int, table: Table, rng: random.Random) -> str:
    values, masks, highs = [], [], []
    priority = rng.randrange(1, 100)
    for field in table.key:
        full = (1 << field.width) - 1
        value, mask, high = _small(rng, field.width), full, 0
        if field.match == "lpm":
            # Some lengths have many prefixes each, others few.
            priority = rng.choice([rng.randrange(field.width + 1), *range(0, field.width + 1, 8)[:5]])
            mask = full ^ full >> priority
        elif field.match == "ternary":
            mask = rng.choice([0, full, rng.getrandbits(field.width)])
        elif field.match == "range":
            high = max(value, _small(rng, field.width))
        values.append((value, field.width))
        masks.append((mask, field.width))
        highs.append((high, field.width))
    key = to_words(values) + to_words(masks) + to_words(highs)
    action = rng.choice(table.actions)
    words = key + to_words(_arguments(action, rng))
    return f"entry {number} {priority} {action.id} {len(key) // 3}{_hexadecimal(words)}"


def entry_for_all(model: ProgramModel, table: str, action: str, *data: int) -> str:
    """An entry that every packet matches, in a table of ternary keys; names by their last parts."""
    number, found = next(
        (i, each) for i, each in enumerate(model.tables.values()) if each.name.rsplit(".", 1)[-1] == table
    )
    called = next(each for each in found.actions if each.name.rsplit(".", 1)[-1] == action)
    key = to_words((0, field.width) for field in found.key)
    arguments = to_words((value, p.width) for value, p in zip(data, called.parameters, strict=True))
    return f"entry {number} 1 {called.id} {len(key)}{_hexadecimal([*key, *key, *key, *arguments])}"


def _arguments(action: Action, rng: random.Random) -> list[tuple[int, int]]:
    """Mostly numbers of ports that there are (and of groups)."""
    return [
        (min(rng.choice([1, 2, 3, 4, 1, 2, 3, 4, rng.getrandbits(p.width)]), (1 << p.width) - 1), p.width)
        for p in action.parameters
    ]


def _small(rng: random.Random, width: int) -> int:
    return min(rng.choice([rng.randrange(4), rng.randrange(4), rng.getrandbits(width)]), (1 << width) - 1)


def to_words(values: Iterable[tuple[int, int]]) -> list[int]:
    """(value, width) pairs as words, value after value."""
    return list(memoryview(packed(values)).cast("Q"))


def _hexadecimal(words: list[int]) -> str:
    return "".join(f" {word:x}" for word in words)
