"""The v1model programs in a folder."""

from __future__ import annotations

import re
from pathlib import Path

from gradbed.common.errors import UserError

_MAIN = re.compile(r"^[^\n/]*\bV1Switch\s*(<[^;()]*>\s*)?\(", re.MULTILINE)


def find_programs(folder: Path) -> list[Path]:
    """Every .p4 file below `folder` that instantiates V1Switch, by name; the others are parts of programs."""
    if not folder.is_dir():
        raise UserError(f"there is no folder {folder}")
    files = sorted(path for path in folder.rglob("*.p4") if path.is_file())
    programs = [path for path in files if _MAIN.search(path.read_text(encoding="utf-8", errors="replace"))]
    if not programs:
        raise UserError(f"{folder} has no v1model program: no .p4 file in it instantiates V1Switch")
    return programs
