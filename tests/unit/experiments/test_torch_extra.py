"""What is said where PyTorch is missing."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from experiments.aggregation import run_aggregation
from experiments.config import AggregationConfig, TorchConfig
from experiments.systems.aggregation.torch_run import run_torch
from switch.errors import UserError


@pytest.fixture
def without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "torch" else find_spec(name))


@pytest.mark.usefixtures("without_torch")
def test_one_line_says_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"^--baselines gloo needs PyTorch: .* -m pip install torch$"):
        run_aggregation(AggregationConfig(baselines=("gloo",), output=tmp_path))
    with pytest.raises(UserError, match=r"^gradbed run torch needs PyTorch: .* -m pip install torch$"):
        run_torch(TorchConfig(script=tmp_path / "train.py", output=tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_a_script_that_is_not_there(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed")
    with pytest.raises(UserError, match=r"there is no script .*train\.py"):
        run_torch(TorchConfig(script=tmp_path / "train.py", output=tmp_path))
