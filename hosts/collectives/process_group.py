"""How PyTorch's processes on the emulated hosts find each other."""

from __future__ import annotations

from gradbed.hosts.collectives.job import CollectiveJob

MASTER_PORT = 29500
"""As torchrun's default."""


def process_group_environment(job: CollectiveJob, index: int, interface: str) -> dict[str, str]:
    """The environment variables of torch.distributed for a worker, which has a host of its own."""
    return {
        "RANK": str(index),
        "WORLD_SIZE": str(len(job.workers)),
        "LOCAL_RANK": "0",
        "LOCAL_WORLD_SIZE": "1",
        "MASTER_ADDR": job.workers[0].ip,
        "MASTER_PORT": str(MASTER_PORT),
        "GLOO_SOCKET_IFNAME": interface,
    }
