"""examples/torch_digits.py as a module: what a single process computes with it is the reference of its runs."""

from __future__ import annotations

import importlib.util
from typing import Any

from tests.command import ROOT

TORCH_DIGITS = ROOT / "examples" / "torch_digits.py"


def torch_digits() -> Any:
    spec = importlib.util.spec_from_file_location("torch_digits", TORCH_DIGITS)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
