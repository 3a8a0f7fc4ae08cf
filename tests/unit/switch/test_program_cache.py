"""P4 programs compiled once."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from gradbed.switch import program_cache
from gradbed.switch.compiler import CompileError
from gradbed.switch.p4lang.p4c import find_p4c
from gradbed.switch.program_cache import compiled_files

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of p4src/, and an empty cache."""
    monkeypatch.setenv("GRADBED_CACHE", str(tmp_path / "cache"))
    shutil.copytree(ROOT / "p4src", tmp_path / "p4src")
    return tmp_path / "p4src" / "aggregation.p4"


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The sources that are compiled and not taken from the cache."""
    done: list[Path] = []
    compile_ = program_cache._compile

    def counted(source: Path, *rest: object) -> None:
        done.append(source)
        compile_(source, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(program_cache, "_compile", counted)
    return done


def lanes_of(files: program_cache.CompiledFiles) -> int:
    types = {t["name"]: t for t in json.loads(files.json.read_text())["header_types"]}
    return len(types["lanes_t"]["fields"])


def test_a_second_time_comes_from_the_cache(source: Path, compilations: list[Path]) -> None:
    first = compiled_files(source, {"LANES": "32"})
    assert compiled_files(source, {"LANES": "32"}) == first
    assert compilations == [source]
    assert 'name: "AggregationIngress.forwarding.ipv4_routes"' in first.p4info.read_text()


def test_definitions_and_included_files_count(source: Path, compilations: list[Path]) -> None:
    assert lanes_of(compiled_files(source, {"LANES": "32"})) == 32
    assert lanes_of(compiled_files(source, {"LANES": "64"})) == 64
    included = source.parent / "include" / "aggregation" / "slots.p4"
    included.write_text(included.read_text().replace("#define SLOTS 4096", "#define SLOTS 16"))
    changed = json.loads(compiled_files(source, {"LANES": "32"}).json.read_text())
    sizes = {r["name"].split(".")[-1]: r["size"] for r in changed["register_arrays"]}
    assert (sizes["slot_owner"], sizes["slot_sums"]) == (16, 16 * 32)
    assert len(compilations) == 3


def test_a_file_of_another_folder_counts(source: Path) -> None:
    """What #include names may lie anywhere, and be called anything."""
    included = source.parents[1] / "common" / "ports.h"
    included.parent.mkdir()
    program = source.parent / "router.p4"
    named = '#define WHERE "../common/ports.h"\n#include WHERE\n'
    program.write_text(program.read_text().replace("const bit<32> PORTS = 512;\n", named))
    sizes = []
    for size in (16, 32):
        included.write_text(f"const bit<32> PORTS = {size};\n")
        arrays = json.loads(compiled_files(program, {}).json.read_text())["counter_arrays"]
        sizes += [array["size"] for array in arrays if not array["is_direct"]]
    assert sizes == [16, 32]


def test_a_wrong_program_leaves_nothing_in_the_cache(source: Path) -> None:
    source.write_text(source.read_text().replace("CountArrivals() arrivals;", "CountArrivals() arrivals"))
    for _ in range(2):
        with pytest.raises(CompileError, match=r"aggregation.p4:\d+:\d+: error"):
            compiled_files(source, {})


def test_p4c_in_place_of_our_compiler(source: Path, compilations: list[Path]) -> None:
    p4c = find_p4c()
    if p4c is None:
        pytest.skip("p4c's p4c-bm2-ss is not installed")
    ours, theirs = compiled_files(source, {"LANES": "32"}), compiled_files(source, {"LANES": "32"}, p4c)
    assert ours != theirs
    assert lanes_of(theirs) == 32
    assert compilations == [source]
