"""The tiny system as a person has one: in a folder outside the tree, known by the entry points of its metadata."""

from __future__ import annotations

import shutil
from configparser import ConfigParser
from pathlib import Path

from tests.command import ROOT

FOLDER = ROOT / "tests" / "tiny_system"
"""What pip installs."""


def entry_points() -> str:
    """The entry points in pyproject.toml, as installations keep them."""
    # Python 3.10 has no tomllib; of this file its simple form is enough.
    project = ConfigParser(delimiters=("=",), interpolation=None)
    project.optionxform = str  # type: ignore[assignment,method-assign]
    project.read(FOLDER / "pyproject.toml")
    start, lines = "project.entry-points.", []
    for section in project.sections():
        if section.startswith(start):
            lines.append(f"[{section.removeprefix(start)}]")
            lines += [f"{name} = {value}" for name, value in project.items(section)]
    return "\n".join(lines).replace('"', "")


def install_tiny(folder: Path) -> None:
    """Put the package into a folder, with what an installation leaves: its entry points."""
    shutil.copytree(FOLDER / "tiny", folder / "tiny")
    information = folder / "tiny-1.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: tiny\nVersion: 1\n")
    (information / "entry_points.txt").write_text(entry_points())
