"""PyTorch scripts on this machine alone, every rank a process, to record what they compute and communicate."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from gradbed.common.errors import UserError
from gradbed.common.modules import attribute
from gradbed.experiments.systems import find_system, systems
from gradbed.hosts.torch_hook.torch_extra import require_torch

RECORDER = "gradbed.hosts.torch_hook.recorder"
LOOK_S = 0.1
OF_THE_PROFILER = "USDT:"
"""Begins the lines of the profiler's own, which PyTorch prints whatever it is told."""


def run_torch_recording(script: Path, arguments: Sequence[str], ranks: int, folder: Path) -> int:
    """Run a script on so many ranks, and make a trace of what they did in `folder`. UserError if a rank fails, or the
    folder has something in it."""
    require_torch("gradbed run torch --trace")
    if not script.is_file():
        raise UserError(f"there is no script {script}")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder} is there already: choose another folder")
    convert = attribute(_recorder())
    with tempfile.TemporaryDirectory(prefix="gradbed-recording-") as recorded:
        _run_ranks(script, arguments, ranks, Path(recorded))
        print(f"made {convert(Path(recorded), ranks, folder)}")
    return 0


def _recorder() -> str:
    """Of the system that makes traces of recordings."""
    for name in systems():
        place = find_system(name).tools.recorder
        if place is not None:
            return place
    raise UserError("--trace: no system that is installed makes traces")


def _run_ranks(script: Path, arguments: Sequence[str], ranks: int, recorded: Path) -> None:
    """The first rank prints to the terminal; of another that fails its last line is told."""
    command = [sys.executable, "-m", RECORDER, str(recorded), str(script.absolute()), *arguments]
    common = {
        **os.environ,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(_free_port()),
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1"),
        "TORCH_CPP_LOG_LEVEL": "ERROR",
        "KINETO_LOG_LEVEL": "5",
        "WORLD_SIZE": str(ranks),
        "LOCAL_WORLD_SIZE": str(ranks),
    }
    running: dict[int, subprocess.Popen[bytes]] = {}
    try:
        for rank in range(ranks):
            of_rank = {**common, "RANK": str(rank), "LOCAL_RANK": str(rank)}
            with (recorded / f"output.{rank}").open("wb") as output:
                to = None if rank == 0 else output
                running[rank] = subprocess.Popen(command, env=of_rank, stdin=subprocess.DEVNULL, stdout=to, stderr=to)
        _wait(running, recorded)
    finally:
        for process in running.values():
            process.kill()
            process.wait()


def _wait(running: dict[int, subprocess.Popen[bytes]], recorded: Path) -> None:
    left = dict(running)
    while left:
        for rank, process in [*left.items()]:
            status = process.poll()
            if status is None:
                continue
            del left[rank]
            if status != 0:
                raise UserError(f"rank {rank} of the script ended with status {status}{_reason(recorded, rank)}")
        time.sleep(LOOK_S)


def _reason(recorded: Path, rank: int) -> str:
    """The last line that a rank printed, but for what the profiler says of itself."""
    lines = (recorded / f"output.{rank}").read_text(errors="replace").splitlines()
    said = [line for line in lines if line.strip() and not line.startswith(OF_THE_PROFILER)]
    return f": {said[-1]}" if said else ""


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])
