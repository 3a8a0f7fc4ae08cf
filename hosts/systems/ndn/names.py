"""Names of a job's streams."""

from __future__ import annotations

from hosts.systems.ndn.description import NdnJob
from hosts.systems.ndn.tlv import generic

INSERT, DELETE, DISTRIBUTE = generic("insert"), generic("delete"), generic("distribute")
"""First components that routers know (p4src/include/ndn/packet.p4)."""


def training_of(job: NdnJob, receiver: str) -> str:
    """The name component under which a receiver subscribes: its own with exchange unicast, else everybody's."""
    return f"{job.training}>{receiver}" if job.exchange == "unicast" else job.training
