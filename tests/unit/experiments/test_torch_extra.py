"""What is said where PyTorch is missing."""

from __future__ import annotations

import importlib.util
import platform
import sys
from pathlib import Path
from typing import Any

import pytest

from gradbed.common.errors import UserError
from gradbed.experiments import torch_scripts
from gradbed.experiments.study.command import run_system
from gradbed.experiments.study.running.executors import RunOptions
from gradbed.hosts.torch_hook.torch_extra import install_torch

INSTALLED_BY = r"needs PyTorch: .* -m gradbed.hosts.torch_hook.torch_extra installs it$"


@pytest.fixture
def without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "torch" else find_spec(name))


def run(tmp_path: Path, **values: object) -> int:
    return run_system("aggregation", values, 1, RunOptions(tmp_path))


@pytest.mark.usefixtures("without_torch")
def test_one_line_says_what_to_install_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=f"^--baselines gloo {INSTALLED_BY}"):
        run(tmp_path, workload={"baselines": ["gloo"]})
    with pytest.raises(UserError, match=f"^--exchange gloo {INSTALLED_BY}"):
        run(tmp_path, workload={"exchange": "gloo"})
    with pytest.raises(UserError, match=f"^gradbed run torch {INSTALLED_BY}"):
        run(tmp_path, workload={"kind": "script", "path": str(tmp_path / "train.py")})
    assert list(tmp_path.iterdir()) == []


STAND_IN = """#!/bin/sh
# A stand-in for Python with pip and uv.
shift 2
echo "$@" >>{calls}
case "$*" in
    "pip index versions torch") echo "torch (2.9.1)"; echo "Available versions: {versions}" ;;
    *{broken}*) echo "WARNING: hm"; echo "ERROR: no such thing" >&2; exit 1 ;;
esac
"""


def installed_by(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, versions: str, machine: str = "x86_64", broken: str = "nothing"
) -> list[str]:
    """The commands that install_torch gives."""
    python, calls = tmp_path / "python", tmp_path / "calls"
    python.write_text(STAND_IN.format(calls=calls, versions=versions, broken=broken))
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    monkeypatch.setattr(platform, "machine", lambda: machine)
    install_torch()
    first, *others = calls.read_text().splitlines()
    assert first == "pip index versions torch"
    return others


@pytest.mark.usefixtures("without_torch")
def test_the_newest_build_for_the_processor_that_pip_is_offered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = installed_by(tmp_path, monkeypatch, "2.9.1, 2.9.0+cpu, 2.9.0, 2.8.0+cpu, 2.8.0")
    assert commands == ["pip install --quiet torch==2.9.0+cpu"]


@pytest.mark.usefixtures("without_torch")
def test_no_build_for_cuda_where_pip_knows_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert installed_by(tmp_path, monkeypatch, "2.9.1, 2.9.0") == [
        "pip install --quiet uv",
        f"uv pip install --quiet --python {tmp_path}/python --torch-backend cpu torch",
    ]


@pytest.mark.usefixtures("without_torch")
def test_the_only_build_of_other_machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert installed_by(tmp_path, monkeypatch, "2.9.1", machine="aarch64") == ["pip install --quiet torch"]


@pytest.mark.usefixtures("without_torch")
def test_pytorch_that_cannot_be_had_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        UserError, match=r"^PyTorch cannot be installed: ERROR: no such thing \(is there a network\?\)$"
    ):
        installed_by(tmp_path, monkeypatch, "2.9.1", broken="install")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, r"there is no script .*train\.py"),
        ({"clock": "virtual"}, "--clock: a PyTorch script needs the real clock"),
        ({"workload": {"jobs": 2}}, "--jobs: a script is one job"),
        ({"workload": {"baselines": ["ring"]}}, "--baselines: a script runs once"),
    ],
)
def test_what_a_script_cannot_do(
    values: dict[str, Any], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch_scripts, "require_torch", lambda what: None)
    script = tmp_path / "train.py"
    if values:
        script.write_text("")
    workload = {"kind": "script", "workers": 2, "path": str(script), **values.get("workload", {})}
    with pytest.raises(UserError, match=message):
        run(tmp_path, **{**values, "workload": workload})
