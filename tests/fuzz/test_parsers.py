"""Every parser of what comes from outside takes an input, or refuses it in one line: what once was a finding, inputs
that are hostile to any parser, and changed copies of the repository's own files. `python -m tests.fuzz` finds more.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.fuzz.parsers.hostile import HOSTILE
from tests.fuzz.parsers.mutation import mutated
from tests.fuzz.parsers.table import TARGETS
from tests.fuzz.parsers.target import Target, TooSlow
from tests.fuzz.searching import NIGHTLY_S, search

FINDINGS = Path(__file__).with_name("findings")

each_target = pytest.mark.parametrize("name", TARGETS)


@pytest.mark.thorough
@each_target
def test_inputs_that_are_hostile_to_any_parser(name: str) -> None:
    for text in HOSTILE.values():
        TARGETS[name].check(text)


@pytest.mark.parametrize(
    "file",
    [each for name in TARGETS for each in sorted((FINDINGS / name).glob("*"))],
    ids=lambda path: f"{path.parent.name}-{path.name}",
)
def test_what_once_was_a_finding(file: Path) -> None:
    TARGETS[file.parent.name].check(file.read_bytes())


@pytest.mark.commit_cases(8)
@each_target
def test_changed_seeds(name: str) -> None:
    """Some are taken, unless what is no answer cannot be told from one that is."""
    target, rng = TARGETS[name], random.Random(name)
    seeds = target.seeds()
    assert any(target.check(seed) for seed in seeds)
    for _ in range(target.mutants):
        target.check(mutated(rng.choice(seeds), rng))


def test_nothing_that_was_read_has_run() -> None:
    """Of what HOSTILE wants to be run."""
    for target in ("study", "entries", "topology-yaml"):
        TARGETS[target].check(HOSTILE["a_python_object"])
    assert not Path("/tmp/gradbed-was-here").exists()


def endless(_data: bytes) -> None:
    while True:
        pass


def verbose(_data: bytes) -> None:
    raise ValueError("two\nlines")


@pytest.mark.parametrize(
    ("read", "finding"),
    [
        (endless, TooSlow),
        (lambda _: bytearray(3 << 30), MemoryError),
        (lambda _: [][1], IndexError),
        (verbose, AssertionError),
    ],
)
def test_what_is_a_finding(read: object, finding: type[Exception]) -> None:
    refused = Target(read, list, (ValueError,), processor_s=0.2)  # type: ignore[arg-type]
    with pytest.raises(finding):
        refused.check(b"")


@pytest.mark.nightly
@each_target
def test_a_minute_of_search(name: str) -> None:
    pytest.importorskip("atheris")
    search(name, NIGHTLY_S)
