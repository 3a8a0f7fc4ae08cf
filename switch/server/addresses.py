"""Addresses to listen on: "host:port" and "unix:/path", also in other network namespaces, and TLS."""

from __future__ import annotations

import os
import re
import socket
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradbed.common.errors import UserError

_ADDRESS = re.compile(r"unix:(?P<path>.+)|(?P<host>.+):(?P<port>\d{1,5})")


def is_unix(address: str) -> bool:
    return address.startswith("unix:")


def is_address(address: str) -> bool:
    match = _ADDRESS.fullmatch(address)
    return match is not None and int(match["port"] or 0) <= 65535


def check_address(address: str) -> None:
    """Raise UserError unless this is an address."""
    if not is_address(address):
        raise UserError(f"{address!r} is no address to listen on: give host:port or unix:/path")


def check_free(address: str) -> None:
    """Raise UserError, with the system's reason, if a server cannot listen there.

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
    """Address to listen on in another network namespace."""

    address: str
    """HOST:PORT."""
    namespace_fd: int
    """Open file of the namespace, which the serving process inherits."""
    tls: ServerTls | None = None
    """None for a server without TLS."""


# ---- TLS ----


@dataclass(frozen=True)
class ServerTls:
    """PEM files of a gRPC server over TLS."""

    certificate: Path
    """The server's certificate, followed by those of authorities between it and the one that clients know."""
    key: Path
    client_ca: Path | None = None
    """Authorities of which clients must have a certificate (mutual TLS); None: any client may call."""

    def credentials(self) -> Any:
        """Return the grpc.ServerCredentials.

        Raises UserError if a file cannot be read, is of another kind, or key and certificate do not belong together:
        gRPC would report that at the first call only.
        """
        import grpc

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            key, certificate = self.key.read_bytes(), self.certificate.read_bytes()
            authorities = None if self.client_ca is None else self.client_ca.read_bytes()
        except OSError as error:
            raise UserError(f"cannot read {error.filename}: {error.strerror}") from None
        try:
            # With a password it does not stop to ask for one.
            context.load_cert_chain(self.certificate, self.key, password="")
        except (OSError, ValueError) as error:
            raise UserError(
                f"{self.certificate} and {self.key} are not a certificate and its key, without a password, in PEM "
                f"format ({_reason(error)})"
            ) from None
        if authorities is not None:
            try:
                context.load_verify_locations(self.client_ca)
            except OSError as error:
                raise UserError(f"{self.client_ca} has no certificate in PEM format ({_reason(error)})") from None
        return grpc.ssl_server_credentials(
            [(key, certificate)], root_certificates=authorities, require_client_auth=authorities is not None
        )


def _reason(error: Exception) -> str:
    return (getattr(error, "reason", None) or str(error)).replace("_", " ").lower()
