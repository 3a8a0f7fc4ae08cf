"""PyTorch is an optional extra: loaded where it is needed, and asked for in one line where it is missing."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import sys

from switch.errors import UserError


def require_torch(what: str) -> None:
    """UserError if PyTorch is not installed; it is not loaded. what: that needs it."""
    if importlib.util.find_spec("torch") is None:
        raise UserError(f"{what} needs PyTorch: {sys.executable} -m pip install torch")


def load_torch(what: str) -> None:
    """Load it, in the launcher before the first fork: that takes seconds, which every agent would need again."""
    require_torch(what)
    for name in ("torch", "torch.distributed", "torch.nn.parallel"):
        importlib.import_module(name)
    # What DistributedDataParallel and optimizers load when they are used first, where this version has it.
    with contextlib.suppress(ImportError):
        importlib.import_module("torch._dynamo")
