"""Command-line options for typer, of those that pydantic models have (experiments/configuration/options.py)."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any, Literal, get_origin

import typer

from gradbed.experiments.configuration.options import ModelOption, described


def parameters(options: list[ModelOption]) -> list[inspect.Parameter]:
    """As keyword parameters of a typer command. An option that is not given is None: the model has the defaults."""
    made = []
    for option in options:
        kind = str if get_origin(option.kind) is Literal else option.kind
        shown = _shown(option.default)
        info: Any
        if option.is_argument:
            name = option.flag.removeprefix("--").replace("-", "_").upper()
            info = typer.Argument(metavar=f"[{name}]", help=described(option), show_default=shown if shown else False)
        else:
            # What is on by default, here or in another system, can be switched off.
            names = f"{option.flag}/--no-{option.flag.removeprefix('--')}" if kind is bool else option.flag
            info = typer.Option(names, help=described(option), show_default=shown if shown else False)
        made.append(
            inspect.Parameter(
                option.parameter,
                inspect.Parameter.KEYWORD_ONLY,
                default=None,
                annotation=Annotated[kind | None, info],
            )
        )
    return made


def parameters_of(function: Callable[..., int]) -> list[inspect.Parameter]:
    return list(inspect.signature(function, eval_str=True).parameters.values())


def with_parameters(function: Callable[..., int], more: list[inspect.Parameter]) -> Callable[..., int]:
    """The function for typer, with keyword parameters in the place of its `**given`."""
    kept = [
        each.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for each in parameters_of(function)
        if each.kind is not inspect.Parameter.VAR_KEYWORD
    ]

    @functools.wraps(function)
    def command(**values: Any) -> int:
        return function(**values)

    signature = [*more, *kept]
    command.__signature__ = inspect.Signature(signature)  # type: ignore[attr-defined]
    command.__annotations__ = {each.name: each.annotation for each in signature}
    return command


def _shown(default: Any) -> str:
    if default is None or default == ():
        return ""
    return ",".join(map(str, default)) if isinstance(default, tuple) else str(default)
