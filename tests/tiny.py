"""The tiny system as a person has one: in a folder outside the tree, known by one line."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.command import ROOT

LINE = "tiny = tiny.system:TinySystem\n"


def install_tiny(folder: Path) -> None:
    """Put the system into a folder, with what an installation leaves: the entry point."""
    shutil.copytree(ROOT / "tests" / "tiny_system" / "tiny", folder / "tiny")
    information = folder / "tiny-1.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: tiny\nVersion: 1\n")
    (information / "entry_points.txt").write_text(f"[gradbed.systems]\n{LINE}")
