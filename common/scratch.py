"""Temporary folders that do not outlive their process for long, even if it is killed: the next one sweeps them."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

PREFIX = "gradbed-"
LOCK = ".lock"
"""Is locked (flock(2)) for as long as the folder's process lives: the kernel lets go of it when that is killed."""


@contextlib.contextmanager
def scratch_folder(purpose: str = "", place: Path | None = None) -> Iterator[Path]:
    """Make a folder gradbed-PURPOSE-..., and remove it with all in it at the end.

    place: a folder of the user's, for what is to be renamed into it; by default that of all temporary files.
    """
    prefix = f"{PREFIX}{purpose}-" if purpose else PREFIX
    sweep(place, PREFIX if place is None else prefix)
    with (
        tempfile.TemporaryDirectory(prefix=prefix, dir=place) as folder,
        (Path(folder) / f"{LOCK}.new").open("w") as lock,
    ):
        # It gets its name once it is locked: another process may sweep at any moment.
        fcntl.flock(lock, fcntl.LOCK_EX)
        Path(lock.name).rename(Path(folder) / LOCK)
        yield Path(folder)


def sweep(place: Path | None = None, prefix: str = PREFIX) -> None:
    """Remove the folders of this user whose processes have been killed."""
    for folder in (place or Path(tempfile.gettempdir())).glob(f"{prefix}*"):
        # Another one may sweep at the same time.
        with contextlib.suppress(OSError):
            if os.lstat(folder).st_uid != os.geteuid() or folder.is_symlink():
                continue  # in a folder of theirs others may have put a link to any file, or a pipe
            lock = os.open(folder / LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(lock)
