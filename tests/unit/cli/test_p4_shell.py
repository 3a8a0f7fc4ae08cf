"""gradbed p4 shell: its environment, made once, and its command line. No network: pip is a stand-in."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from gradbed.common.errors import UserError
from gradbed.switch.p4lang import p4runtime_shell
from gradbed.switch.p4lang.p4runtime_shell import installed_python, shell_arguments, shell_python
from tests.command import gradbed

ROOT = Path(__file__).resolve().parents[3]

PYTHON = """#!/bin/sh
# A stand-in for Python: makes itself an environment, pretends to install, and says how it was called.
echo "$@" >>{calls}
case "$2" in
    venv) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
    pip) {pip} ;;
    p4runtime_sh) echo "shell: $*" ;;
esac
"""


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GRADBED_CACHE", str(tmp_path / "cache"))
    return tmp_path / "calls"


def stand_in(calls: Path, monkeypatch: pytest.MonkeyPatch, pip: str = "exit 0") -> None:
    python = calls.with_name("python")
    python.write_text(PYTHON.format(calls=calls, pip=pip))
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))


def commands(calls: Path) -> list[str]:
    return [line.split()[1] for line in calls.read_text().splitlines()]


def test_the_environment_is_made_once(
    calls: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stand_in(calls, monkeypatch)
    python = shell_python()
    assert python.is_relative_to(calls.parent / "cache") and os.access(python, os.X_OK)
    assert commands(calls) == ["venv", "pip"]
    assert p4runtime_shell.PACKAGE in calls.read_text()
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("gradbed: installing p4runtime-shell")
    assert shell_python() == python
    assert commands(calls) == ["venv", "pip"] and capsys.readouterr().err == ""
    # One that is broken is made again.
    python.unlink()
    assert shell_python() == python
    assert commands(calls) == ["venv", "pip"] * 2


def test_pip_that_fails(calls: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(calls, monkeypatch, "echo collecting; echo ERROR: no such package >&2; exit 1")
    for _ in range(2):
        with pytest.raises(UserError, match=r"pip failed: ERROR: no such package$"):
            shell_python()
    stand_in(calls, monkeypatch)
    assert shell_python().exists()


def test_cache_that_cannot_be_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADBED_CACHE", "/proc/nowhere")
    with pytest.raises(UserError, match="set GRADBED_CACHE"):
        shell_python()


def test_arguments(tmp_path: Path) -> None:
    (tmp_path / "p4info.txt").touch()
    (tmp_path / "program.json").touch()
    config = f"{tmp_path}/p4info.txt,{tmp_path}/program.json"
    wanted = "-m p4runtime_sh --grpc-addr unix:/s --device-id 7 --election-id 0,9"
    assert shell_arguments("unix:/s", 7, "0,9", None) == wanted.split()
    assert shell_arguments("unix:/s", 7, "0,9", config) == [*wanted.split(), "--config", config]


@pytest.mark.parametrize(
    ("election_id", "config", "message"),
    [
        ("1", None, "give HIGH,LOW"),
        ("0,-1", None, "give HIGH,LOW"),
        ("0,18446744073709551616", None, "give HIGH,LOW"),
        ("0,1", "one", "give P4INFO,JSON"),
        ("0,1", "/nowhere/a,/nowhere/b", "no such file: /nowhere/a"),
    ],
)
def test_mistakes(election_id: str, config: str | None, message: str) -> None:
    with pytest.raises(UserError, match=message):
        shell_arguments("127.0.0.1:9559", 1, election_id, config)


def test_the_command(calls: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(calls, monkeypatch)
    shell_python()
    monkeypatch.undo()
    outcome = gradbed("p4", "shell", "--device-id", 3, GRADBED_CACHE=calls.parent / "cache")
    assert outcome.stdout.strip() == (
        "shell: -m p4runtime_sh --grpc-addr 127.0.0.1:9559 --device-id 3 --election-id 0,1"
    ), outcome.stderr


def test_it_can_be_installed_beforehand(calls: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(calls, monkeypatch)
    assert installed_python() is None
    python = shell_python()
    assert installed_python() == python
    monkeypatch.undo()
    outcome = gradbed("p4", "shell", "--install", GRADBED_CACHE=calls.parent / "cache")
    assert outcome.stdout == f"p4runtime-shell is installed, and runs with {python}\n", outcome.stderr
