"""The real p4c in place of our compiler: how it is called, and what its version is."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradbed.common.errors import UserError
from gradbed.switch.p4lang.p4c import version_number
from gradbed.switch.program_cache import compiled_files
from tools.conformance.stf_corpus import _compile_with_p4c

# As p4c 1.2.4.2 takes its arguments.
FAKE = """#!/bin/sh
case "$1" in --version) echo "p4c-bm2-ss"; echo "Version 1.2.4.2 (SHA: 1234567.8 BUILD: Release)"; exit 0;; esac
for argument; do
    case "$argument" in
        --p4runtime-files=*.txt) echo 'pkg_info { arch: "v1model" }' > "${argument#*=}";;
        --p4runtime-files=*) echo "Could not detect p4runtime info file format" >&2; exit 1;;
        -o*) echo '{"program": "fake"}' > "${argument#-o}";;
    esac
done
"""


@pytest.fixture
def p4c(tmp_path: Path) -> str:
    path = tmp_path / "p4c-bm2-ss"
    path.write_text(FAKE)
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GRADBED_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "program.p4"
    path.write_text("// nothing\n")
    return path


def test_p4info_is_asked_for_with_a_suffix_that_every_p4c_knows(p4c: str, source: Path) -> None:
    files = compiled_files(source, {}, p4c)
    assert "v1model" in files.p4info.read_text()
    assert "fake" in files.json.read_text()
    assert _compile_with_p4c(p4c, source) == {"program": "fake"}


def test_p4cs_words_are_shown(p4c: str, source: Path) -> None:
    Path(p4c).write_text("#!/bin/sh\necho 'program.p4(1): [--Werror=x] error' >&2; exit 1")
    with pytest.raises(UserError, match=r"(?s)p4c refuses .*program.p4:.*--Werror=x"):
        compiled_files(source, {}, p4c)


def test_version(p4c: str) -> None:
    assert version_number(p4c) == (1, 2, 4, 2)
    Path(p4c).write_text("#!/bin/sh\necho 'p4c-bm2-ss'")
    assert version_number(p4c) == ()
