"""What is wrong with the C of the runtime library is told without a traceback."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gradbed.common.c_library import shared_library
from gradbed.common.errors import UserError
from gradbed.switch.runtime import library


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADBED_CACHE", str(tmp_path / "cache"))


def test_a_source_that_the_compiler_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = tmp_path / "bloom_filter.c"
    wrong.write_text("int gb_bloom_filter_contains(void) { return }\n")
    monkeypatch.setattr(library, "RUNTIME_SOURCES", (wrong,))
    with pytest.raises(UserError, match=r"(?s)refused gradbed-runtime:\n.*bloom_filter\.c:1:\d+: error: "):
        library.build_runtime()


def test_a_function_that_no_file_defines() -> None:
    calls = "int gb_bloom_filter_contains(void); int gb_program(void) { return gb_bloom_filter_contains(); }"
    path = shared_library("program", (), calls)
    text = "no C file defines gb_bloom_filter_contains (switch/runtime/externs)"
    with pytest.raises(UserError, match=f"^{re.escape(text)}$"):
        library.program_library(path)
    path.write_bytes(b"no library")
    with pytest.raises(OSError, match=r"too short|invalid ELF"):
        library.program_library(path)
