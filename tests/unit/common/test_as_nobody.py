"""What needs no root runs without, by a user who owns nothing but one folder; and what it makes for itself in folders
that all share is its own: open to nobody else, whatever the umask, with names that are others each time."""

from __future__ import annotations

import ctypes
import os
import select
import stat
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.command import ROOT

pytestmark = [pytest.mark.root, pytest.mark.nightly]

NOBODY = 65534
HOMES = "gradbed-nobody-"
SHARED = ("/tmp", "/var/tmp", "/dev/shm", "/run", "/run/lock")
VIRTUAL_RUN = ("run", "aggregation", "--clock", "virtual", "--topology", "star:3", "--workers", "2", "--rounds", "2")
COMMANDS = (
    VIRTUAL_RUN,
    ("report", "results/aggregation/latest"),
    ("p4", "compile", str(ROOT / "p4src" / "forward.p4")),
    ("topo", "show", "fat-tree:4"),
    ("docs", "site"),
    ("new", "mine"),
    ("doctor",),
    VIRTUAL_RUN,
)
"""One after the other: the report is one of the run. Names that come again with the second run can be guessed."""

_IN_ATTRIB, _IN_MOVED_TO, _IN_CREATE = 0x4, 0x80, 0x100
_EVENT = struct.Struct("iIII")


@dataclass
class Made:
    """What appeared in a folder: names, and all bits of the modes that they ever had."""

    modes: dict[Path, int] = field(default_factory=dict)


@contextmanager
def watching(*folders: Path) -> Iterator[Made]:
    """inotify(7) of what nobody makes there."""
    libc = ctypes.CDLL(None, use_errno=True)
    notified = libc.inotify_init1(os.O_NONBLOCK)
    assert notified >= 0
    watched = {
        libc.inotify_add_watch(notified, os.fsencode(each), _IN_CREATE | _IN_MOVED_TO | _IN_ATTRIB): each
        for each in folders
    }
    ends, end = os.pipe()
    made = Made()

    def watch() -> None:
        while True:
            ready, _, _ = select.select([notified, ends], [], [])
            if notified in ready:
                _take(os.read(notified, 1 << 16), watched, made)
            elif ends in ready:
                return

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield made
    finally:
        os.write(end, b"x")
        thread.join()
        for fd in (notified, ends, end):
            os.close(fd)


def _take(events: bytes, watched: dict[int, Path], made: Made) -> None:
    at = 0
    while at < len(events):
        watch, _, _, length = _EVENT.unpack_from(events, at)
        name = events[at + _EVENT.size : at + _EVENT.size + length].rstrip(b"\0")
        at += _EVENT.size + length
        if not name or name.startswith(os.fsencode(HOMES)):  # the folder itself, or this test beside itself
            continue
        place = watched[watch] / os.fsdecode(name)
        try:
            status = place.lstat()
        except FileNotFoundError:
            continue
        if status.st_uid == NOBODY:
            made.modes[place] = made.modes.get(place, 0) | status.st_mode


@pytest.fixture
def home() -> Iterator[Path]:
    """Not where pytest's folders are: what is above them is closed to others."""
    with tempfile.TemporaryDirectory(prefix=HOMES) as name:
        folder = Path(name)
        (folder / "tmp").mkdir()
        for own in (folder, folder / "tmp"):
            os.chown(own, NOBODY, NOBODY)
        (folder / "tmp").chmod(0o1777)
        yield folder


def as_nobody(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "TMPDIR": str(home / "tmp"),
        "PYTHONPATH": str(ROOT),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    return subprocess.run(
        [sys.executable, "-m", "gradbed", *arguments],
        cwd=home,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        user=NOBODY,
        group=NOBODY,
        extra_groups=(),
        umask=0,
    )


def check(home: Path, commands: Sequence[tuple[str, ...]]) -> set[str]:
    """The names of what appeared in folders that all share."""
    if as_nobody(home, "--version").returncode != 0:
        pytest.skip("nobody may not read this checkout, or its Python")
    shared = [place for place in map(Path, SHARED) if place.is_dir() and not place.is_symlink()]
    names: set[str] = set()
    for command in commands:
        with watching(home / "tmp", *shared) as made:
            done = as_nobody(home, *command)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        for place, mode in made.modes.items():
            assert not mode & 0o077, f"{command}: others may open {place}: {stat.filemode(mode)}"
            assert place.name not in names, f"{command}: {place} can be guessed"
        names |= {place.name for place in made.modes}
        assert not [place for place in made.modes if place.exists()], f"{command} leaves {made.modes}"
    return names


def test_what_needs_no_root_runs_without_and_leaves_nothing_open(home: Path) -> None:
    assert check(home, COMMANDS), "nothing was seen"
    assert (home / "site" / "index.html").exists()
    assert stat.S_IMODE((home / ".cache" / "gradbed").stat().st_mode) == 0o700
