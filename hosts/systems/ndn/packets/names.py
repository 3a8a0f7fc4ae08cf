"""Names of a job's streams."""

from __future__ import annotations

from gradbed.formats.ndn import job_component
from gradbed.hosts.systems.ndn.description import Exchange, NdnJob


def training_of(job: NdnJob, receiver: str) -> str:
    """The name component under which a receiver subscribes: its own with exchange unicast, else everybody's."""
    return job_component(asked_training(job.training, job.exchange, receiver), job.number)


def asked_training(training: str, exchange: Exchange, receiver: str) -> str:
    """The same as the controller is asked for it, before the job has a number."""
    return f"{training}>{receiver}" if exchange == "unicast" else training
