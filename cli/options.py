"""Options that several commands share, and how their mistakes are worded."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, TypeVar

import pydantic
import typer

from switch.errors import UserError

Topology = Annotated[str, typer.Option(help="fat-tree:K, leaf-spine:LEAVES,SPINES,HOSTS (per leaf) or star:HOSTS.")]
RateMbps = Annotated[float, typer.Option(help="Rate of every link in Mbit/s; 0 is unlimited.")]
DelayUs = Annotated[int, typer.Option(help="Propagation delay of every link in microseconds.")]
Loss = Annotated[float, typer.Option(help="Probability that a link drops a packet.")]
Duplicate = Annotated[float, typer.Option(help="Probability that a link delivers a packet twice.")]
QueuePackets = Annotated[int, typer.Option(help="Packets that may wait for a link.")]
SwitchKind = Annotated[str, typer.Option("--switch", help="gradbed, or bmv2 where it is installed.")]
Links = Annotated[
    str, typer.Option(help="Between switches: memory (fast), or veth (can be captured on the interfaces).")
]
Seed = Annotated[int, typer.Option(help="For everything that is drawn by chance.")]

Include = Annotated[list[Path] | None, typer.Option("--include", "-I", help="Folder to search.")]
Define = Annotated[list[str] | None, typer.Option("--define", "-D", help="NAME or NAME=VALUE.")]

Config = TypeVar("Config", bound=pydantic.BaseModel)


def macros(defines: Iterable[str] | None) -> dict[str, str]:
    """Values of -D as macros with their replacement text; NAME alone is 1, as with cpp."""
    return {name: value if equals else "1" for name, equals, value in (d.partition("=") for d in defines or ())}


def validated(model: type[Config], **values: Any) -> Config:
    """Make a configuration; the first thing that is wrong becomes a UserError of one line."""
    try:
        return model(**values)
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        name = "--" + ".".join(str(part) for part in first["loc"]).replace("_", "-")
        raise UserError(f"{name}: {first['msg']}, got {first['input']!r}") from None
