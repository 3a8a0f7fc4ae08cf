"""Executables under the names of p4c's and BMv2's, which run our modules with this interpreter."""

from __future__ import annotations

import sys
from pathlib import Path

from gradbed.common.errors import UserError

# Name of the executable: module and function that get its arguments.
SHIMS = {
    "p4c": ("gradbed.switch.shims.p4c", "driver"),
    "p4c-bm2-ss": ("gradbed.switch.shims.p4c", "compiler"),
    "p4c-bmv2": ("gradbed.switch.shims.p4c", "compiler"),
    "simple_switch": ("gradbed.switch.simple_switch", "simple_switch"),
    "simple_switch_grpc": ("gradbed.switch.simple_switch", "simple_switch_grpc"),
    "simple_switch_CLI": ("gradbed.switch.simple_switch.cli", "main"),
}

# The kernel reads so much of a script's first line.
_SHEBANG_BYTES = 127

# The folder of the script comes first in sys.path, and may hold anything.
_SCRIPT = """{first_lines}
# Written by `gradbed p4 shims`: {name} on gradbed's compiler and switch.
import sys

del sys.path[0]
from gradbed.switch.shims.command_line import status_of
from {module} import {function}

sys.exit(status_of({function}, [{options}*sys.argv[1:]]))
"""

_BMV2_ARBITRATION = "--bmv2-arbitration"


def write_shims(folder: Path, bmv2_arbitration: bool = False) -> list[Path]:
    """Write all of them to `folder`, which is made if need be; files of these names there are replaced.
    bmv2_arbitration: the switches start with this option, for tool chains that cannot give it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return [
            _write(folder / name, module, function, bmv2_arbitration and module == "gradbed.switch.simple_switch")
            for name, (module, function) in SHIMS.items()
        ]
    except OSError as error:
        raise UserError(f"cannot write {error.filename}: {error.strerror}") from None


def _write(path: Path, module: str, function: str, bmv2_arbitration: bool) -> Path:
    text = _SCRIPT.format(
        first_lines=_first_lines(sys.executable),
        name=path.name,
        module=module,
        function=function,
        options=f"{_BMV2_ARBITRATION!r}, " if bmv2_arbitration else "",
    )
    # Not in place: a running shell or switch may have the old one open, and it may be a link to something else.
    fresh = path.with_name(f".{path.name}.new")
    fresh.write_text(text)
    fresh.chmod(0o755)
    return fresh.replace(path)


def _first_lines(interpreter: str) -> str:
    """Return what makes the file a Python script: so `ps` and `killall` show its own name."""
    if len(f"#!{interpreter}") <= _SHEBANG_BYTES and not any(char.isspace() for char in interpreter):
        return f"#!{interpreter}"
    # The shell sees an exec, Python a string.
    quoted = interpreter.replace("'", "'\"'\"'")
    return f"#!/bin/sh\n'''exec' '{quoted}' \"$0\" \"$@\"\n' '''"
