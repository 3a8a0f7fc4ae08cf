"""That a program in a checkout imports the checkout's rooms, not modules of its own of the same names."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

try:
    from common.modules import IMPORT_FOLDER, INSTALLED, ROOMS
except ImportError:
    IMPORT_FOLDER, INSTALLED = Path(__file__).resolve().parents[1], False
    ROOMS = ("common",)  # type: ignore[assignment]


def check_rooms() -> None:
    """ImportError if a file hides a room. Installed by pip, gradbed has them in a package of their own."""
    for room in () if INSTALLED else ROOMS:
        spec = sys.modules[room].__spec__ if room in sys.modules else importlib.util.find_spec(room)
        place = None if spec is None or spec.origin is None else Path(spec.origin).resolve()
        if place is None or not place.is_relative_to(IMPORT_FOLDER / room):
            raise ImportError(
                f"{place or room} hides gradbed's own {room} in this checkout: rename it, or install gradbed "
                "with pip (docs/api.md), where names cannot clash"
            )
