"""Processes of one run that stand still while another of them measures in real time."""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Callable, Iterator
from pathlib import Path


class Turns:
    """For processes that are given the same folder. By file locks: the kernel ends the turn of one that is killed.

    Who works holds one lock together with others who do. Who measures takes another first, which nobody passes from
    then on, and then waits for those that still work.
    """

    def __init__(self, folder: Path) -> None:
        self._entrance = folder / "entrance"
        self._machine = folder / "machine"

    @contextlib.contextmanager
    def measuring(self) -> Iterator[None]:
        """Waits until nobody works."""
        with self._entrance.open("a+") as entrance, self._machine.open("a+") as machine:
            fcntl.lockf(entrance, fcntl.LOCK_EX)
            fcntl.lockf(machine, fcntl.LOCK_EX)
            yield

    @contextlib.contextmanager
    def working(self) -> Iterator[Callable[[], None]]:
        """Waits while somebody measures. What it yields is to be called often: it gives way to who waits."""
        with self._entrance.open("a+") as entrance, self._machine.open("a+") as machine:

            def give_way() -> None:
                fcntl.lockf(machine, fcntl.LOCK_UN)
                fcntl.lockf(entrance, fcntl.LOCK_SH)
                fcntl.lockf(machine, fcntl.LOCK_SH)
                fcntl.lockf(entrance, fcntl.LOCK_UN)

            give_way()
            yield give_way
