"""What BMv2 did with p4c's programs, on this switch once more: every frame, register and counter is the same.

tests/p4/recorded/bmv2/README.md says how the recordings were made. They share nothing with this compiler and switch.
"""

from __future__ import annotations

import functools
import shutil
from pathlib import Path
from typing import Any

import pytest

from gradbed.common.errors import UserError
from gradbed.switch.codegen import build_program
from tests.p4.recordings import PATHS, RECORDED, changed_programs, recording
from tools.recordings import Recording, compile_recorded, read_recording, replay, write_recording
from tools.recordings.recording import ends_in_tag, without_tag

MOST_BYTES = 3_000_000  # of all recordings
PROGRAMS, FRAMES = 12, 400
QUICKLY = functools.partial(build_program, optimise="-O1")


def replayed(recorded: Recording) -> list[str]:
    return replay(recorded, recorded.bmv2_json, recorded.info(), QUICKLY)


def test_the_recordings_are_there() -> None:
    recorded = [recording(name) for name in PATHS]
    assert len(recorded) == 2 * PROGRAMS and len({each.program for each in recorded}) == PROGRAMS
    for each in recorded:
        assert each.switch.startswith("BMv2 ") and each.compiler.startswith("p4c ")
        assert len(each.frames) == FRAMES and any(frame.out for frame in each.frames)
        assert each.program in each.sources
    assert sum(path.stat().st_size for path in RECORDED.rglob("*.gz")) <= MOST_BYTES


def every_recording() -> list[Any]:
    """One of each program before a commit, but for ndn: its programs take seconds to compile."""
    late = [name for name in PATHS if name.endswith(".12") or name.startswith("ndn")]
    return [pytest.param(name, marks=[pytest.mark.thorough] if name in late else []) for name in PATHS]


@pytest.mark.commit_cases(2)
@pytest.mark.parametrize("name", every_recording())
def test_our_compiler_and_switch_do_what_bmv2_did(name: str) -> None:
    """Of the sources as they were recorded."""
    recorded = recording(name)
    assert replay(recorded, *compile_recorded(recorded), QUICKLY) == []


@pytest.mark.commit_cases(2)
@pytest.mark.parametrize("name", every_recording())
def test_with_p4cs_program_our_switch_does_what_bmv2_did(name: str) -> None:
    assert replayed(recording(name)) == []


# ---- A replay finds what differs ----


@pytest.fixture
def changed() -> Recording:
    """A recording of one's own to change; training has registers and counters."""
    return recording("training.11").model_copy(deep=True)


def test_a_byte_of_a_frame_that_came_out(changed: Recording) -> None:
    number, frame = next((i, frame) for i, frame in enumerate(changed.frames) if frame.out)
    port, [first, *more] = next(iter(frame.out.items()))
    frame.out[port] = [first[:-1] + f"{int(first[-1], 16) ^ 1:x}", *more]
    [difference] = replayed(changed)
    assert difference.startswith(f"frame {number}: ") and first in difference


def test_a_frame_by_another_port_and_one_too_few(changed: Recording) -> None:
    number, frame = next((i, frame) for i, frame in enumerate(changed.frames) if len(frame.out) == 1)
    [(port, frames)] = frame.out.items()
    frame.out = {port % 3 + 1: frames}
    assert [each.partition(":")[0] for each in replayed(changed)] == [f"frame {number}"]
    frame.out = {}
    assert [each.partition(":")[0] for each in replayed(changed)] == [f"frame {number}"]


@pytest.mark.parametrize("kind", [int, tuple])
def test_a_cell_of_a_register_or_counter(changed: Recording, kind: type) -> None:
    name, cells = next((n, c) for n, c in changed.state.items() if any(isinstance(v, kind) for v in c.values()))
    index, cell = next(iter(cells.items()))
    cells[index] = (cell[0], cell[1] + 1) if isinstance(cell, tuple) else cell ^ 1
    assert replayed(changed) == [f"{name}: [{index}] {cell} instead of {cells[index]}"]
    del cells[index]
    assert replayed(changed) == [f"{name}: [{index}] {cell} instead of 0"]


def test_an_entry_that_is_missing(changed: Recording) -> None:
    entries = [i for i, (kind, _) in enumerate(changed.inserted) if kind == "TableEntry"]
    del changed.inserted[entries[0] : entries[-1] + 1]
    assert replayed(changed)


def test_a_register_that_the_program_does_not_have(changed: Recording) -> None:
    changed.state["gone"] = {0: 1}
    assert replayed(changed) == ["gone: the program has none"]


# ---- Sources ----


def test_it_says_which_programs_have_changed(tmp_path: Path) -> None:
    for name in PATHS:
        for path, text in recording(name).sources.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(text)
    assert changed_programs(tmp_path) == {}
    include = tmp_path / "p4src" / "include" / "new.p4"
    include.write_text("const bit<8> NEW = 1;\n")
    router = tmp_path / "p4src" / "router.p4"
    router.write_text(
        router.read_text().replace("#include <v1model.p4>", '#include <v1model.p4>\n#include "include/new.p4"')
    )
    assert changed_programs(tmp_path) == {"p4src/router.p4": ["p4src/include/new.p4", "p4src/router.p4"]}
    shutil.rmtree(tmp_path / "p4src")
    assert set(changed_programs(tmp_path)) == {
        r.program for r in map(recording, PATHS) if r.program.startswith("p4src")
    }


def test_a_recording_cannot_write_outside_its_folder(changed: Recording) -> None:
    changed.sources["../outside.p4"] = ""
    with pytest.raises(UserError, match="outside of its program"):
        compile_recorded(changed)


# ---- The file ----


def test_a_recording_is_written_as_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "again.json.gz"
    write_recording(recording("router.11"), path)
    assert read_recording(path) == recording("router.11")
    assert path.read_bytes() == PATHS["router.11"].read_bytes()


@pytest.mark.parametrize("content", [b"", b"\x1f\x8b", b"no gzip"])
def test_what_is_no_recording_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "broken.json.gz"
    path.write_bytes(content)
    with pytest.raises(UserError, match="broken"):
        read_recording(path)


def test_tags_are_taken_off_as_linux_does() -> None:
    tagged = bytes(12) + b"\x81\0\0\1" + b"\x08\0" + bytes(4)
    assert without_tag(tagged) == bytes(12) + b"\x08\0" + bytes(4)
    assert without_tag(bytes(12) + b"\x08\0") == bytes(12) + b"\x08\0"
    assert ends_in_tag(tagged[:19]) and not ends_in_tag(tagged[:20]) and not ends_in_tag(bytes(14))
