"""p4runtime-shell, the interactive P4Runtime client of p4lang, in a Python environment of its own.

It needs a protobuf older than anything else here can live with, hence the environment; pip fills it on first use.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from gradbed.common.errors import UserError
from gradbed.common.store import cache_dir
from gradbed.switch.server.addresses import is_address

PACKAGE = "p4runtime-shell==0.0.6"
_COMPLETE = "complete"


def shell_python() -> Path:
    """Return the Python of an environment that has p4runtime-shell; make it, in some seconds, if it is not there.

    Raises UserError with the last line of venv or pip if that fails.
    """
    home = _home()
    python = home / "bin" / "python"
    if _is_complete(home):
        return python
    with _locked(home.with_name(f"{home.name}.lock")):
        # Another run may have made it meanwhile.
        if not _is_complete(home):
            print(f"gradbed: installing {PACKAGE} in {home}, once", file=sys.stderr, flush=True)
            shutil.rmtree(home, ignore_errors=True)
            _run("making a Python environment", [sys.executable, "-m", "venv", str(home)])
            _run("pip", [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", PACKAGE])
            (home / _COMPLETE).touch()
    return python


def installed_python() -> Path | None:
    """Return the Python of that environment; None if it is not there."""
    return _home() / "bin" / "python" if _is_complete(_home()) else None


def _home() -> Path:
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    return cache_dir() / f"{PACKAGE.replace('==', '-')}-python{version}"


def shell_arguments(grpc_address: str, device_id: int, election_id: str, config: str | None) -> list[str]:
    """Return the arguments of Python that start the shell.

    `config`: P4INFO,JSON to push; None uses what the switch runs.
    """
    arguments = [
        "-m",
        "p4runtime_sh",
        "--grpc-addr",
        _checked_address(grpc_address),
        "--device-id",
        str(device_id),
        "--election-id",
        _checked_election_id(election_id),
    ]
    if config is not None:
        arguments += ["--config", _checked_config(config)]
    return arguments


def _checked_address(text: str) -> str:
    if not is_address(text):
        raise UserError(f"--grpc-addr {text}: give HOST:PORT or unix:PATH")
    return text


def _checked_election_id(text: str) -> str:
    parts = text.split(",")
    if len(parts) != 2 or not all(part.isdecimal() and int(part) < 1 << 64 for part in parts):
        raise UserError(f"--election-id {text}: give HIGH,LOW, two numbers of 64 bits, for instance 0,1")
    return text


def _checked_config(text: str) -> str:
    paths = text.split(",")
    if len(paths) != 2:
        raise UserError(f"--config {text}: give P4INFO,JSON, two files with a comma between them")
    for path in paths:
        if not Path(path).is_file():
            raise UserError(f"--config: no such file: {path}")
    return text


def _is_complete(home: Path) -> bool:
    # An environment whose Python was removed or replaced is of no use.
    return (home / _COMPLETE).exists() and os.access(home / "bin" / "python", os.X_OK)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise UserError(f"cannot make {path} ({error.strerror}): set GRADBED_CACHE") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _run(what: str, command: Sequence[str]) -> None:
    outcome = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if outcome.returncode != 0:
        words = [line.strip() for line in (outcome.stdout + outcome.stderr).splitlines() if line.strip()]
        raise UserError(f"p4runtime-shell cannot be installed: {what} failed: {words[-1] if words else 'no reason'}")
