"""gradbed doctor tells of what is there and of what is not, and changes nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gradbed.cli import layers
from gradbed.cli.commands.doctor import doctor, findings
from gradbed.common import c_library


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH without any program but a C compiler, an empty home, and a user without root."""
    programs = tmp_path / "bin"
    programs.mkdir()
    add(programs, "my-cc")
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setenv("CC", str(programs / "my-cc"))
    monkeypatch.setenv("GRADBED_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("GRADBED_CALIBRATION", str(tmp_path / "calibration.json"))
    for name in ("GRADBED_BMV2", "GRADBED_P4C"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setattr("gradbed.common.c_library.compiler", c_library.compiler.__wrapped__)
    return programs


def add(programs: Path, name: str) -> None:
    (programs / name).write_text("#!/bin/sh\necho made for a test\n")
    (programs / name).chmod(0o755)


def states() -> dict[str, str]:
    return {each.name: each.state for each in findings()}


def test_a_bare_machine(machine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = states()
    assert found["C compiler"] == found["cache"] == found["processors"] == "ok"
    assert found["kernel"] == "unknown", "without root nobody can tell"
    for name in ("root", "BMv2", "p4c", "calibration", "Chromium"):
        assert found[name] == "missing"
    assert doctor() == 0
    printed = capsys.readouterr().out.splitlines()
    remedies = [line for line in printed if line.startswith("        -> ")]
    assert len(remedies) == sum(state != "ok" for state in found.values())
    assert not (machine.parent / "cache").exists() and not (machine.parent / "calibration.json").exists()


def test_what_is_installed_is_found(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("simple_switch", "simple_switch_CLI", "p4c-bm2-ss", "chromium"):
        add(machine, name)
    assert states()["BMv2"] == "missing", "simple_switch_grpc is not there"
    add(machine, "simple_switch_grpc")
    found = states()
    assert found["BMv2"] == found["p4c"] == found["Chromium"] == "ok"
    monkeypatch.setattr(layers, "is_installed", lambda layer: layer == "p4")
    found = states()
    assert (found["Python packages, p4"], found["Python packages, study"]) == ("ok", "missing")
    assert found["calibration"] == "unknown"


def test_without_a_c_compiler_nothing_works(machine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (machine / "my-cc").unlink()
    assert doctor() == 1
    assert "missing C compiler" in capsys.readouterr().out


@pytest.mark.root
def test_as_root_the_kernel_is_asked() -> None:
    if os.geteuid() == 0:
        assert states()["veth"] == states()["network namespaces"] == "ok"
