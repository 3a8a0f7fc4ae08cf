"""A program that was built before is neither loaded nor generated again."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from gradbed.common import c_library
from gradbed.common.store import cache_dir, stored
from gradbed.switch.codegen import MalformedProgram, build_program, program
from gradbed.switch.codegen.program import cache_entry
from tests.unit.codegen import program_maker as make


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GRADBED_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def generated(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The models of the programs that C was generated for."""
    models: list[object] = []
    generate = program.generate

    def note(model: object) -> str:
        models.append(model)
        return generate(model)  # type: ignore[arg-type]

    monkeypatch.setattr(program, "generate", note)
    return models


def small(width: int = 8) -> make.Json:
    maker = make.ProgramMaker()
    maker.add_header("h", [["a", width, False]])
    maker.states = [make.state("start", [make.extract("h")])]
    return maker.json()


def test_the_second_build_is_found(generated: list[object]) -> None:
    first, second = build_program(small()), build_program(small())
    assert len(generated) == 1
    assert second.library == first.library
    assert second.model == first.model
    assert second.json == small()


def test_what_counts(generated: list[object]) -> None:
    builds = [build_program(small()), build_program(small(16)), build_program(small(), optimise="-O0")]
    assert len(generated) == 3
    assert len({built.library for built in builds}) == 3


def test_the_flags_of_every_build_count(generated: list[object], monkeypatch: pytest.MonkeyPatch) -> None:
    first = build_program(small())
    monkeypatch.setattr(c_library, "FLAGS", (*c_library.FLAGS, "-DOTHER"))
    assert build_program(small()).library != first.library
    assert len(generated) == 2


@pytest.mark.parametrize("damage", [b"", b"\x80\x05no pickle", b"garbage"])
def test_a_damaged_note_is_written_anew(damage: bytes, generated: list[object]) -> None:
    library = build_program(small()).library
    entry = cache_entry(small(), "-O2")
    assert entry is not None
    entry.write_bytes(damage)
    assert build_program(small()).library == library
    build_program(small())
    assert len(generated) == 2


def test_a_library_that_is_gone_is_built_again(generated: list[object]) -> None:
    library = build_program(small()).library
    library.unlink()
    assert build_program(small()).library.exists()
    assert len(generated) == 2


def test_what_is_no_program_is_refused_each_time(cache: Path) -> None:
    for _ in range(2):
        with pytest.raises(MalformedProgram):
            build_program({"program": object()})
        with pytest.raises(MalformedProgram):
            build_program({"headers": 3})
    assert not list(cache.glob("*.model"))


def test_the_cache_is_open_to_nobody_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it has is loaded and run."""
    cache = tmp_path / "above" / "gradbed"
    monkeypatch.setenv("GRADBED_CACHE", str(cache))
    before = os.umask(0)
    try:
        stored(lambda made: made.write_text("x"), cache_dir() / "kind" / "thing")
    finally:
        os.umask(before)
    assert [stat.S_IMODE(each.stat().st_mode) for each in (cache, cache / "kind")] == [0o700, 0o700]
