"""Debian's Mininet, for an environment that is closed off from Debian's packages. In a checkout ./gradbed makes a
link to it there."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

PLACE = Path("/usr/lib/python3/dist-packages/mininet/__init__.py")


def find_debian_mininet() -> None:
    """Make it importable, if it is there and no other Mininet is; nothing is loaded of it but its first lines."""
    if importlib.util.find_spec("mininet") is not None or not PLACE.exists():
        return
    spec = importlib.util.spec_from_file_location("mininet", PLACE, submodule_search_locations=[str(PLACE.parent)])
    assert spec is not None and spec.loader is not None
    sys.modules["mininet"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules["mininet"])
