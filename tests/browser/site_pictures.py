"""The pictures of pages in docs/images: .venv/bin/python -m tests.browser.site_pictures makes them anew."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from gradbed.cli.site.build import build
from gradbed.cli.site.sources import ROOT
from tests.browser.browser import picture

PICTURES = {
    "site_light.png": ("ndn.html", {"width_px": 1280, "height_px": 760, "dark": False}),
    "site_dark.png": ("source/p4src/aggregation.p4.html", {"width_px": 1280, "height_px": 760, "dark": True}),
}
"""By their names: the page, and the window."""


def make_pictures(site: Path, folder: Path) -> None:
    """Of a site that was built."""
    for name, (page, window) in PICTURES.items():
        picture(site / page, folder / name, **window)


def picture_of_a_report(target: Path, scratch: Path) -> None:
    """Of a run of aggregation with its defaults, on the virtual clock."""
    options = ["--clock", "virtual", "--output", str(scratch)]
    subprocess.run([sys.executable, "-m", "gradbed", "run", "aggregation", *options], cwd=ROOT, check=True)
    picture(scratch / "aggregation" / "latest" / "report.html", target, width_px=1280, height_px=900)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        # First, since the site is refused without it.
        picture_of_a_report(ROOT / "docs" / "images" / "report.png", Path(folder) / "results")
        build(Path(folder) / "site")
        make_pictures(Path(folder) / "site", ROOT / "docs" / "images")
