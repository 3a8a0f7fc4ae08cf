"""Where a run leaves what it found: results/NAME/STAMP/, and the link results/NAME/latest."""

from __future__ import annotations

import csv
import datetime
import json
import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from switch.errors import UserError

LIBRARIES = (
    "numpy",
    "scikit-learn",
    "scapy",
    "os-ken",
    "finsy",
    "grpcio",
    "protobuf",
    "networkx",
    "matplotlib",
)


class RunFolder:
    """One run's folder: configuration, raw rows, figures, logs."""

    def __init__(self, output: Path, name: str) -> None:
        stamp = datetime.datetime.now().strftime("%Y%m%d-%H%M%S")
        parent = output / name
        try:
            parent.mkdir(parents=True, exist_ok=True)
            self.path = _fresh_folder(parent, stamp)
            latest = parent / "latest"
            latest.unlink(missing_ok=True)
            latest.symlink_to(self.path.name)
        except OSError as error:
            raise UserError(f"cannot write results to {parent}: {error.strerror}") from None
        self.logs = self.path / "logs"
        self.logs.mkdir()

    def write_json(self, name: str, value: Any) -> Path:
        path = self.path / name
        path.write_text(json.dumps(value, indent=2, default=str) + "\n")
        return path

    def write_rows(self, name: str, rows: Sequence[Mapping[str, Any]]) -> Path:
        """Write rows that all have the keys of the first as CSV."""
        path = self.path / name
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, fieldnames=list(rows[0]) if rows else [])
            writer.writeheader()
            writer.writerows(rows)
        return path


def _fresh_folder(parent: Path, stamp: str) -> Path:
    # Two runs can start within one second.
    for attempt in range(1, 1000):
        path = parent / (stamp if attempt == 1 else f"{stamp}-{attempt}")
        try:
            path.mkdir()
        except FileExistsError:
            continue
        return path
    raise UserError(f"a thousand runs started at {stamp}: remove some from {parent}")


def environment() -> dict[str, Any]:
    """Versions and machine, for the record."""
    revision = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    return {
        "gradbed": metadata.version("gradbed"),
        "revision": revision or None,
        "python": platform.python_version(),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "processors": len(os.sched_getaffinity(0)),
        "libraries": {name: metadata.version(name) for name in LIBRARIES},
    }
