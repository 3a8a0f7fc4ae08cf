"""Modules by name. In a checkout the rooms (topo, hosts, ...) are packages of their own; installed by pip they lie in
the package gradbed, so that a `topo.py` of the user's cannot take their place (docs/architecture.md)."""

from __future__ import annotations

import importlib
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
