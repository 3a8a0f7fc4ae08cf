"""Groups of ranks by name: from a JSON file as ASTRA-sim's, and from what PyTorch left in a trace."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gradbed.common.errors import UserError

EVERYBODY = ("", "0")
"""Names of the group of all ranks."""

Groups = Mapping[str, tuple[int, ...]]


def read_groups(file: Path, ranks: int) -> Groups:
    """Name -> ranks. UserError if the file is no such mapping, or a rank is not there."""
    try:
        read = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"cannot read {file}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"{file}: not JSON: {error}") from None
    if not isinstance(read, dict):
        raise UserError(f"{file}: a mapping of names to lists of ranks is expected")
    found = {}
    for name, members in read.items():
        wrong = wrong_group(members, ranks)
        if wrong:
            raise UserError(f"{file}: group {name}: {wrong}")
        found[name] = tuple(members)
    return found


def wrong_group(members: Any, ranks: int) -> str | None:
    """What is wrong with a list of ranks."""
    if not isinstance(members, list) or not members or not all(type(rank) is int for rank in members):
        return "a list of ranks is expected"
    if len(set(members)) < len(members):
        return "a rank is in it twice"
    outside = [rank for rank in members if not 0 <= rank < ranks]
    return f"rank {outside[0]} is not there: the trace has ranks 0 to {ranks - 1}" if outside else None


def groups_of_pytorch(values: str, ranks: int) -> Groups:
    """Those of a node "process_group:init", whose input is a list of groups as JSON in quotes; empty for other nodes.
    A group without ranks is one of all."""
    start, stop = values.find("[{"), values.rfind("}]")
    if "pg_name" not in values or start < 0 or stop < start:
        return {}
    text = values[start : stop + 2]
    for candidate in (text, text.replace('\\"', '"')):
        try:
            listed = json.loads(candidate)
            break
        except (ValueError, RecursionError):
            continue
    else:
        return {}
    found = {}
    for each in listed:
        if isinstance(each, dict) and "pg_name" in each:
            members = each.get("ranks") or list(range(ranks))
            if wrong_group(members, ranks) is None:
                found[str(each["pg_name"])] = tuple(members)
    return found
