"""A copy of the sources with what Python compiled, wherever that is kept: no process has to compile it again."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable
from importlib.util import cache_from_source
from pathlib import Path

from tests.command import ROOT


def copy_sources(folders: Iterable[str], place: Path) -> None:
    for folder in folders:
        shutil.copytree(ROOT / folder, place / folder)
    for source in place.rglob("*.py") if sys.pycache_prefix else ():
        compiled = Path(cache_from_source(str(ROOT / source.relative_to(place))))
        if compiled.exists():
            beside = source.parent / "__pycache__"
            beside.mkdir(exist_ok=True)
            shutil.copy(compiled, beside)
