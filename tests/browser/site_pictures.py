"""The pictures of the site in docs/images: .venv/bin/python -m tests.browser.site_pictures makes them anew."""

from __future__ import annotations

import tempfile
from pathlib import Path

from cli.site.build import build
from cli.site.sources import ROOT
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


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        build(Path(scratch) / "site")
        make_pictures(Path(scratch) / "site", ROOT / "docs" / "images")
