"""What the results of a point depend on besides its configuration: the program's own text."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

PACKAGES = ("controller", "experiments", "hosts", "p4src", "switch", "topo")
SUFFIXES = (".py", ".c", ".h", ".p4")

NOT_PART = (
    "experiments/bench",
    "experiments/plotting",
    "experiments/study",
    "controller/rest_docs.py",
    "switch/stf",
    "switch/shims",
)
"""How results are drawn, measured otherwise or asked for does not change what a point finds."""


@functools.cache
def source_digest() -> str:
    """SHA-256 of all sources that a point may run, names and contents."""
    digest = hashlib.sha256()
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*")):
            name = path.relative_to(ROOT).as_posix()
            if path.suffix in SUFFIXES and not name.startswith(NOT_PART):
                digest.update(name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:20]
