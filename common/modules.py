"""Modules by name. In a checkout the rooms (topo, hosts, ...) are packages of their own; installed by pip they lie in
the package gradbed, so that a `topo.py` of the user's cannot take their place (docs/architecture.md).

python -m common.modules MODULE ARGUMENT... is python -m MODULE ARGUMENT... with fewer searches for cycles.
"""

from __future__ import annotations

import gc
import importlib
import runpy
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PREFIX = __name__.removesuffix("common.modules")
"""Before the name of every module of ours: nothing in a checkout."""

INSTALLED = PREFIX != ""
"""Whether this is a package that pip has installed, not a checkout."""

IMPORT_FOLDER = Path(__file__).resolve().parents[1 + PREFIX.count(".")]
"""The entry of sys.path under which our modules are found."""

COMMAND = "gradbed" if INSTALLED else "./gradbed"
"""How people call the command line."""

YOUNG_OBJECTS = 50_000
"""Made since the last search for cycles, before the next one. Python's 700 cost a tenth of what loading modules and
planning take: nearly all that they make stays."""

ROOMS = ("cli", "common", "controller", "emulation", "experiments", "formats", "hosts", "switch", "topo")


def full_name(module: str) -> str:
    """What a module is imported as, of its name in a checkout; modules of others keep theirs."""
    return PREFIX + module if module.partition(".")[0] in ROOMS else module


def import_by_name(module: str) -> Any:
    """The module of that name in a checkout. ImportError."""
    return importlib.import_module(full_name(module))


def attribute(place: str) -> Any:
    """What "module:attribute" names. ImportError, AttributeError."""
    module, _, name = place.partition(":")
    return getattr(import_by_name(module), name)


@contextmanager
def seldom_searched() -> Iterator[None]:
    """For a whole process. At its end all modules are not searched for cycles once more: they go with it."""
    gc.set_threshold(YOUNG_OBJECTS, *gc.get_threshold()[1:])
    try:
        yield
    finally:
        gc.freeze()


if __name__ == "__main__":
    del sys.argv[0]
    with seldom_searched():
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
