"""What is said where PyTorch is missing."""

from __future__ import annotations

import importlib.util
import platform
import sys
from pathlib import Path

import pytest
from experiments.aggregation import run_aggregation
from experiments.config import AggregationConfig, TorchConfig
from experiments.systems.aggregation.torch_run import run_torch

from hosts.torch_hook.torch_extra import install_torch
from switch.errors import UserError


@pytest.fixture
def without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "torch" else find_spec(name))


@pytest.mark.usefixtures("without_torch")
def test_one_line_says_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(
        UserError, match=r"^--baselines gloo needs PyTorch: .* -m hosts.torch_hook.torch_extra installs it$"
    ):
        run_aggregation(AggregationConfig(baselines=("gloo",), output=tmp_path))
    with pytest.raises(
        UserError, match=r"^gradbed run torch needs PyTorch: .* -m hosts.torch_hook.torch_extra installs it$"
    ):
        run_torch(TorchConfig(script=tmp_path / "train.py", output=tmp_path))
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


def test_a_script_that_is_not_there(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed")
    with pytest.raises(UserError, match=r"there is no script .*train\.py"):
        run_torch(TorchConfig(script=tmp_path / "train.py", output=tmp_path))
