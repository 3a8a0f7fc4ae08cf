"""What identifies a trial: a digest of all that its results depend on, which are its configuration, the files that
this names, and the program's own text.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib
import json
from pathlib import Path
from typing import Any

from gradbed.common.errors import UserError
from gradbed.experiments.configuration.trial import TrialConfiguration
from gradbed.experiments.scale import Scale
from gradbed.experiments.study.definition import TrialSpec
from gradbed.experiments.systems import systems

# ---- The program's own text ----


ROOT = Path(__file__).resolve().parents[3]

PACKAGES = ("common", "controller", "emulation", "experiments", "formats", "hosts", "p4src", "switch", "topo")
SUFFIXES = (".py", ".c", ".h", ".p4")

STILL_PART = ("experiments/study/running/worker.py",)
"""Makes the rows of a trial."""

NOT_PART = (
    "experiments/plotting",
    "experiments/results",
    "experiments/study",
    *(path.relative_to(ROOT).as_posix() for path in ROOT.glob("experiments/systems/*/figures.py")),
    "switch/stf",
    "switch/shims",
)
"""How results are drawn, measured otherwise or asked for does not change what a trial finds."""


@functools.cache
def source_digest(system: str) -> str:
    """SHA-256 of all sources that a trial of a system may run, names and contents: those of this tree, and the whole
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
    """Of what machines that share the trials of a sweep must have in common: all that a trial may run, and how trials
    travel between them."""
    digest = hashlib.sha256(source_digest(system).encode())
    for path in (*sorted(Path(__file__).parent.glob("*.py")), ROOT / "experiments/results/run_folder.py"):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


# ---- A trial ----


DIGEST_CHARACTERS = 20


def identity(system: str, trial: TrialSpec, scale: Scale) -> dict[str, Any]:
    """System, resolved configuration (with every default, and what does not matter set to one value), what is in the
    files that it names, seed, scale and the program's sources, as plain JSON values."""
    return {
        "system": system,
        "configuration": trial.configuration.canonical().model_dump(mode="json"),
        "files": _files(trial.configuration),
        "seed": trial.seed,
        "scale_factor": scale.factor,
        "sources": source_digest(system),
    }


def _files(configuration: TrialConfiguration) -> dict[str, str]:
    """By path. The trial itself says what is wrong with files that cannot be read."""
    found = {}
    with contextlib.suppress(UserError):
        for path in configuration.files():
            with contextlib.suppress(OSError):
                state = path.stat()
                found[str(path)] = _digest_of_file(path, state.st_mtime_ns, state.st_size)
    return found


@functools.cache
def _digest_of_file(path: Path, _mtime_ns: int, _size: int) -> str:
    found = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            found.update(block)
    return found.hexdigest()


def digest(identified: Any) -> str:
    """Equal for equal JSON values, however they were written down."""
    text = json.dumps(identified, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:DIGEST_CHARACTERS]
