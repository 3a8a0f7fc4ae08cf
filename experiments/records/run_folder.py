"""Where a run leaves what it found: results/NAME/STAMP/, and the link results/NAME/latest."""

from __future__ import annotations

import atexit
import datetime
import fcntl
import json
import os
import platform
import shlex
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from gradbed.common.caller import caller
from gradbed.common.errors import UserError
from gradbed.common.version import VERSION
from gradbed.experiments.tables.tables import replace_file

LIBRARIES = (
    "numpy",
    "scapy",
    "os-ken",
    "finsy",
    "grpcio",
    "protobuf",
    "networkx",
    "matplotlib",
    "scipy",
    "PyYAML",
    "pyarrow",
)


class RunFolder:
    """One run's folder: configuration, raw rows, figures, logs.

    Locked until `close`, so that two commands cannot write one run. `finish` says
    that the run is whole, and lets the link `latest` name it. Under sudo all of it is given to the person who called
    that.
    """

    def __init__(self, output: Path, name: str) -> None:
        parent = output / name
        try:
            missing = [folder for folder in (*reversed(output.parents), output, parent) if not folder.exists()]
            parent.mkdir(parents=True, exist_ok=True)
            path = _fresh_folder(parent, datetime.datetime.now().strftime("%Y%m%d-%H%M%S"))
            for folder in (*missing, path):
                _give_away(folder)
            self._open(path)
        except OSError as error:
            raise UserError(f"--output: cannot write results to {parent}: {error.strerror}") from None

    @classmethod
    def reopen(cls, path: Path) -> RunFolder:
        """A folder that is there already. UserError while another command works in it."""
        folder = cls.__new__(cls)
        folder._open(path)
        return folder

    def _open(self, path: Path) -> None:
        self.path = path
        self._lock = _locked(path)
        self.logs = path / "logs"
        self.logs.mkdir(exist_ok=True)
        atexit.register(self.close)

    def write_json(self, name: str, value: Any) -> Path:
        path = self.path / name
        replace_file(path, lambda scratch: scratch.write_text(json.dumps(value, indent=2, default=str) + "\n"))
        return path

    def finish(self) -> None:
        """The run is whole: `latest` names it from now on."""
        latest = self.path.parent / "latest"
        scratch = latest.with_name(f".latest-{os.getpid()}")
        scratch.unlink(missing_ok=True)
        scratch.symlink_to(self.path.name)
        _give_away(scratch)
        scratch.replace(latest)  # in one step: a reader meets either the former run or this one

    def close(self) -> None:
        """Unlock it, and give it to the caller. May be called again; the end of the process does, since figures may
        still be drawn into a run that is over."""
        _give_away(self.path)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _give_away(path: Path) -> None:
    """To sudo's caller, if there is one."""
    person = caller()
    if person is not None:
        person.own(path)


def _locked(path: Path) -> int | None:
    """A descriptor that holds the lock of a folder; None where the file system cannot lock (some of the shared ones).
    UserError if another process holds it."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise UserError(f"another gradbed works in {path}: wait for its end, or end it") from None
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def _fresh_folder(parent: Path, stamp: str) -> Path:
    # Two runs can start within one second.
    for attempt in range(1, 1000):
        path = parent / (stamp if attempt == 1 else f"{stamp}-{attempt}")
        try:
            path.mkdir()
        except FileExistsError:
            continue
        return path
    raise UserError(f"a thousand runs started at {stamp}: remove some from {parent}")


def environment() -> dict[str, Any]:
    """Command, versions and machine, for the record."""
    return {
        "command": shlex.join(["gradbed", *sys.argv[1:]]),
        "started": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
        "gradbed": VERSION,
        "revision": _revision(),
        "python": platform.python_version(),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "processors": len(os.sched_getaffinity(0)),
        "processor": processor_model(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "libraries": {name: _version(name) for name in LIBRARIES},
    }


def _revision() -> str | None:
    """Of the sources; None outside a clone, or without git."""
    if shutil.which("git") is None:
        return None
    command = ["git", "describe", "--always", "--dirty"]
    outcome = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    return outcome.stdout.strip() or None


def processor_model(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """As the kernel calls it; on machines where it does not say, the architecture."""
    for line in cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.machine()


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
