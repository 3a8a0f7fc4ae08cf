"""gradbed python: the interpreter that has what gradbed installed."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import typer

from gradbed.cli import layers
from gradbed.common.modules import INSTALLED

TESTS = Path(__file__).resolve().parents[2] / "tests"

app = typer.Typer()


@app.command(
    options_metavar="[SCRIPT | -c COMMAND | -m MODULE] [ARGUMENT]...",
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "allow_interspersed_args": False},
)
def python(context: typer.Context) -> None:
    """Run Python in which `import gradbed` works (docs/api.md).

    Arguments are Python's own: SCRIPT ..., -c COMMAND, -m MODULE. Without any, a prompt: IPython's, if it is there.
    """
    arguments = list(context.args)
    if not arguments and importlib.util.find_spec("IPython") is not None:
        arguments = ["-m", "IPython"]
    if runs_gradbeds_tests(arguments):
        layers.need(["test"])
    options = ["-X", f"pycache_prefix={sys.pycache_prefix}"] if sys.pycache_prefix else []
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, *options, *arguments])


def runs_gradbeds_tests(arguments: Sequence[str]) -> bool:
    """Return whether this is pytest with tests of the checkout, which need more packages than other programs."""
    if INSTALLED or list(arguments[:2]) != ["-m", "pytest"]:
        return False
    named = [Path(argument.partition("::")[0]) for argument in arguments[2:] if not argument.startswith("-")]
    places = [path.resolve() for path in named if path.exists()] or [Path.cwd()]
    return any(place.is_relative_to(TESTS) or TESTS.is_relative_to(place) for place in places)
