"""Options of commands: those that several commands share, and those made from pydantic models."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, get_origin

import typer

from gradbed.common.errors import UserError
from gradbed.experiments.configuration.options import DEFAULT_PANEL, LAST_PANELS, ModelOption, described

if TYPE_CHECKING:
    from gradbed.experiments.engine.observer import TrialObserver


Number = TypeVar("Number", int, float)


def within(least: float, most: float | None = None) -> Callable[[Number | None], Number | None]:
    """Return a callback that checks the limits of an option.

    It does what typer's min and max do, but without the range in the help, which would leave little room for text.
    """

    def checked(value: Number | None) -> Number | None:
        if value is not None and not least <= value <= (value if most is None else most):
            limits = f"at least {least:g}" if most is None else f"from {least:g} to {most:.10g}"
            raise typer.BadParameter(f"{limits} is wanted, not {value:g}")
        return value

    return checked


Scale = Annotated[
    float | None,
    typer.Option(
        callback=within(0.001, 1.0),
        help="Ratio of emulated to nominal link rate, 0.001 to 1 (real clock; default: by gradbed calibrate).",
    ),
]
Clock = Annotated[
    Literal["real", "virtual"] | None, typer.Option(help="Clock: real or virtual (default: as the study file says).")
]
Jobs = Annotated[
    int | None,
    typer.Option(
        "--parallel",
        "-j",
        callback=within(1),
        help="Number of trials run in parallel (virtual clock); default: all cores.",
    ),
]
Scheduler = Annotated[
    str | None, typer.Option(help="Run trials on the workers of a Dask scheduler (its address, or local).")
]
Threads = Annotated[
    int,
    typer.Option(
        callback=within(1),
        help="Number of simulation threads (virtual clock); results do not depend on it.",
    ),
]
Live = Annotated[
    bool, typer.Option("--live", help="Show the running network on a web page of this machine (docs/live.md).")
]
LivePaused = Annotated[
    bool,
    typer.Option(
        "--live-paused", help="As --live, paused at the start until you press run on the page (virtual clock)."
    ),
]
Output = Annotated[Path, typer.Option(help="Folder for results.")]
Seed = Annotated[int, typer.Option(callback=within(0, 2**31 - 1), help="Random seed.")]

Pcap = Annotated[
    str | None,
    typer.Option(help="Capture packets into pcap files: links (A-B) and hosts with commas between, or all."),
]

Include = Annotated[
    list[Path] | None, typer.Option("--include", "-I", help="Folder with included files; may be repeated.")
]
Define = Annotated[
    list[str] | None, typer.Option("--define", "-D", help="Macro, as NAME or NAME=VALUE; may be repeated.")
]


def captured(listed: str | None) -> tuple[str, ...]:
    """Split a list with commas; empty if the option was not given. UserError for an empty list."""
    found = tuple(word.strip() for word in (listed or "").split(",") if word.strip())
    if listed is not None and not found:
        raise UserError("--pcap: which links or hosts? such as --pcap e1-a1,h1, or --pcap all")
    return found


def macros(defines: Iterable[str] | None) -> dict[str, str]:
    """Return the macros of -D with their replacement text; NAME alone is 1, as with cpp."""
    return {name: value if equals else "1" for name, equals, value in (d.partition("=") for d in defines or ())}


def observed(live: bool, paused: bool, scheduler: str | None = None) -> AbstractContextManager[TrialObserver | None]:
    """Return the live view if it is asked for, otherwise an empty context."""
    if not live and not paused:
        return nullcontext()
    if scheduler is not None:
        raise UserError("--live does not go with --scheduler: trials run in other processes there")
    from gradbed.experiments.live.server import live_view

    return live_view(paused=paused)


# ---- Options made from pydantic models ----


def parameters(options: list[ModelOption]) -> list[inspect.Parameter]:
    """Return options as keyword parameters of a typer command, None where an option is not given.

    They are sorted by panel, as help lists them.
    """
    made = []
    for option in sorted(options, key=lambda each: _place(each.panel)):
        kind = str if get_origin(option.kind) is Literal else option.kind
        info: Any
        if option.is_argument:
            name = option.flag.removeprefix("--").replace("-", "_").upper()
            info = typer.Argument(metavar=f"[{name}]", help=_help(option), show_default=False)
        else:
            # What is on by default, here or in another system, can be switched off.
            names = f"{option.flag}/--no-{option.flag.removeprefix('--')}" if kind is bool else option.flag
            info = typer.Option(
                names,
                help=_help(option),
                show_default=False,
                rich_help_panel=option.panel,
                hidden=option.is_advanced,
            )
        made.append(
            inspect.Parameter(
                option.parameter,
                inspect.Parameter.KEYWORD_ONLY,
                default=None,
                annotation=Annotated[kind | None, info],
            )
        )
    if any(option.is_advanced for option in options):
        made.append(_help_all())
    return made


def _place(panel: str) -> int:
    """Return where a panel stands in the help: the workload first, then what other models add, then the network."""
    if panel in LAST_PANELS:
        return 2 + LAST_PANELS.index(panel)
    return int(panel != DEFAULT_PANEL)


def _help(option: ModelOption) -> str:
    """Return the text of an option with its default, which saves the line that typer would make of it."""
    shown = _shown(option.default)
    words = described(option)
    # A text that says itself what holds where nothing is given.
    return words if not shown or "(default" in words else f"{words.removesuffix('.')} (default: {shown})."


HELP_ALL = "help_all"
"""Parameter of `--help-all`."""


def _help_all() -> inspect.Parameter:
    """Return the option that prints the help with all its options."""
    info = typer.Option(
        "--help-all",
        is_eager=True,
        expose_value=False,
        callback=_print_all,
        show_default=False,
        help="Show all options and exit; --help leaves out those that are seldom needed.",
    )
    return inspect.Parameter(
        HELP_ALL, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Annotated[bool, info]
    )


def _print_all(context: typer.Context, is_asked: bool) -> None:
    if not is_asked:
        return
    for parameter in context.command.params:
        parameter.hidden = False  # type: ignore[attr-defined]
    typer.echo(context.get_help())
    raise typer.Exit


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
        values.pop(HELP_ALL, None)
        return function(**values)

    signature = [*more, *kept]
    command.__signature__ = inspect.Signature(signature)  # type: ignore[attr-defined]
    command.__annotations__ = {each.name: each.annotation for each in signature}
    return command


def _shown(default: Any) -> str:
    if default is None or default == ():
        return ""
    if isinstance(default, bool):
        return "on" if default else "off"
    if isinstance(default, float):
        return f"{default:g}" if default < 1e6 else f"{default:,.0f}"
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
