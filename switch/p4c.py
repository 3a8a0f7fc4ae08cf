"""The real p4c, where it is installed, in place of our compiler."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from switch.errors import UserError


def find_p4c() -> str | None:
    """Path of p4c's BMv2 compiler: GRADBED_P4C, else p4c-bm2-ss in PATH; None if it is not installed."""
    return shutil.which(os.environ.get("GRADBED_P4C", "p4c-bm2-ss"))


def version(p4c: str) -> str:
    """What tells one p4c from another, for the cache."""
    return subprocess.run([p4c, "--version"], capture_output=True, text=True, check=False).stdout


def compile_with_p4c(p4c: str, source: Path, defines: Mapping[str, str], json: Path, p4info: Path) -> None:
    """Write BMv2 JSON and P4Info (as text) of `source`. UserError with p4c's words if it refuses."""
    command = [
        p4c,
        "--arch=v1model",
        *(f"-D{name}={value}" for name, value in sorted(defines.items())),
        f"--p4runtime-files={p4info}",
        f"-o{json}",
        str(source),
    ]
    outcome = subprocess.run(command, capture_output=True, text=True, check=False)
    if outcome.returncode != 0:
        raise UserError(f"p4c refuses {source}:\n{outcome.stderr.strip()}")
