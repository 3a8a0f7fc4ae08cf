"""Addresses to listen on: "host:port" and "unix:/path", and those of other network namespaces than the switches'."""

from __future__ import annotations

import os
import re
import socket
from dataclasses import dataclass

from gradbed.common.errors import UserError
from gradbed.switch.server.server_tls import ServerTls

_ADDRESS = re.compile(r"unix:(?P<path>.+)|(?P<host>.+):(?P<port>\d{1,5})")


def is_unix(address: str) -> bool:
    return address.startswith("unix:")


def is_address(address: str) -> bool:
    match = _ADDRESS.fullmatch(address)
    return match is not None and int(match["port"] or 0) <= 65535


def check_address(address: str) -> None:
    """Raises UserError unless this is an address."""
    if not is_address(address):
        raise UserError(f"{address!r} is no address to listen on: give host:port or unix:/path")


def check_free(address: str) -> None:
    """Raises UserError, with the system's reason, if a server cannot listen there.

    gRPC gives no reason, and takes over the Unix socket of a server that runs.
    """
    try:
        if is_unix(address):
            _check_unix(address.removeprefix("unix:"))
        else:
            host, _, port = address.rpartition(":")
            _check_tcp(host.strip("[]"), int(port))
    except OSError as error:
        raise UserError(f"cannot listen on {address}: {error.strerror or error}") from None


def _check_tcp(host: str, port: int) -> None:
    family, kind, protocol, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    with socket.socket(family, kind, protocol) as probe:
        # As gRPC does: connections of a server that has ended do not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(place)


def _check_unix(path: str) -> None:
    with socket.socket(socket.AF_UNIX) as probe:
        if os.path.exists(path):
            try:
                probe.connect(path)
            except ConnectionRefusedError:
                return  # left by a server that was killed
            raise OSError("another server listens there")
        probe.bind(path)
        os.unlink(path)


# ---- Other network namespaces ----


@dataclass(frozen=True)
class OutsideAddress:
    """address: "host:port". namespace_fd: an open file of the namespace, which the serving process inherits.
    tls: None for a server without."""

    address: str
    namespace_fd: int
    tls: ServerTls | None = None
