"""Plug-ins: what other packages bring to gradbed by name, such as systems, topologies, placements and collectives.

A package names them in its metadata, as entry points (https://packaging.python.org/specifications/entry-points):

    [project.entry-points."gradbed.topologies"]
    triangle = "my_package.topologies:triangle"

Reading names loads nothing. A plug-in is loaded when it is asked for, and one that cannot be loaded keeps nothing
else from working.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Mapping
from importlib import metadata
from typing import Any, Literal

from gradbed.common.errors import UserError, unforeseen
from gradbed.common.modules import attribute

Group = Literal[
    "systems", "topologies", "placements", "schedulers", "compressors", "congestion_controls", "collectives"
]


@functools.cache
def plugins(group: Group) -> Mapping[str, str]:
    """Return the plug-ins of a group: "module:attribute" by name."""
    return {entry.name: entry.value for entry in metadata.entry_points(group=f"gradbed.{group}")}


def load_plugin(group: Group, name: str) -> Any:
    """Load a plug-in and return the object that it names.

    Raises:
        UserError: It cannot be loaded, whatever its module raises, which is the cause.
    """
    location = plugins(group)[name]
    try:
        return attribute(location)
    except Exception as error:
        reason = unforeseen(error)
        raise UserError(f"the plug-in {name!r} of gradbed.{group} ({location}) cannot be loaded: {reason}") from error


def call_plugin(group: Group, name: str, *arguments: Any) -> Any:
    """Load a plug-in, call it, and return what it returns.

    Raises:
        UserError: It cannot be loaded, or `plugin_failures` says so of what it raises.
    """
    plugin = load_plugin(group, name)
    with plugin_failures(group, name):
        return plugin(*arguments)


@contextlib.contextmanager
def plugin_failures(group: Group, name: str) -> Iterator[None]:
    """Turn what a plug-in raises into an error of one line.

    Raises:
        UserError: The plug-in raises one, or a ValueError for arguments that it does not take, or anything else,
            which is its own mistake.
    """
    try:
        yield
    except UserError:
        raise
    except ValueError as error:
        raise UserError(f"{name}: {error}") from error
    except Exception as error:
        raise plugin_failure(group, name, unforeseen(error)) from error


def plugin_failure(group: Group, name: str, reason: str) -> UserError:
    """Return the error of a plug-in that did what it must not."""
    return UserError(f"the plug-in {name!r} of gradbed.{group} failed: {reason}")
