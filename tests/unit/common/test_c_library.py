"""C to shared libraries."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

from gradbed.common import c_library
from gradbed.common.c_library import shared_library
from gradbed.common.errors import UserError


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADBED_CACHE", str(tmp_path / "cache"))


def answer(library: Path) -> int:
    return int(ctypes.CDLL(str(library)).answer())


def test_compiled_once_and_again_when_something_changes(tmp_path: Path) -> None:
    first = shared_library("t", [], "int answer(void) { return 41; }")
    built = first.stat().st_mtime_ns
    assert shared_library("t", [], "int answer(void) { return 41; }").stat().st_mtime_ns == built
    assert answer(first) == 41
    assert answer(shared_library("t", [], "int answer(void) { return 42; }")) == 42
    assert shared_library("t", [], "int answer(void) { return 41; }", optimise="-O0") != first


def test_a_terminal_shows_what_may_take_long(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def build(value: int) -> str:
        shared_library("t", [], f"int answer(void) {{ return {value}; }}", notice="building t")
        return capsys.readouterr().err

    assert build(1) == ""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert [build(2), build(2)] == ["gradbed: building t ...\n", ""]


def test_headers_count(tmp_path: Path) -> None:
    header = tmp_path / "value.h"
    text = '#include "value.h"\nint answer(void) { return VALUE; }'
    header.write_text("#define VALUE 1\n")
    assert answer(shared_library("t", [], text, include_dirs=[tmp_path])) == 1
    header.write_text("#define VALUE 2\n")
    assert answer(shared_library("t", [], text, include_dirs=[tmp_path])) == 2


def test_a_refused_program_is_not_cached() -> None:
    for _ in range(2):
        with pytest.raises(RuntimeError, match="refused t"):
            shared_library("t", [], "int answer(void) { return }")


@pytest.mark.parametrize(
    ("variables", "packages", "words"),
    [
        ({"CC": "no-such-compiler"}, (), r"no C compiler found \(no-such-compiler\): CC names one"),
        (
            {"CC": "", "PATH": "/nowhere"},
            ("gcc", "libc6-dev"),
            r"no C compiler found \(cc, gcc or clang\): install one",
        ),
    ],
)
def test_no_compiler(
    variables: dict[str, str], packages: tuple[str, ...], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    c_library.compiler.cache_clear()
    try:
        with pytest.raises(UserError, match=words) as refusal:
            shared_library("t", [], "int answer(void) { return 0; }")
        assert getattr(refusal.value, "packages", ()) == packages
    finally:
        c_library.compiler.cache_clear()


def test_a_cache_that_cannot_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADBED_CACHE", "/proc/no-such-folder")
    with pytest.raises(UserError):
        shared_library("t", [], "int answer(void) { return 0; }")
