"""Command lines as other programs read them: a table of options, none of them ours to choose, and an exit status."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from gradbed.common.errors import UserError, nobody_reads

Takes = Literal["nothing", "value", "attached", "optional"]


@dataclass(frozen=True)
class Option:
    """An option, under the first of its names."""

    names: tuple[str, ...]
    takes: Takes = "nothing"
    """True: a value, in the same argument or the next one.

    "attached": a value may follow in the same argument (--name=value). "optional": also in the next one, if that
    begins with no dash.
    """
    help: str = ""
    ignored: str = ""
    """Why it has no effect here: it is accepted, and the user is notified."""
    refused: str = ""
    """Why it cannot be accepted."""

    @property
    def name(self) -> str:
        return self.names[0]


@dataclass
class CommandLine:
    """A command line, by option."""

    values: dict[str, list[str]] = field(default_factory=dict)
    """Values of each option that was given, in order; "" where there was none."""
    positional: list[str] = field(default_factory=list)
    behind_dashes: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """Options without effect."""

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def last(self, name: str) -> str | None:
        """Return the value that counts when an option is given several times."""
        return self.values[name][-1] if name in self.values else None

    def number(self, name: str, least: int = 0) -> int | None:
        """Return an option's number. Raises UserError if it is not a number of at least that size."""
        text = self.last(name)
        if text is None:
            return None
        if not text.isdecimal() or int(text) < least:
            raise UserError(f"{name} takes a number from {least} on, not {text!r}")
        return int(text)


def parse(options: Iterable[Option], arguments: Sequence[str]) -> CommandLine:
    """Parse arguments; unknown options are left in `unknown`.

    Raises UserError for a value that is missing and for what is refused.
    """
    table = {name: option for option in options for name in option.names}
    line = CommandLine()
    waiting = list(reversed(arguments))
    while waiting:
        argument = waiting.pop()
        if argument == "--":
            line.behind_dashes = list(reversed(waiting))
            break
        if not argument.startswith("-") or argument == "-":
            line.positional.append(argument)
            continue
        option, attached = _find(table, argument)
        if option is None:
            line.unknown.append(argument)
            continue
        if option.refused:
            raise UserError(f"{argument.partition('=')[0]}: {option.refused}")
        value = attached or ""
        if attached is None and waiting:
            if option.takes == "value" or (option.takes == "optional" and not waiting[-1].startswith("-")):
                value = waiting.pop()
        elif attached is None and option.takes == "value":
            raise UserError(f"{option.name} needs a value")
        line.values.setdefault(option.name, []).append(value)
        if option.ignored:
            line.notes.append(f"{argument.partition('=')[0]} has no effect: {option.ignored}")
    return line


def usage(options: Iterable[Option]) -> str:
    """Return the table of options for --help."""
    lines = []
    for option in options:
        value = {"nothing": "", "value": " VALUE", "attached": "[=VALUE]", "optional": " [VALUE]"}[option.takes]
        effect = f"(refused: {option.refused})" if option.refused else f"(no effect: {option.ignored})"
        lines.append(f"  {', '.join(option.names)}{value}\n        {option.help or effect}")
    return "\n".join(lines)


def _find(table: dict[str, Option], argument: str) -> tuple[Option | None, str | None]:
    """Return the option that an argument names, and the value in the same argument."""
    if argument in table:
        return table[argument], None
    if argument.startswith("--"):
        name, equals, value = argument.partition("=")
        options = {table[known].name: table[known] for known in table if known.startswith(name)}
        found = table.get(name) or (next(iter(options.values())) if len(options) == 1 else None)
        if found is not None and equals and found.takes == "nothing":
            raise UserError(f"{name} takes no value")
        return found, value if equals else None
    # -IDIR, -L=info: one letter and its value.
    found = table.get(argument[:2])
    if found is None or found.takes == "nothing":
        return None, None
    return found, argument[2:].removeprefix("=")


# ---- How the executables end ----


def status_of(command: Callable[[Sequence[str]], int], arguments: Sequence[str]) -> int:
    """Return the command's status; after a broken pipe (`| head`), that of a program which SIGPIPE ended."""
    try:
        status = command(arguments)
        sys.stdout.flush()
    except OSError as error:
        if not nobody_reads(error):
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # for what Python still wants to write at its end
        return 128 + signal.SIGPIPE
    return status
