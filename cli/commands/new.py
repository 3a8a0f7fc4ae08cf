"""gradbed new: a folder with a P4 program of one's own, and all that it takes to run it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from common.errors import UserError
from common.modules import COMMAND

TEMPLATES = Path(__file__).resolve().parents[1] / "templates" / "program"
SOURCE = "program.p4"
"""Of the templates; in all of them FOLDER and NAME are filled in."""


def new(
    folder: Annotated[Path, typer.Argument(metavar="NAME", help="The folder to make; its last part is the name.")],
) -> int:
    """Make a folder with a P4 program, entries for its tables, a study and tests. All of it runs."""
    name = folder.name
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name):
        raise UserError(f"{name!r} is no name for a program: use letters, digits and underscores, a letter first")
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        raise UserError(f"{folder} is there already: choose another name") from None
    except OSError as error:
        raise UserError(f"cannot make {folder}: {error.strerror}") from None
    for template in sorted(TEMPLATES.iterdir()):
        target = folder / (f"{name}.p4" if template.name == SOURCE else template.name)
        text = template.read_text(encoding="utf-8").replace("FOLDER", str(folder)).replace("NAME", name)
        target.write_text(text, encoding="utf-8")
    print(f"made {folder}/: {', '.join(sorted(path.name for path in folder.iterdir()))}")
    print(f"now: {COMMAND} run workload {folder}/{name}.p4")
    return 0
