"""gradbed python: the interpreter that has what gradbed installed."""

from __future__ import annotations

import importlib.util
import os
import sys

import typer

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
    options = ["-X", f"pycache_prefix={sys.pycache_prefix}"] if sys.pycache_prefix else []
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, *options, *arguments])
