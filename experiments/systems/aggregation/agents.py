"""The agents of an aggregation job."""

from __future__ import annotations

from gradbed.experiments.testbeds.agents import AgentSpec
from gradbed.hosts.systems.aggregation.description import JobDescription, WorkerDescription

MODULE = "gradbed.hosts.systems.aggregation.agents"
WORKER_RANK = 1
"""The server stops first, so that workers count its last ACKs."""


def agent_specs(job: JobDescription) -> list[AgentSpec]:
    """All of them: the server, if the job has one, and the workers."""
    servers = [server_spec(job)] if job.exchange == "server" else []
    workers = [
        AgentSpec(
            host=worker.name,
            agent=f"{MODULE}:worker",
            name=f"worker {worker.index}",
            description=WorkerDescription(job=job, index=worker.index),
            stop_rank=WORKER_RANK,
            job=job.job,
        )
        for worker in job.workers
    ]
    return [*servers, *workers]


def server_spec(job: JobDescription) -> AgentSpec:
    """The parameter server."""
    return AgentSpec(host=job.server.name, agent=f"{MODULE}:server", name="server", description=job, job=job.job)
