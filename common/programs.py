"""The search path for programs of the system, including those of its administrator."""

from __future__ import annotations

import os
import shutil

SYSTEM_FOLDERS = ("/usr/local/sbin", "/usr/sbin", "/sbin")
"""Not in an ordinary user's PATH on Debian, nor in that of root who came by `su`: ethtool and ip are there."""


def search_path() -> str:
    """Return PATH with the system's folders behind it."""
    given = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join([*given, *(folder for folder in SYSTEM_FOLDERS if folder not in given)])


def find_program(name: str) -> str | None:
    """Return the path of a program, None if it is not installed."""
    return shutil.which(name, path=search_path())
