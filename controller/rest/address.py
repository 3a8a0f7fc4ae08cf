"""Where the REST interface is: HOST:PORT or a unix socket."""

from __future__ import annotations

from pathlib import Path

from gradbed.common.errors import UserError


def unix_path(address: str) -> Path | None:
    """Return the path of a unix socket's address; None if the address is HOST:PORT.

    Raises:
        UserError: It is neither.
    """
    if address.startswith("unix:"):
        return Path(address.removeprefix("unix:"))
    if "/" in address:
        return Path(address)
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise UserError(f"{address!r} is neither HOST:PORT nor the path of a unix socket")
    return None
