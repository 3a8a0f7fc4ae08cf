"""Entries that a function of the user's makes: `entries(topology, p4info)` in a Python file."""

from __future__ import annotations

import runpy
import traceback
from pathlib import Path
from typing import Any

import yaml

from gradbed.common.errors import UserError
from gradbed.controller.entries.document import Element, FilePosition, parse_document
from gradbed.controller.planning.plan import Plan
from gradbed.topo.graph import Topology

NAME = "entries"


def call_function(file: Path, topology: Topology, p4info: Any) -> Plan | Element:
    """Return what the function returns: a plan, or a mapping in the form of a YAML file (an Element then).

    Raises:
        EntriesError: It raises an exception; with the line of the file.
    """
    try:
        function = runpy.run_path(str(file)).get(NAME)
    except OSError as error:
        raise UserError(f"cannot read {file}: {error.strerror}") from None
    except (Exception, SystemExit) as error:
        raise _place(file, error).error(_described(error)) from None
    if not callable(function):
        raise FilePosition(file, 1, 1).error(f"it has no function {NAME}(topology, p4info)")
    try:
        found = function(topology, p4info)
    except (Exception, SystemExit) as error:
        raise _place(file, error).error(_described(error)) from None
    if isinstance(found, Plan):
        return found
    if not isinstance(found, dict):
        raise FilePosition(file, 1, 1).error(f"{NAME}() returns a Plan or a mapping, not {type(found).__name__}")
    try:
        text = yaml.safe_dump(found, sort_keys=False)
    except yaml.YAMLError as error:
        raise FilePosition(file, 1, 1).error(
            f"{NAME}() returns what entries cannot hold: {_described(error)}"
        ) from None
    return parse_document(text, Path(f"{file} ({NAME}() as YAML)"))


def _place(file: Path, error: BaseException) -> FilePosition:
    """Return the innermost line of the file on the way to the exception."""
    if isinstance(error, SyntaxError) and error.filename == str(file):
        return FilePosition(file, error.lineno or 1, error.offset or 1)
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(file)]
    return FilePosition(file, lines[-1] if lines and lines[-1] else 1, 1)


def _described(error: BaseException) -> str:
    text = " ".join((error.msg if isinstance(error, SyntaxError) else str(error)).split())
    if isinstance(error, (UserError, SyntaxError)):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
