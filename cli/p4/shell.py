"""gradbed p4 shell: p4lang's interactive P4Runtime client."""

from __future__ import annotations

import os
from typing import Annotated

import typer


def shell(
    grpc_addr: Annotated[
        str, typer.Option("--grpc-addr", help="HOST:PORT or unix:PATH of the P4Runtime server.")
    ] = "127.0.0.1:9559",
    device_id: Annotated[int, typer.Option("--device-id", min=1, help="Which of the server's devices.")] = 1,
    election_id: Annotated[
        str, typer.Option("--election-id", help="HIGH,LOW; the controller with the highest one may write.")
    ] = "0,1",
    config: Annotated[
        str | None,
        typer.Option("--config", help="P4INFO,JSON: a program to push. Without it, the one that runs is used."),
    ] = None,
    install: Annotated[
        bool, typer.Option("--install", help="Install it, if it is not there, and do nothing else.")
    ] = False,
) -> int:
    """Talk to a switch in p4runtime-shell (installed on first use, in an environment of its own)."""
    from gradbed.switch.p4lang.p4runtime_shell import shell_arguments, shell_python

    arguments = shell_arguments(grpc_addr, device_id, election_id, config)
    python = str(shell_python())
    if not install:
        # The shell takes the place of this process, so that the terminal and its signals are the shell's.
        os.execv(python, [python, *arguments])
    print(f"p4runtime-shell is installed, and runs with {python}")
    return 0
