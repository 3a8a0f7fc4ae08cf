"""The executables: what gradbed p4 shims writes, run as programs."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gradbed.common.errors import UserError
from gradbed.switch.shims import SHIMS, write, write_shims


def run(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, cwd=cwd)


@pytest.mark.parametrize("name", SHIMS)
def test_each_of_them_runs_and_shows_its_options(name: str, tmp_path: Path) -> None:
    written = write_shims(tmp_path / "new" / "bin")
    assert sorted(path.name for path in written) == sorted(SHIMS)
    # A folder that has modules of the same names, as a script's own folder might.
    for module in ("switch", "sys", "topo"):
        (tmp_path / f"{module}.py").write_text("raise SystemExit('the wrong module')")
        shutil.copy(tmp_path / f"{module}.py", tmp_path / "new" / "bin")
    outcome = run(tmp_path / "new" / "bin" / name, "--help", cwd=tmp_path)
    assert (outcome.returncode, outcome.stderr) == (0, "")
    assert "--" in outcome.stdout


def test_their_status_is_that_of_the_program(tmp_path: Path) -> None:
    write_shims(tmp_path)
    outcome = run(tmp_path / "p4c-bm2-ss", "missing.p4", cwd=tmp_path)
    assert (outcome.returncode, outcome.stderr) == (1, "error: missing.p4: No such file or directory\n")


def test_they_are_found_in_the_path(tmp_path: Path) -> None:
    write_shims(tmp_path)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    outcome = subprocess.run(["p4c", "--version"], capture_output=True, text=True, check=True, env=environment)
    assert outcome.stdout.startswith("p4c\nVersion ")


@pytest.mark.parametrize("name", SHIMS)
def test_nobody_reads_to_the_end(name: str, tmp_path: Path) -> None:
    write_shims(tmp_path)
    reader, writer = os.pipe()
    os.close(reader)
    outcome = subprocess.run(
        [tmp_path / name, "--help"], stdout=writer, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(writer)
    assert (outcome.returncode, outcome.stderr) == (128 + signal.SIGPIPE, "")


def test_switches_may_start_with_the_arbitration_of_bmv2(tmp_path: Path) -> None:
    for name in write_shims(tmp_path, bmv2_arbitration=True):
        assert ("['--bmv2-arbitration', *sys.argv[1:]]" in name.read_text()) == (
            name.name in ("simple_switch", "simple_switch_grpc")
        )
        assert run(name, "--help", cwd=tmp_path).returncode == 0


def test_an_interpreter_that_no_first_line_can_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "it's a folder" / ("deep" * 40)
    folder.mkdir(parents=True)
    interpreter = folder / "python3"
    interpreter.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    interpreter.chmod(0o755)
    monkeypatch.setattr(write.sys, "executable", str(interpreter))
    write_shims(tmp_path)
    assert (tmp_path / "p4c").read_text().startswith("#!/bin/sh\n")
    outcome = run(tmp_path / "p4c", "--version", cwd=tmp_path)
    assert (outcome.returncode, outcome.stderr) == (0, "")
    assert outcome.stdout.startswith("p4c\n")


def test_files_that_are_there_are_replaced_and_not_written_into(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("the real p4c")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "p4c").symlink_to(precious)
    write_shims(tmp_path / "bin")
    assert precious.read_text() == "the real p4c"
    assert not (tmp_path / "bin" / "p4c").is_symlink()
    assert sorted(path.name for path in (tmp_path / "bin").iterdir()) == sorted(SHIMS)


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"cannot write .*file"):
        write_shims(tmp_path / "file")
