"""PyTorch is an optional extra: loaded where it is needed, and installed, without CUDA, by

python -m gradbed.hosts.torch_hook.torch_extra
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import platform
import re
import subprocess
import sys

from gradbed.common.errors import UserError

_MODULE = "gradbed.hosts.torch_hook.torch_extra"


def require_torch(what: str) -> None:
    """UserError if PyTorch is not installed; it is not loaded. what: that needs it."""
    if importlib.util.find_spec("torch") is None:
        raise UserError(f"{what} needs PyTorch: {sys.executable} -m {_MODULE} installs it")


def load_torch(what: str) -> None:
    """Load it, in the launcher before the first fork: that takes seconds, which every agent would need again."""
    require_torch(what)
    for name in ("torch", "torch.distributed", "torch.nn.parallel"):
        importlib.import_module(name)
    # What DistributedDataParallel and optimizers load when they are used first, where this version has it.
    with contextlib.suppress(ImportError):
        importlib.import_module("torch._dynamo")


def install_torch() -> None:
    """Install a build for the processor alone into this environment, unless PyTorch is there; UserError if it fails.

    On Linux on x86-64 the build that pip takes by itself is for CUDA, 3 GB with what it needs. So a CPU build is
    taken from wherever pip is told to look (PIP_FIND_LINKS, PIP_EXTRA_INDEX_URL) if there is one, and else left to
    uv, which knows where PyTorch publishes them. Elsewhere there are no others.
    """
    if importlib.util.find_spec("torch") is not None:
        return
    print("gradbed: installing PyTorch without CUDA (some 200 MB to download)", file=sys.stderr, flush=True)
    offered = re.search(r"\b\d[\w.]*\+cpu\b", _run("pip", "index", "versions", "torch"))
    if offered is not None:
        _run("pip", "install", "--quiet", f"torch=={offered[0]}")
    elif platform.system() == "Linux" and platform.machine() == "x86_64":
        _run("pip", "install", "--quiet", "uv")
        _run("uv", "pip", "install", "--quiet", "--python", sys.executable, "--torch-backend", "cpu", "torch")
    else:
        _run("pip", "install", "--quiet", "torch")
    importlib.invalidate_caches()


def _run(module: str, *arguments: str) -> str:
    """Return what a module of this Python prints."""
    command = [sys.executable, "-I", "-m", module, *arguments]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        reasons = [line for line in said if line.lower().startswith("error")] or said or ["no reason given"]
        raise UserError(f"PyTorch cannot be installed: {reasons[-1]} (is there a network?)")
    return done.stdout


if __name__ == "__main__":
    try:
        install_torch()
    except UserError as error:
        sys.exit(f"error: {error}")
