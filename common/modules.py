"""Where the package lies, and objects that are named in strings, as "module:attribute"."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).resolve().parents[1]
"""The folder that holds topo/, switch/, p4src/ and the others: a checkout, or the installed package."""

FOLDERS = ("cli", "common", "controller", "emulation", "experiments", "formats", "hosts", "switch", "topo")
"""The packages in gradbed: gradbed.topo lies in topo/, and so on."""

INSTALLED = not (PACKAGE / "api").is_dir()
"""Whether pip has installed the package; if not, this is a checkout."""

COMMAND = "gradbed" if INSTALLED else "./gradbed"
"""How people call the command line."""


def attribute(place: str) -> Any:
    """Return what "module:attribute" names. ImportError, AttributeError."""
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)
