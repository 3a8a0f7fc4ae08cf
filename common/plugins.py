"""What other packages bring to gradbed, by name: systems, topologies, compressors, congestion controls, collectives.

A package names them in its metadata, as entry points (https://packaging.python.org/specifications/entry-points):

    [project.entry-points."gradbed.topologies"]
    triangle = "my_package.shapes:triangle"

Reading names loads nothing. A plug-in is loaded when somebody asks for it, and one that cannot be loaded costs nobody
else anything.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from importlib import metadata
from typing import Any, Literal

from gradbed.common.errors import UserError, unforeseen
from gradbed.common.modules import attribute

Group = Literal["systems", "topologies", "compressors", "congestion_controls", "collectives"]


@functools.cache
def plugins(group: Group) -> Mapping[str, str]:
    """Return the plug-ins of a group: "module:attribute" by name."""
    return {entry.name: entry.value for entry in metadata.entry_points(group=f"gradbed.{group}")}


def load_plugin(group: Group, name: str) -> Any:
    """Load a plug-in and return the object that it names.

    Raises:
        UserError: It cannot be loaded, whatever its module raises, which is the cause.
    """
    place = plugins(group)[name]
    try:
        return attribute(place)
    except Exception as error:
        reason = unforeseen(error)
        raise UserError(f"the plug-in {name!r} of gradbed.{group} ({place}) cannot be loaded: {reason}") from error


def call_plugin(group: Group, name: str, *arguments: Any) -> Any:
    """Load a plug-in, call it, and return what it returns.

    Raises:
        UserError: It cannot be loaded, it raises a UserError, or a ValueError for arguments that it does not take, or
            anything else, which is its own mistake.
    """
    plugin = load_plugin(group, name)
    try:
        return plugin(*arguments)
    except UserError:
        raise
    except ValueError as error:
        raise UserError(f"{name}: {error}") from error
    except Exception as error:
        raise UserError(f"the plug-in {name!r} of gradbed.{group} failed: {unforeseen(error)}") from error
