"""Machines that share nothing but the operating system: each has a network, processes and files of its own. Its `/`
can only be read; its checkout, home and temporary files lie in memory, and the tests' checkout is not there."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from gradbed.common.modules import FOLDERS
from gradbed.common.signals import die_with_parent
from gradbed.switch.runtime.library import build_runtime
from tests.command import ROOT
from tests.copied_sources import copy_sources

HERE = Path("/mnt")
"""Where a machine's own files lie."""
CACHE = HERE / "home" / ".cache" / "gradbed"
CHECKOUT = HERE / "gradbed"
PYTHON = HERE / "python" / "bin" / "python"
SOURCES = ("api", *FOLDERS, "p4src", "requirements")

_SET_UP = f"""
set -e
mount --make-rprivate /
mount -t tmpfs none {HERE}
mkdir -p {PYTHON.parents[1]} {CHECKOUT} {CACHE}
mount --bind {shlex.quote(sys.prefix)} {PYTHON.parents[1]}
tar x -C {CHECKOUT}
ln -s {CHECKOUT}/api {HERE}/api # what the environment's link to the package then names
mv {CHECKOUT}/*.so {CACHE}
for hidden in {shlex.quote(str(ROOT))} /root /home /tmp /var/tmp /dev/shm; do mount -t tmpfs none $hidden; done
mount -o remount,bind,ro /
ip link set lo up
echo up
exec sleep infinity
"""


class Machine:
    """One of a Switchboard's."""

    def __init__(self, address: str, checkout: bytes) -> None:
        self.address = address
        command = [
            "unshare",
            "--net",
            "--mount",
            "--pid",
            "--fork",
            "--kill-child",
            "--mount-proc",
            "sh",
            "-c",
            _SET_UP,
        ]
        self._keeper = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, preexec_fn=die_with_parent, cwd="/"
        )
        assert self._keeper.stdin is not None and self._keeper.stdout is not None
        self._keeper.stdin.write(checkout)
        self._keeper.stdin.close()
        assert self._keeper.stdout.readline() == b"up\n"
        (child,) = Path(f"/proc/{self._keeper.pid}/task/{self._keeper.pid}/children").read_text().split()
        self.pid = int(child)
        """Of its first process, whose end is that of all others."""
        self._programs: list[subprocess.Popen[str]] = []

    def path(self, inside: str | Path) -> Path:
        """Where a file of this machine is for the test."""
        return Path(f"/proc/{self.pid}/root") / str(inside).lstrip("/")

    def start(self, *command: object, cwd: Path = HERE) -> subprocess.Popen[str]:
        """A program on it. What it says on either output is one stream."""
        inside = ["nsenter", f"--target={self.pid}", "--net", "--mount", "--pid", f"--wdns={cwd}"]
        environment = {"HOME": str(HERE / "home"), "PATH": os.environ["PATH"]}
        started = subprocess.Popen(
            [*inside, *map(str, command)],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            preexec_fn=die_with_parent,
        )
        self._programs.append(started)
        return started

    @staticmethod
    def kill(program: subprocess.Popen[str]) -> None:
        """With SIGKILL: what nsenter has started, which has a child for it in the namespaces."""
        (child,) = Path(f"/proc/{program.pid}/task/{program.pid}/children").read_text().split()
        os.kill(int(child), signal.SIGKILL)
        program.wait()

    def write(self, files: Mapping[Path, str]) -> None:
        for name, text in files.items():
            self.path(name).parent.mkdir(parents=True, exist_ok=True)
            self.path(name).write_text(text, encoding="utf-8")

    def lose(self) -> None:
        """As when its power is cut."""
        self._keeper.kill()
        self._keeper.wait()
        for program in self._programs:
            program.wait()


class Switchboard:
    """A bridge in a namespace of its own, on which machines hang."""

    def __init__(self) -> None:
        # The switches' runtime goes along: compiling it on each machine would take most of a test's time.
        library = build_runtime()
        with tempfile.TemporaryDirectory() as copied:
            copy_sources(SOURCES, Path(copied))
            self._checkout = subprocess.run(
                ["tar", "c", "-C", copied, *SOURCES, "-C", str(library.parent), library.name],
                check=True,
                capture_output=True,
            ).stdout
        self._bridge = subprocess.Popen(
            [
                "unshare",
                "--net",
                "sh",
                "-c",
                "ip link add hub type bridge && ip link set hub up && echo up && exec cat",
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            preexec_fn=die_with_parent,
        )
        assert self._bridge.stdout is not None and self._bridge.stdout.readline() == b"up\n"
        self._machines: list[Machine] = []

    def machine(self) -> Machine:
        number = len(self._machines) + 1
        made = Machine(f"10.99.0.{number}", self._checkout)
        self._machines.append(made)
        port = f"m{number}"
        _ip(self._bridge.pid, f"link add {port} master hub type veth peer name eth0 netns {made.pid}")
        _ip(self._bridge.pid, f"link set {port} up")
        _ip(made.pid, f"addr add {made.address}/24 dev eth0")
        _ip(made.pid, "link set eth0 up")
        return made

    def close(self) -> None:
        for machine in self._machines:
            machine.lose()
        self._bridge.kill()
        self._bridge.communicate()


def _ip(pid: int, command: str) -> None:
    inside = ["nsenter", f"--target={pid}", "--net", "ip", *command.split()]
    subprocess.run(inside, check=True, capture_output=True)


@contextlib.contextmanager
def switchboard() -> Iterator[Switchboard]:
    made = Switchboard()
    try:
        yield made
    finally:
        made.close()
