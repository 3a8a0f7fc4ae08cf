"""The real p4c, where it is installed, in place of our compiler."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from gradbed.common.errors import UserError


def find_p4c() -> str | None:
    """Return the path of p4c's BMv2 compiler: GRADBED_P4C, else p4c-bm2-ss in PATH; None if it is not installed."""
    return shutil.which(os.environ.get("GRADBED_P4C", "p4c-bm2-ss"))


def require_p4c() -> str:
    """Find it as find_p4c does; UserError if it is not installed."""
    found = find_p4c()
    if found is None:
        raise UserError(
            "p4c's p4c-bm2-ss is not installed: take p4lang's package p4lang-p4c (Ubuntu), `WITH_BMV2=1 vagrant up`, "
            "or a build of your own that is in PATH or that GRADBED_P4C names (docs/conformance.md)"
        )
    return found


def version(p4c: str) -> str:
    """Return an identity of this p4c for the cache."""
    return subprocess.run([p4c, "--version"], capture_output=True, text=True, check=False).stdout


def version_number(p4c: str) -> tuple[int, ...]:
    """Return (1, 2, 4, 2) of "Version 1.2.4.2 (SHA: ...)"; () if it has none."""
    found = re.search(r"\b\d+(?:\.\d+)+", version(p4c))
    return tuple(map(int, found[0].split("."))) if found else ()


def compile_with_p4c(
    p4c: str,
    source: Path,
    defines: Mapping[str, str],
    json: Path,
    p4info: Path,
    include_dirs: Sequence[Path] = (),
) -> None:
    """Write BMv2 JSON and P4Info (as text) of `source`. UserError with p4c's words if it refuses.

    p4info: its name ends in .txt, the one suffix for text that every p4c knows (.txtpb: from 1.2.4.8 on).
    """
    command = [
        p4c,
        "--arch=v1model",
        *(f"-I{folder}" for folder in include_dirs),
        *(f"-D{name}={value}" for name, value in sorted(defines.items())),
        f"--p4runtime-files={p4info}",
        f"-o{json}",
        str(source),
    ]
    outcome = subprocess.run(command, capture_output=True, text=True, check=False)
    if outcome.returncode != 0:
        raise UserError(f"p4c refuses {source}:\n{outcome.stderr.strip()}")
