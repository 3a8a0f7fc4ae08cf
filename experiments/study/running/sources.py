"""What the results of a point depend on besides its configuration: the program's own text."""

from __future__ import annotations

import functools
import hashlib
import importlib
from pathlib import Path

from gradbed.experiments.systems import systems

ROOT = Path(__file__).resolve().parents[3]

PACKAGES = ("common", "controller", "emulation", "experiments", "formats", "hosts", "p4src", "switch", "topo")
SUFFIXES = (".py", ".c", ".h", ".p4")

STILL_PART = ("experiments/study/running/measure.py",)
"""Makes the rows of a point."""

NOT_PART = (
    "experiments/bench",
    "experiments/plotting",
    "experiments/records",
    "experiments/study",
    *(f"experiments/systems/{folder.parent.name}/figures" for folder in ROOT.glob("experiments/systems/*/figures")),
    "switch/stf",
    "switch/shims",
)
"""How results are drawn, measured otherwise or asked for does not change what a point finds."""


@functools.cache
def source_digest(system: str) -> str:
    """SHA-256 of all sources that a point of a system may run, names and contents: those of this tree, and the whole
    package of a system outside it."""
    digest = hashlib.sha256()
    for folder in (*(ROOT / package for package in PACKAGES), *_outside(system)):
        for path in sorted(folder.rglob("*")):
            name = path.relative_to(folder.parent).as_posix()
            if path.suffix in SUFFIXES and (name in STILL_PART or not name.startswith(NOT_PART)):
                digest.update(name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:20]


def _outside(system: str) -> list[Path]:
    package = importlib.import_module(systems()[system].partition(".")[0])
    folders = [Path(place).resolve() for place in getattr(package, "__path__", ())]
    return [folder for folder in folders if not folder.is_relative_to(ROOT)]


def sweep_digest(system: str) -> str:
    """Of what machines that share the points of a sweep must have in common: all that a point may run, and how points
    travel between them."""
    digest = hashlib.sha256(source_digest(system).encode())
    for path in (*sorted(Path(__file__).parent.glob("*.py")), ROOT / "experiments/records/run_files.py"):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:12]
