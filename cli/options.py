"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

import typer

from gradbed.common.errors import UserError

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
        help="Emulated over nominal link rate, 0.001 to 1, instead of this machine's factor (real clock).",
    ),
]
Clock = Annotated[Literal["real", "virtual"] | None, typer.Option(help="Clock to run on, instead of the study's.")]
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
        help="Number of threads that simulate a large network (virtual clock); results are the same.",
    ),
]
Live = Annotated[
    bool, typer.Option("--live", help="Show the network in a page of this machine while it runs (docs/live.md).")
]
LivePaused = Annotated[
    bool, typer.Option("--live-paused", help="As --live; the virtual clock waits at the start for the page's run.")
]
Output = Annotated[Path, typer.Option(help="Folder for results.")]
Seed = Annotated[int, typer.Option(callback=within(0, 2**31 - 1), help="Random seed.")]

Pcap = Annotated[
    str | None,
    typer.Option(
        help="What to capture, as files for Wireshark: links (A-B) and hosts, with commas between, or all links."
    ),
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
    from gradbed.experiments.live.view import live_view

    return live_view(paused=paused)
