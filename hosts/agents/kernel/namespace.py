"""What agents ask of the kernel of their host: to be in its network namespace, and that it says nothing for them."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

from gradbed.common.errors import UserError
from gradbed.common.namespaces import in_network_namespace

_CLONE_NEWNET = 0x40000000

_ICMP_INTERVAL = Path("/proc/sys/net/ipv4/icmp_ratelimit")
_NEVER_MS = 24 * 3600 * 1000

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


def forbid_unreachable(pid: int) -> None:
    """Let the kernel of the host that is process `pid` answer no packet with "port unreachable" any more: nobody
    answers for a program that is dead (icmp(7): so long between two such messages to one destination)."""
    in_network_namespace(pid, lambda: _ICMP_INTERVAL.write_text(str(_NEVER_MS)))
