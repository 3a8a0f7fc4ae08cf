"""Installing what a command needs besides the command line itself.

These are Python packages in layers (requirements/LAYER.txt), and Debian packages for networks on the real clock.
./gradbed installs both.
"""

from __future__ import annotations

import functools
import importlib
import importlib.metadata
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from gradbed.common.errors import UserError
from gradbed.common.modules import INSTALLED
from gradbed.common.programs import find_program

ROOT = Path(__file__).resolve().parent.parent
LOG = ROOT / ".venv-install.log"

MEGABYTES = {
    "options": 10,
    "p4": 100,
    "run": 280,
    "study": 390,
    "api": 460,
    "parquet": 150,
    "dask": 60,
    "docs": 110,
    "test": 900,
}
"""About what each layer takes up on a disk that has none of them; `options` is what help texts are made with."""

NETWORK_PROGRAMS = {
    "cc": "gcc",
    "ethtool": "ethtool",
    "ip": "iproute2",
    "mnexec": "mininet",
    "ping": "iputils-ping",
    "ps": "procps",
}
"""What networks on the real clock run, and the Debian packages that have it. Open vSwitch is for those who ask for
legacy switches, which say so (emulation/switches/open_vswitch.py)."""

DISTRIBUTIONS = {
    "cloudpickle": "distributed",
    "fastapi_offline": "fastapi-offline",
    "google": "finsy",
    "grpc": "finsy",
    "jinja2": "Jinja2",
    "material": "mkdocs-material",
    "os_ken": "os-ken",
    "starlette": "fastapi",
    "yaml": "PyYAML",
}
"""Modules, and what brings them, where requirements have it by another name."""

TEST_PACKAGES = ("openvswitch-switch", "libc6-dev", "iperf3")
"""What the tests take besides."""


def require_checkout(command: str) -> None:
    """Raise UserError where there is no checkout: what the command works on is not in the wheel."""
    if INSTALLED:
        raise UserError(f"{command} needs a checkout: git clone the project, then ./{command} there")


def needing(command: Callable[..., Any], layers: Sequence[str], network: bool) -> Callable[..., Any]:
    """Return the command, with what it needs installed first.

    Args:
        command: The function of a command.
        layers: What it needs.
        network: Whether it makes networks of the kernel whatever its options say. Where options and their defaults
            decide, the command asks for Debian packages itself, once it knows
            (gradbed.experiments.study.command.RunOptions.prepare_network).
    """

    @functools.wraps(command)
    def provided(*arguments: Any, **options: Any) -> Any:
        if network:
            need_debian("test" in layers)
        need(layers)
        return command(*arguments, **options)

    return provided


def need(layers: Iterable[str]) -> None:
    """Install the layers that are missing. UserError if that fails."""
    missing = [layer for layer in dict.fromkeys(layers) if not is_installed(layer)]
    if not missing:
        return
    if Path(sys.prefix) != ROOT / ".venv":
        what = f"'gradbed[{','.join(missing)}]'" if INSTALLED else f"-e '{ROOT}[{','.join(missing)}]'"
        raise UserError(f"Python packages are missing: {sys.executable} -m pip install {what}")
    size = max(MEGABYTES[layer] for layer in missing)
    _run_script(["--install-python", *missing], f"installing Python packages ({', '.join(missing)}: up to {size} MB)")
    importlib.invalidate_caches()


def is_installed(layer: str) -> bool:
    """Return whether all packages of the layer are installed; ./gradbed checks versions when requirements change."""
    try:
        for name in requirements(layer):
            importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


@functools.cache
def requirements(layer: str) -> tuple[str, ...]:
    """Return the distributions of a layer, except those that only some versions of Python need."""
    found: list[str] = []
    for line in (ROOT / "requirements" / f"{layer}.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("-r "):
            found += requirements(line.removeprefix("-r ").removesuffix(".txt"))
        elif (name := re.match(r"[\w.-]+", line)) and ";" not in line:
            found.append(name[0])
    return tuple(found)


def layer_of(module: str) -> str | None:
    """Return the first layer that provides a module, given by its full name, if any does."""
    top = module.split(".")[0]
    wanted = DISTRIBUTIONS.get(top, top)
    return next((layer for layer in MEGABYTES if wanted in requirements(layer)), None)


def layer_to_install(module: str | None) -> str | None:
    """Return the layer that provides a module which could not be loaded, unless it is installed already."""
    layer = layer_of(module) if module else None
    return None if layer is None or is_installed(layer) else layer


def need_debian(tests: bool = False) -> None:
    """Install the Debian packages that networks need. UserError without root, in one line that says what to do."""
    missing = [package for program, package in NETWORK_PROGRAMS.items() if find_program(program) is None]
    if "gcc" in missing:
        missing.append("libc6-dev")
    if tests:
        missing += TEST_PACKAGES
    if missing and os.geteuid() != 0:
        raise UserError(f"networks need root, and Debian packages that are missing ({' '.join(missing)}): use sudo")
    if missing:
        install_debian(dict.fromkeys(missing))


def install_debian(packages: Iterable[str]) -> None:
    """Install Debian packages, as root. UserError if that fails, and where there is no ./gradbed to do it."""
    wanted = list(packages)
    if INSTALLED:
        raise UserError(f"Debian packages are missing: apt-get install --no-install-recommends {' '.join(wanted)}")
    _run_script(["--install-debian", *wanted], "installing Debian packages")


def _run_script(arguments: Sequence[str], what: str) -> None:
    """Run ./gradbed to install something, and show its progress."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True, highlight=False)
    script = subprocess.Popen(
        [ROOT / "gradbed", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert script.stderr is not None
    if not console.is_terminal:
        print(f"gradbed: {what}", file=sys.stderr, flush=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(24), TimeElapsedColumn())
    with script, Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(what, total=None)
        while script.poll() is None:
            progress.update(task, description=f"{what}: {_last_step()}")
            time.sleep(0.1)
        said = script.stderr.read().strip().splitlines()
    if script.returncode != 0:
        raise UserError(said[-1].removeprefix("gradbed: ") if said else f"{what} ended with {script.returncode}")


def _last_step() -> str:
    """Return what pip or apt-get is doing, from the log."""
    try:
        lines = LOG.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    for line in reversed(lines):
        if step := re.match(r"\s*(Collecting|Downloading|Installing|Unpacking|Setting up|Get:\d+) ([^\s,]+)", line):
            return f"{step[1].lower()} {step[2].rsplit('/', 1)[-1]}"[:60]
    return ""
