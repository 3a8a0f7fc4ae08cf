"""A process that is stopped at its system calls, one after the other (ptrace(2), Linux).

What it does is a function, in a child that is forked from here; nothing in it is made for that.
"""

from __future__ import annotations

import ctypes
import os
import platform
import signal
from collections.abc import Callable

import pytest

_TRACEME, _PEEKUSER, _POKEUSER, _SYSCALL, _SETOPTIONS = 0, 3, 6, 24, 0x4200
_SYSGOOD, _EXITKILL = 1, 0x100000
_SYSCALL_STOP = signal.SIGTRAP | 0x80
_ORIG_RAX, _RAX = 15 * 8, 10 * 8  # struct user_regs_struct of x86-64, <sys/user.h>

_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
_libc.ptrace.restype = ctypes.c_long

on_x86_64 = pytest.mark.skipif(platform.machine() != "x86_64", reason="system calls are made to fail on x86-64 alone")


class Traced:
    """A child that is stopped before its first system call and after each; `told` is what it has told so far."""

    def __init__(self, work: Callable[[Callable[[bytes], None]], None]) -> None:
        """work: is given a function by which it tells bytes; runs until it returns."""
        reading, writing = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            status = 1
            try:
                os.close(reading)
                _ptrace(_TRACEME, 0)
                os.kill(os.getpid(), signal.SIGSTOP)
                work(lambda text: _tell(writing, text))
                status = 0
            finally:
                os._exit(status)
        os.close(writing)
        self._reading = reading
        self.exit_status: int | None = None
        self._wait()
        _ptrace(_SETOPTIONS, self._pid, 0, _SYSGOOD | _EXITKILL)

    def __enter__(self) -> Traced:
        return self

    def __exit__(self, *exception: object) -> None:
        if self.exit_status is None:
            self.kill()
        os.close(self._reading)

    def step(self) -> bool:
        """Go on to the next beginning or end of a system call; False if it has ended instead."""
        _ptrace(_SYSCALL, self._pid)
        return self._wait()

    def go_on(self) -> None:
        """To its end."""
        while self.exit_status is None:
            self.step()

    def fail(self, error: int) -> None:
        """At the beginning of a call: have it do nothing and end with this errno. To be at its end afterwards."""
        _ptrace(_POKEUSER, self._pid, _ORIG_RAX, 2**64 - 1)
        self.step()
        _ptrace(_POKEUSER, self._pid, _RAX, 2**64 - error)

    def call(self) -> int:
        """The number of the system call."""
        return int(_ptrace(_PEEKUSER, self._pid, _ORIG_RAX))

    def kill(self) -> None:
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        self.exit_status = -signal.SIGKILL

    def told(self) -> bytes:
        """All of it, once the process has ended."""
        assert self.exit_status is not None
        found = b""
        while piece := os.read(self._reading, 4096):
            found += piece
        return found

    def _wait(self) -> bool:
        while True:
            _pid, status = os.waitpid(self._pid, 0)
            if not os.WIFSTOPPED(status):
                self.exit_status = os.waitstatus_to_exitcode(status)
                return False
            if os.WSTOPSIG(status) in (_SYSCALL_STOP, signal.SIGSTOP):
                return True
            _ptrace(_SYSCALL, self._pid, 0, os.WSTOPSIG(status))


def _tell(pipe: int, text: bytes) -> None:
    os.write(pipe, text)


def _ptrace(request: int, pid: int, address: int = 0, data: int = 0) -> int:
    ctypes.set_errno(0)
    found: int = _libc.ptrace(request, pid, address, data)
    if found == -1 and ctypes.get_errno():
        raise OSError(ctypes.get_errno(), "ptrace")
    return found
