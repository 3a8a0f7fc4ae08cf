"""A machine on which nobody has installed anything for gradbed: Debian with Python and a C compiler, no package that
networks need, no network, and a fresh clone of the sources in which ./gradbed has not run yet.

It is this machine in namespaces of its own: programs are hidden behind /dev/null, folders of Debian's Python packages
behind an empty one, and Debian's pip is replaced by one that links what is installed beside the tests.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
USER = 65534
USER_PATH = "/usr/local/bin:/usr/bin:/bin"
"""Of an ordinary user on Debian: without the folders of /usr/sbin."""
ROOT_PATH = f"/usr/local/sbin:/usr/sbin:/sbin:{USER_PATH}"

OUR_PROGRAMS = ("mnexec", "ethtool", "ip", "ping", "ps", "iperf", "iperf3", "tshark", "ovs-vsctl", "ovs-vswitchd")
"""Of Debian packages that commands install, or tell people to install. Names, looked for in all folders."""
MININET = Path("/usr/lib/python3/dist-packages/mininet")
WHEELS = Path("/usr/share/python-wheels")

LEFT_OUT = (".git", ".venv", "results", "build", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis", "site")

PIP = """
import os, re, sys
from importlib import metadata
from pathlib import Path
sys.path.insert(0, SITE)
from packaging.requirements import Requirement

def named(file):
    for line in Path(file).read_text().splitlines():
        if line.startswith("-r "):
            yield from named(Path(file).parent / line[3:].strip())
        elif line and not line.startswith("#"):
            yield Requirement(line)

files = [word for before, word in zip(sys.argv, sys.argv[1:]) if before == "-r"]
if not files:
    sys.exit("ERROR: no network")
todo, seen = [each for file in files for each in named(file)], set()
target = next(Path(sys.prefix, "lib").glob("python3*/site-packages"))
while todo:
    wanted = todo.pop()
    if wanted.name in seen or not (wanted.marker is None or wanted.marker.evaluate({"extra": ""})):
        continue
    seen.add(wanted.name)
    found = metadata.distribution(wanted.name)
    tops = {file.parts[0] for file in found.files or () if file.parts[0] not in ("..", "__pycache__")}
    for name in tops:
        if not os.path.lexists(target / name):
            (target / name).symlink_to(Path(SITE, name))
    todo += map(Requirement, found.requires or ())
"""
"""Takes what requirements name from the environment of the tests, and nothing besides."""


@dataclass
class PlainMachine:
    """place: holds the clone and the home of its user. user: who runs commands (None: root, who has everything that
    this machine has)."""

    place: Path
    user: int | None
    variables: dict[str, str] = field(default_factory=dict)

    @property
    def clone(self) -> Path:
        return self.place / "gradbed"

    @property
    def home(self) -> Path:
        return self.place / "home"

    def start(self, command: str | Sequence[str], cwd: Path | None = None) -> subprocess.Popen[str]:
        """A command, or a line for the shell, with a process group of its own."""
        hidden = [] if self.user is None else _hidden()
        order = {
            "hidden": hidden,
            "folders": {str(WHEELS): str(self.place / "wheels")}
            | ({} if self.user is None else {str(MININET): str(self.place / "empty")}),
            "user": self.user,
            "command": ["/bin/sh", "-c", command] if isinstance(command, str) else list(command),
        }
        environment = {
            "PATH": ROOT_PATH if self.user is None else USER_PATH,
            "HOME": str(self.home),
            "TMPDIR": str(self.place / "tmp"),
            "LANG": "C.UTF-8",
            **self.variables,
        }
        return subprocess.Popen(
            [sys.executable, "-I", __file__, json.dumps(order)],
            cwd=cwd or self.clone,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, command: str | Sequence[str], timeout_s: float = 600, cwd: Path | None = None) -> tuple[int, str]:
        """Exit status, and all that was printed."""
        with self.start(command, cwd) as process:
            try:
                said, _ = process.communicate(timeout=timeout_s)
            except BaseException:
                os.killpg(process.pid, signal.SIGKILL)
                raise
        return process.returncode, said

    def give(self, path: Path) -> None:
        """To the user, with all folders below it."""
        if self.user is not None:
            for each in (path, *(inner for inner in path.rglob("*") if inner.is_dir() and not inner.is_symlink())):
                os.chown(each, self.user, self.user)

    @contextmanager
    def kept(self) -> Iterator[None]:
        """What appears in the clone meanwhile goes at the end; .venv stays."""
        before = set(self.clone.iterdir())
        try:
            yield
        finally:
            for new in set(self.clone.iterdir()) - before:
                if new.name.startswith(".venv"):
                    continue
                shutil.rmtree(new) if new.is_dir() and not new.is_symlink() else new.unlink()


@contextmanager
def plain_machine(user: int | None) -> Iterator[PlainMachine]:
    """Not below pytest's folders, which are closed to others."""
    with tempfile.TemporaryDirectory(prefix="gradbed-plain-") as name:
        place = Path(name)
        place.chmod(0o755)
        machine = PlainMachine(place, user)
        for folder in ("home", "tmp", "wheels", "empty"):
            (place / folder).mkdir()
        site = next(Path(sys.prefix, "lib").glob("python3*/site-packages"))
        with zipfile.ZipFile(place / "wheels" / "pip-0-py3-none-any.whl", "w") as wheel:
            wheel.writestr("pip/__init__.py", "")
            wheel.writestr("pip/__main__.py", PIP.replace("SITE", repr(str(site))))
        shutil.copytree(ROOT, machine.clone, symlinks=True, ignore=_left_out, copy_function=_linked)
        machine.give(place)
        yield machine


def _left_out(folder: str, names: list[str]) -> list[str]:
    return [name for name in names if Path(folder) == ROOT and name in LEFT_OUT] + [
        name for name in names if name.startswith(".venv")
    ]


def _linked(source: str, target: str) -> None:
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:
        shutil.copy2(source, target)


def _hidden() -> list[str]:
    folders = ROOT_PATH.split(":")
    return [place for name in OUR_PROGRAMS for folder in folders if os.path.exists(place := f"{folder}/{name}")]


def _enter(order: Mapping[str, object]) -> None:
    libc = ctypes.CDLL(None, use_errno=True)

    def check(outcome: int, what: str) -> None:
        if outcome != 0:
            raise OSError(ctypes.get_errno(), what)

    def bind(source: str, target: str) -> None:
        check(libc.mount(source.encode(), target.encode(), None, ctypes.c_ulong(0x1000), None), f"bind {target}")

    # <linux/sched.h>: CLONE_NEWNS, CLONE_NEWNET; <sys/mount.h>: MS_REC | MS_PRIVATE
    check(libc.unshare(0x20000 | 0x40000000), "unshare")
    check(libc.mount(b"none", b"/", None, ctypes.c_ulong(0x4000 | 0x40000), None), "private mounts")
    for program in order["hidden"]:  # type: ignore[attr-defined]
        bind("/dev/null", program)
    for target, source in order["folders"].items():  # type: ignore[attr-defined]
        if os.path.isdir(target):
            bind(source, target)
    _loopback_up()
    if order["user"] is not None:
        os.setgroups([])
        os.setgid(order["user"])  # type: ignore[arg-type]
        os.setuid(order["user"])  # type: ignore[arg-type]


def _loopback_up() -> None:
    import fcntl
    import socket
    import struct

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, 0x8914, struct.pack("16sh14x", b"lo", 0x1))  # SIOCSIFFLAGS, IFF_UP


if __name__ == "__main__":
    ordered = json.loads(sys.argv[1])
    _enter(ordered)
    os.execvp(ordered["command"][0], ordered["command"])
