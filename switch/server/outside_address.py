"""An address of P4Runtime in another network namespace than the switches'."""

from __future__ import annotations

from dataclasses import dataclass

from gradbed.switch.server.server_tls import ServerTls


@dataclass(frozen=True)
class OutsideAddress:
    """address: "host:port". namespace_fd: an open file of the namespace, which the serving process inherits.
    tls: None for a server without."""

    address: str
    namespace_fd: int
    tls: ServerTls | None = None
