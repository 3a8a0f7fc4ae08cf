"""The commands, each loaded when it is called: `gradbed --help` needs none of them."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from gradbed.cli import layers


@dataclass(frozen=True)
class Entry:
    """A command, or a group of commands."""

    place: str
    """"module:attribute" of a function or a typer.Typer."""
    help: str
    layers: tuple[str, ...] = ()
    """The layers of packages that it needs (cli/layers.py)."""
    of: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The layers of single commands of a group, where they differ."""
    network: bool | tuple[str, ...] = False
    """Whether it makes networks of the kernel (real clock); of a group, the names of the commands that do."""
    passes_on: bool = False
    """Whether unknown options are arguments for another program."""


class ListedGroup(TyperGroup):
    """A group that makes its commands on demand.

    For an unknown command a similar one is suggested, as typer does for groups that hold their commands.
    """

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find a command, and suggest a similar one for an unknown name."""
        try:
            return super().resolve_command(ctx, args)
        except typer.TyperException as error:
            near = get_close_matches(args[0], self.list_commands(ctx), n=1) if args else []
            message = str(getattr(error, "message", ""))
            if near and message and "Did you mean" not in message:
                error.message = f"{message.rstrip('.')}. Did you mean {near[0]!r}?"
            raise


class Commands(ListedGroup):
    """A group of commands that are listed in a table and loaded when they are called."""

    entries: Mapping[str, Entry] = {}

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the table."""
        return list(self.entries)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a stand-in with the name and help of a command, for lists."""
        entry = self.entries.get(cmd_name)
        return None if entry is None else TyperCommand(cmd_name, help=entry.help, callback=lambda: None)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find a command and load it."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, command if command is None else self._loaded(str(name)), rest

    def _loaded(self, name: str) -> Any:
        entry = self.entries[name]
        module_name, attribute = entry.place.split(":")
        module = None
        while module is None:
            try:
                module = importlib.import_module(module_name)
            except ModuleNotFoundError as error:
                # Even its options are made of what is not installed yet; completion installs nothing.
                layer = layers.layer_of(error.name or "")
                if layer is None or layers.is_installed(layer) or "_GRADBED_COMPLETE" in os.environ:
                    raise
                # More than the small layer of help texts: all that the command takes, at one time.
                layers.need([layer] if layer == "options" else [*entry.layers, layer])
        found = getattr(module, attribute)
        if not isinstance(found, typer.Typer):
            app = typer.Typer()
            settings = {"allow_extra_args": True, "ignore_unknown_options": True} if entry.passes_on else None
            app.command(name, help=entry.help, context_settings=settings)(found)
            found = app
        found._add_completion = False  # it is the whole's
        command = typer.main.get_command(found)
        command.name = name
        provide(command, entry)
        return command


def provide(command: Any, entry: Entry, name: str = "") -> None:
    """Make every command install what it needs before it runs, but after its options were read."""
    if isinstance(command, TyperGroup):
        for inner_name, inner in command.commands.items():
            provide(inner, entry, inner_name)
    elif command.callback is not None:
        network = entry.network if isinstance(entry.network, bool) else name in entry.network
        command.callback = layers.needing(command.callback, entry.of.get(name, entry.layers), network)


def _help_with_negatives_in_texts(command: Any, *arguments: Any) -> None:
    """Print help that names a flag's negative (--no-x) in the flag's text.

    The column that typer makes of them leaves too little room on a terminal of 80 columns.
    """
    flags = [(each, each.secondary_opts, each.help) for each in command.params if each.secondary_opts]
    for flag, negatives, text in flags:
        if "(default: off)" not in (text or ""):
            flag.help = f"{text or ''} {', '.join(negatives)}: off.".strip()
        flag.secondary_opts = []
    try:
        _HELP(command, *arguments)
    finally:
        for flag, negatives, text in flags:
            flag.help, flag.secondary_opts = text, negatives


_HELP = TyperCommand.format_help
TyperCommand.format_help = _help_with_negatives_in_texts  # type: ignore[assignment, method-assign]
