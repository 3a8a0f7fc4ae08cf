"""What BMv2's command line asks a switch beside P4Runtime: its ports, its numbers, its time. An RPC of this project's
own, beside P4Runtime, in JSON."""

from __future__ import annotations

import fcntl
import json
import socket
import struct
import time
from collections.abc import Callable
from typing import Any

import grpc

from gradbed.switch.simple_switch.options import SwitchOptions

SERVICE, METHOD = "gradbed.SimpleSwitch", "Basics"
_GET_FLAGS, _UP_AND_RUNNING = 0x8913, 0x1 | 0x40  # SIOCGIFFLAGS, IFF_UP and IFF_RUNNING of <net/if.h>


def basics_handler(options: SwitchOptions) -> Any:
    """Return the handler of a switch, whose time begins now."""
    start_ns = time.monotonic_ns()

    async def answer(_request: bytes, _context: Any) -> bytes:
        basics = {
            "ports": [[port, name, _is_up(name)] for port, name in sorted(options.interfaces.items())],
            "device_id": options.device_id,
            "thrift_port": options.thrift_port,
            "elapsed_us": (time.monotonic_ns() - start_ns) // 1000,
            "since_epoch_us": time.time_ns() // 1000,
        }
        return json.dumps(basics).encode()

    return grpc.method_handlers_generic_handler(SERVICE, {METHOD: grpc.unary_unary_rpc_method_handler(answer)})


def ask_basics(channel: Any, timeout_s: float) -> dict[str, Any]:
    """Ask a switch over its gRPC channel. Raises grpc.RpcError."""
    call: Callable[..., bytes] = channel.unary_unary(f"/{SERVICE}/{METHOD}")
    basics: dict[str, Any] = json.loads(call(b"", timeout=timeout_s))
    return basics


def _is_up(interface: str) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        try:
            found = fcntl.ioctl(asking, _GET_FLAGS, struct.pack("16sH14x", interface.encode(), 0))
        except OSError:
            return False
    flags: int = struct.unpack("16xH14x", found)[0]
    return flags & _UP_AND_RUNNING == _UP_AND_RUNNING
