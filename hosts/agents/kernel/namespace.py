"""What a forked agent asks of the kernel: another network namespace."""

from __future__ import annotations

import ctypes
import os

from common.errors import UserError

_CLONE_NEWNET = 0x40000000

_libc = ctypes.CDLL(None, use_errno=True)


def enter_network_namespace(pid: int) -> None:
    """Move this process into the network namespace of process `pid`. Needs CAP_SYS_ADMIN; raises UserError."""
    try:
        descriptor = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise UserError(f"no network namespace of process {pid}: {error.strerror}") from None
    try:
        # os.setns exists from Python 3.12 on only.
        if _libc.setns(descriptor, _CLONE_NEWNET) != 0:
            reason = os.strerror(ctypes.get_errno())
            raise UserError(f"cannot enter the network namespace of process {pid}: {reason}")
    finally:
        os.close(descriptor)
