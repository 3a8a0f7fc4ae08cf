"""Files that people get from templates: the commands in them are those that they can type."""

from __future__ import annotations

import shlex
from pathlib import Path

from gradbed.common.modules import COMMAND

FOLDER = "FOLDER"
"""In a template the folder that it is copied to, as the user has named it."""


def with_commands(template: str, folder: Path) -> str:
    """Fill in FOLDER and how the command line is called, so that a command works where the folder was asked for."""
    return template.replace("./gradbed ", f"{COMMAND} ").replace(FOLDER, shlex.quote(str(folder)))
