"""Options that several commands share, and how their mistakes are worded."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any, TypeVar

import pydantic
import typer

from experiments.config import NetworkConfig
from switch.errors import UserError

Scale = Annotated[
    float | None,
    typer.Option(min=0.001, max=1.0, help="Emulated over nominal link rate, instead of this machine's factor."),
]
SwitchKind = Annotated[str, typer.Option("--switch", help="gradbed, or bmv2 where it is installed.")]

NETWORK: dict[str, Any] = {
    "topology": Annotated[
        str, typer.Option(help="fat-tree:K, leaf-spine:LEAVES,SPINES,HOSTS (per leaf) or star:HOSTS.")
    ],
    "lanes": Annotated[int, typer.Option(help="int32 lanes of a gradient packet.")],
    "rate_mbps": Annotated[float, typer.Option(help="Rate of every link in Mbit/s; 0 is unlimited.")],
    "delay_us": Annotated[int, typer.Option(help="Propagation delay of every link in microseconds.")],
    "loss": Annotated[float, typer.Option(help="Probability that a link drops a packet.")],
    "duplicate": Annotated[float, typer.Option(help="Probability that a link delivers a packet twice.")],
    "queue_packets": Annotated[int, typer.Option(help="Packets that may wait for a link.")],
    "jitter_us": Annotated[int, typer.Option(help="Delays vary by so many microseconds either way.")],
    "reorder": Annotated[bool, typer.Option(help="Packets with a shorter delay overtake.")],
    "slots": Annotated[int, typer.Option(help="Fragments that a switch can hold.")],
    "congestion_packets": Annotated[
        int, typer.Option(help="So many waiting packets are congestion, which switches mark; 0: never.")
    ],
    "switch": SwitchKind,
    "links": Annotated[
        str, typer.Option(help="Between switches: memory (fast), or veth (can be captured on the interfaces).")
    ],
    "seed": Annotated[int, typer.Option(help="For everything that is drawn by chance.")],
}
"""One for each field of NetworkConfig."""

Include = Annotated[list[Path] | None, typer.Option("--include", "-I", help="Folder to search.")]
Define = Annotated[list[str] | None, typer.Option("--define", "-D", help="NAME or NAME=VALUE.")]

Config = TypeVar("Config", bound=pydantic.BaseModel)


def network_options(command: Callable[..., int]) -> Callable[..., int]:
    """A command with the options of a network in place of its parameter `network`, a dictionary of their values.

    NetworkConfig has the defaults.
    """
    signature = inspect.signature(command, eval_str=True)
    kind = inspect.Parameter.KEYWORD_ONLY
    fields = NetworkConfig.model_fields
    options = [
        inspect.Parameter(name, kind, default=fields[name].default, annotation=annotation)
        for name, annotation in NETWORK.items()
    ]
    parameters = []
    for parameter in signature.parameters.values():
        parameters += options if parameter.name == "network" else [parameter.replace(kind=kind)]

    @functools.wraps(command)
    def with_options(**values: Any) -> int:
        network = {name: values.pop(name) for name in NETWORK}
        _check_topology(network["topology"])
        return command(network=network, **values)

    with_options.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    with_options.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return with_options


def _check_topology(word: str) -> None:
    from topo.registry import parse_topology

    try:
        parse_topology(word)
    except UserError as error:
        raise UserError(f"--topology: {error}") from None


def macros(defines: Iterable[str] | None) -> dict[str, str]:
    """Values of -D as macros with their replacement text; NAME alone is 1, as with cpp."""
    return {name: value if equals else "1" for name, equals, value in (d.partition("=") for d in defines or ())}


def validated(model: type[Config], **values: Any) -> Config:
    """Make a configuration; the first thing that is wrong becomes a UserError of one line."""
    try:
        return model(**values)
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        name = "--" + str(first["loc"][0]).replace("_", "-")
        raise UserError(f"{name}: {first['msg']}, got {first['input']!r}") from None
