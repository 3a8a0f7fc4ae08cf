"""The folder of the package, how its command is called, and lazy imports by name."""

from __future__ import annotations

import importlib
import os
import shlex
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).resolve().parents[1]
"""The folder that holds topo/, switch/, p4src/ and the others: a checkout, or the installed package."""

FOLDERS = ("cli", "common", "controller", "emulation", "experiments", "formats", "hosts", "switch", "topo")
"""The packages in gradbed: gradbed.topo lies in topo/, and so on."""

INSTALLED = not (PACKAGE / "api").is_dir()
"""Whether pip has installed the package; if not, this is a checkout."""

COMMAND = "gradbed" if INSTALLED else "./gradbed"
"""How people call the command line, from the checkout's folder unless pip has installed it."""


def command_from(folder: Path) -> str:
    """Return how people call the command line from a folder, quoted for a shell.

    From a folder in the checkout that is a relative path, from others an absolute one.
    """
    if INSTALLED:
        return COMMAND
    launcher, place = PACKAGE / "gradbed", folder.resolve()
    if place == PACKAGE:
        return COMMAND
    return shlex.quote(os.path.relpath(launcher, place) if place.is_relative_to(PACKAGE) else str(launcher))


def attribute(place: str) -> Any:
    """Return what "module:attribute" names. ImportError, AttributeError."""
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)


def homes_of(names: Mapping[str, str]) -> dict[str, str]:
    """Return the module of each name, of names by module with spaces between them."""
    return {name: module for module, listed in names.items() for name in listed.split()}


def lazy_names(module: str, names: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a `__getattr__` for a module, which imports what a name needs when it is first used.

    Args:
        module: The `__name__` of the module.
        names: What it offers, by the module that defines it, with spaces between.
    """
    homes = homes_of(names)

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        found = getattr(importlib.import_module(homes[name]), name)
        setattr(sys.modules[module], name, found)
        return found

    return load


# ---- Templates ----

FOLDER = "FOLDER"
"""Placeholder in templates for the folder that they are copied to, as the user has named it."""


def with_commands(template: str, folder: Path) -> str:
    """Replace FOLDER, and `./gradbed` by COMMAND, so that the commands in a template can be typed as they are."""
    return template.replace("./gradbed ", f"{COMMAND} ").replace(FOLDER, shlex.quote(str(folder)))
