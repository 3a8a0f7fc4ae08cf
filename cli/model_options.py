"""Options of the command line made from pydantic models, for one system or for several.

See experiments/configuration/options.py for the options themselves.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, get_origin

import typer

from gradbed.common.errors import UserError
from gradbed.experiments.configuration.options import ModelOption, described


def parameters(options: list[ModelOption]) -> list[inspect.Parameter]:
    """Return options as keyword parameters of a typer command, None where an option is not given."""
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
    """Return the parameters of a function, with their annotations evaluated."""
    return list(inspect.signature(function, eval_str=True).parameters.values())


def with_parameters(function: Callable[..., int], more: list[inspect.Parameter]) -> Callable[..., int]:
    """Return the function for typer, with keyword parameters in place of its `**given`."""
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


# ---- One command for several systems ----


OptionsOf = Mapping[str, list[ModelOption]]
"""Of each system; the first one that will do is taken."""


def every_option(options_of: OptionsOf) -> list[ModelOption]:
    """Return each flag once, from the first system that has it."""
    found: dict[str, ModelOption] = {}
    for options in options_of.values():
        for option in options:
            found.setdefault(option.flag, option)
    return list(found.values())


def meant(options_of: OptionsOf, given: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the system that is meant, and what was given for its own parameters.

    UserError if no system has all that was given.
    """
    flags = {option.parameter: option.flag for option in every_option(options_of)}
    wanted = {flags[parameter]: value for parameter, value in given.items() if value is not None}
    for name, options in options_of.items():
        own = {option.flag: option.parameter for option in options}
        if wanted.keys() <= own.keys():
            return name, {own[flag]: value for flag, value in wanted.items()}
    raise UserError(_complaint(options_of, list(wanted)))


def _complaint(options_of: OptionsOf, flags: list[str]) -> str:
    """Name the first two flags that do not go together."""
    havers = {
        flag: {name for name, own in options_of.items() if flag in {each.flag for each in own}} for flag in flags
    }
    for place, flag in enumerate(flags):
        for before in flags[:place]:
            if not havers[flag] & havers[before]:
                systems = [" and ".join(sorted(havers[each])) for each in (before, flag)]
                return f"{before} is an option of {systems[0]}, {flag} of {systems[1]}: leave one out"
    return f"{', '.join(flags)}: no system has all of these options"
