"""The tiny system as a person has one: in a folder outside the tree, known by the entry points of its metadata."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.command import ROOT

ENTRY_POINTS = """
[gradbed.systems]
tiny = tiny.system:TinySystem
[gradbed.topologies]
circle = tiny.topologies:circle
[gradbed.placements]
near-server = tiny.placements:near_server
[gradbed.schedulers]
first-holder = tiny.schedulers:first_holder
[gradbed.compressors]
every = tiny.compressors:every
[gradbed.congestion_controls]
tahoe = tiny.congestion:Tahoe
[gradbed.collectives]
linear = tiny.collectives:LINEAR
"""


def install_tiny(folder: Path) -> None:
    """Put the package into a folder, with what an installation leaves: its entry points."""
    shutil.copytree(ROOT / "tests" / "tiny_system" / "tiny", folder / "tiny")
    information = folder / "tiny-1.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: tiny\nVersion: 1\n")
    (information / "entry_points.txt").write_text(ENTRY_POINTS)
