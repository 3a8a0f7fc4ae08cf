"""The caller: the user behind sudo, to whom results should belong."""

from __future__ import annotations

import contextlib
import os
import pwd
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Caller:
    """A user who is not root."""

    uid: int
    gid: int

    def own(self, path: Path) -> None:
        """Change the owner of a file, or of a folder and all in it, to the caller; symbolic links are not followed.

        Files whose owner cannot be changed (some shared folders have only one) stay as they are.
        """
        with contextlib.suppress(OSError):
            os.chown(path, self.uid, self.gid, follow_symlinks=False)
        for _, folders, files, descriptor in os.fwalk(path, onerror=None):
            for name in (*folders, *files):
                with contextlib.suppress(OSError):
                    os.chown(name, self.uid, self.gid, dir_fd=descriptor, follow_symlinks=False)

    def become(self) -> None:
        """Let this process, threads and children included, act as the caller; `as_root` is the way back.

        For the user's own programs, whose files should be theirs. It is no protection against such a program.
        """
        try:
            entry = pwd.getpwuid(self.uid)
        except KeyError:
            os.setgroups([self.gid])
        else:
            os.initgroups(entry.pw_name, self.gid)
            os.environ.update(HOME=entry.pw_dir, USER=entry.pw_name, LOGNAME=entry.pw_name)
        os.setresgid(self.gid, self.gid, self.gid)
        os.setresuid(self.uid, self.uid, 0)


def caller() -> Caller | None:
    """Return the user who called sudo (SUDO_UID, SUDO_GID: sudo(8)); None for root itself, and without root."""
    if os.geteuid() != 0:
        return None
    try:
        found = Caller(int(os.environ["SUDO_UID"]), int(os.environ["SUDO_GID"]))
    except (KeyError, ValueError):
        return None
    return found if found.uid > 0 else None


def trusted_uids() -> set[int]:
    """User ids of the accounts that may do what this process may: root, its own, and the caller of sudo."""
    person = caller()
    return {0, os.getuid(), os.geteuid(), *(() if person is None else (person.uid,))}


@contextlib.contextmanager
def as_root() -> Iterator[None]:
    """Act as root again after `Caller.become`, for what needs it; nothing changes without that."""
    former = os.geteuid()
    if os.getresuid()[2] == 0:
        os.seteuid(0)
    try:
        yield
    finally:
        os.seteuid(former)
