"""Networks come and go and leave nothing; whatever is left on purpose is told by its name."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gradbed.common.namespaces import MS_NODEV, mount
from gradbed.common.sandbox import run_in_sandbox
from tests.command import tool
from tools.bench.leaks import SHARED_MEMORY, ResourceLeak, come_and_go

pytestmark = [pytest.mark.thorough, pytest.mark.root]

KEPT: list[object] = []


def started(*words: str) -> subprocess.Popen[bytes]:
    """A command that goes on, once it runs."""
    command = subprocess.Popen(
        [*words, "sh", "-c", "echo up; read never"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert command.stdout is not None and command.stdout.readline() == b"up\n"
    return command


LEAKS: dict[str, tuple[Callable[[Path], object], str]] = {
    "a process": (lambda folder: started(), "1 more: process sh -c echo up; read never"),
    "a namespace": (lambda folder: started("unshare", "--net"), "1 more: networks"),
    "an interface": (
        lambda folder: subprocess.run(["ip", "link", "add", "type", "veth"], check=True),
        "2 more: interfaces",
    ),
    "a temporary file": (lambda folder: (folder / f"left-{time.monotonic_ns()}").touch(), "1 more: file "),
    "shared memory": (lambda folder: (Path(SHARED_MEMORY) / f"left-{time.monotonic_ns()}").touch(), SHARED_MEMORY),
    "a mount": (lambda folder: mount("tmpfs", str(folder), "tmpfs", MS_NODEV), "1 more: mount /"),
    "a socket": (lambda folder: socket.create_server(("127.0.0.1", 0)), "1 more: sockets of tcp"),
    "a raw socket": (lambda folder: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 3), "sockets of packet"),
    "a descriptor": (lambda folder: os.open("/dev/null", os.O_RDONLY), "1 more: descriptors"),
    "a thread": (lambda folder: threading.Thread(target=time.sleep, args=(77,), daemon=True).start(), "threads"),
}


def complaint(folder: Path, way: Callable[[Path], object]) -> str:
    """What is said of networks of which each does this; without any network, since nothing else is to be left."""
    told = folder / "told"
    temporary = folder / "temporary"
    temporary.mkdir()

    def run() -> int:
        mount("tmpfs", SHARED_MEMORY, "tmpfs", 0)
        try:
            come_and_go(3, temporary, {"only": lambda: KEPT.append(way(temporary))})
            told.write_text("")
        except ResourceLeak as leak:
            told.write_text(str(leak))
        return 0

    assert run_in_sandbox(run) == 0
    return told.read_text()


@pytest.mark.parametrize("name", LEAKS)
def test_what_is_left_is_told(tmp_path: Path, name: str) -> None:
    leak, said = LEAKS[name]
    found = complaint(tmp_path, leak)
    assert found.startswith("after 2 networks: ") and said in found, found


def test_nothing_left_is_nothing_told(tmp_path: Path) -> None:
    assert complaint(tmp_path, lambda folder: None) == ""


@pytest.mark.nightly
def test_networks_leave_nothing() -> None:
    done = tool("bench", "leaks", "--starts", "21", timeout_s=600)
    assert done.returncode == 0, done.stderr
    assert "21 networks, up and down; nothing is left" in done.stdout
