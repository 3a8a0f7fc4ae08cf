"""gradbed docs: the documents as a site."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gradbed.cli.layers import require_checkout


def docs(
    folder: Annotated[Path, typer.Argument(help="Folder for the pages.")] = Path("results/docs"),
) -> int:
    """Make the documents into a folder of pages with search, which any browser opens without a network."""
    require_checkout("gradbed docs")
    from gradbed.cli.site.build import build

    build(folder)
    print(f"made {folder}: open {folder}/index.html in a browser")
    return 0
