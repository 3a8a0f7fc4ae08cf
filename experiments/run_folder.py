"""Where a run leaves what it found: results/NAME/STAMP/, and the link results/NAME/latest."""

from __future__ import annotations

import datetime
import json
import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from experiments.tables import write_tables
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
    "scipy",
    "PyYAML",
    "fastparquet",
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

    @classmethod
    def reopen(cls, path: Path) -> RunFolder:
        """A folder that is there already."""
        folder = cls.__new__(cls)
        folder.path = path
        folder.logs = path / "logs"
        folder.logs.mkdir(exist_ok=True)
        return folder

    def write_rows(self, name: str, rows: Sequence[Mapping[str, Any]]) -> Path:
        """Write rows as CSV under this name, and as Parquet beside it."""
        path = self.path / name
        write_tables(rows, path)
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
        "processor": processor_model(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "libraries": {name: _version(name) for name in LIBRARIES},
    }


def processor_model(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """As the kernel calls it; on machines where it does not say, the architecture."""
    for line in cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.machine()


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
