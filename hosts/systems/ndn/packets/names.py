"""Names of a job's streams."""

from __future__ import annotations

from hosts.systems.ndn.description import Exchange, NdnJob
from hosts.systems.ndn.packets.tlv import generic

INSERT, DELETE, DISTRIBUTE = generic("insert"), generic("delete"), generic("distribute")
"""First components that routers know (p4src/include/ndn/packet.p4)."""


def training_of(job: NdnJob, receiver: str) -> str:
    """The name component under which a receiver subscribes: its own with exchange unicast, else everybody's. No two
    jobs have the same, so that none gets what routers keep, or still carry, of another."""
    return f"{asked_training(job.training, job.exchange, receiver)}-{job.number}"


def asked_training(training: str, exchange: Exchange, receiver: str) -> str:
    """The same as the controller is asked for it, before the job has a number."""
    return f"{training}>{receiver}" if exchange == "unicast" else training
