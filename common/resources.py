"""Resources that are released: temporary folders, and context managers that are closed."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Self


# ---- Temporary folders ----

PREFIX = "gradbed-"
LOCK = ".lock"
"""A file that is locked (flock(2)) while the folder's process lives; the kernel unlocks it when that is killed."""


@contextlib.contextmanager
def scratch_folder(purpose: str = "", place: Path | None = None) -> Iterator[Path]:
    """Make a folder gradbed-PURPOSE-..., and remove it with all in it at the end.

    If the process is killed, the next call of any process removes the folder (`sweep`).

    Args:
        purpose: A word for the folder's name.
        place: A folder of the user's, for files that are to be renamed into it; by default that of temporary files.
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


# ---- Context managers ----


class Closing(ABC):
    """A context manager that calls `close` at the end."""

    @abstractmethod
    def close(self) -> object: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
