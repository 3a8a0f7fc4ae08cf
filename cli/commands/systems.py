"""gradbed systems: which systems there are, and where their parts lie."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from gradbed.common.errors import UserError, say, suggestion
from gradbed.experiments.systems import parts_of, system_help, systems


def show_systems(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="A system; default: a list of all.")] = None,
) -> int:
    """List the systems, or the files and folders of one."""
    if name is None:
        rows = [(each, system_help(each).split("\n")[0]) for each in systems()]
    elif name in systems():
        rows = [(part.place, part.what) for part in parts_of(name)]
    else:
        raise UserError(f"no system is called {name!r}{suggestion(name, systems())}")
    width = max(len(first) for first, _ in rows)
    for first, second in rows:
        say(f"{first:{width}}  {second}", sys.stdout, hang=width + 2)
    return 0
