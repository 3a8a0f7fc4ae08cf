"""Where a P4 switch is reached."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """A gRPC address ("127.0.0.1:9559", "unix:/run/p4rt.sock") and the switch's P4Runtime device id there.

    thrift_port: of a switch of BMv2, whose P4Runtime reads no registers.
    """

    address: str
    device_id: int
    thrift_port: int | None = None
