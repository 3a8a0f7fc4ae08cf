"""network.py of p4-utils: a script that describes a network to a NetworkAPI.

It is the user's program, and runs as one: in a process of its own, in its own folder, as `python3 network.py` there.
What it imports, draws or changes in its process stays its own; data alone comes back.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from gradbed.common.errors import UserError
from gradbed.topo.files.description import Described
from gradbed.topo.files.p4_utils import P4UtilsNetwork

_PROGRAM = Path(__file__).with_name("network_script_process.py")
_found: dict[tuple[str, int, int], dict[str, Any]] = {}
"""Answers of scripts by path, time and size: a network is often needed again, and a script may take seconds."""


def describe(path: Path) -> Described:
    """Return the network of a script.

    Raises:
        UserError: The script raises an exception; with its line.
    """
    script = path.resolve()
    try:
        state = script.stat()
        script.read_bytes()
    except OSError as error:
        raise UserError(f"it cannot be read: {error.strerror}") from None
    key = (str(script), state.st_mtime_ns, state.st_size)
    if key not in _found:
        _found[key] = _run(script)
    network = _found[key]
    links = [(a, b, dict(options)) for a, b, options in network["links"]]
    copied = {kind: {name: dict(each) for name, each in network[kind].items()} for kind in ("hosts", "switches")}
    form = "network.py of p4-utils"
    return P4UtilsNetwork(**{**network, **copied, "links": links, "form": form}).described()


def _run(script: Path) -> dict[str, Any]:
    # Where nobody looks at a display, pyplot.show() would stop the script. Bytecode is not left beside it.
    environment = {"MPLBACKEND": "Agg", **os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    with tempfile.TemporaryFile() as answer, tempfile.TemporaryFile() as errors:
        ended = subprocess.run(
            [sys.executable, str(_PROGRAM), str(script), str(answer.fileno())],
            cwd=script.parent,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            pass_fds=[answer.fileno()],
            check=False,
        )
        answer.seek(0)
        errors.seek(0)
        described, printed = answer.read(), errors.read().decode(errors="replace").split("\n")
    if ended.returncode != 0 or not described:
        raise UserError(f"it {_end(ended.returncode)}{_last(printed)}")
    found: dict[str, Any] = json.loads(described)
    if "error" in found:
        raise UserError(found["error"])
    if found["network"] is None:
        raise UserError("it makes no NetworkAPI(), as network.py of p4-utils does")
    network: dict[str, Any] = found["network"]
    return network


def _end(status: int) -> str:
    if status < 0:
        return f"was ended by signal {-status} ({signal.strsignal(-status)})"
    return f"ended with status {status} before it described the network"


def _last(lines: list[str]) -> str:
    """Return the last line that a script wrote to standard error."""
    text = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return f": {text}" if text else ""
