"""Jobs as agents are told of them."""

from __future__ import annotations

from gradbed.formats.addresses import MulticastAddress
from gradbed.hosts.agents.config import AgentAddress, WorkerAddress
from gradbed.hosts.systems.compression.config import CompressionJob


def job_of(workers: int, **fields: object) -> CompressionJob:
    """The server is 10.0.0.1, the workers come after it."""

    def address(number: int) -> dict[str, str]:
        mac = f"02:00:00:00:00:{number:02x}"
        return {"name": f"h{number}", "ip": f"10.0.0.{number}", "mac": mac, "gateway_mac": "02:00:00:00:01:00"}

    return CompressionJob(
        job=1,
        workers=tuple(WorkerAddress(index=index, **address(2 + index)) for index in range(workers)),
        server=AgentAddress(**address(1)),
        multicast=MulticastAddress.of("239.66.0.16"),
        **fields,  # type: ignore[arg-type]
    )
