"""What a worker of a ring sends."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from gradbed.formats.datagram import ECT_0, NOT_ECT
from gradbed.hosts.agents.config import WorkerAddress
from gradbed.hosts.agents.context import Interface
from gradbed.hosts.collectives.job import CollectiveJob
from gradbed.hosts.collectives.ring_all_reduce import RingEndpoint, RingMessage

LANES = 32


class Kept:
    """An interface that keeps what is sent."""

    def __init__(self) -> None:
        self.frames: list[NDArray[Any]] = []

    def send(self, frames: NDArray[Any]) -> int:
        self.frames.append(frames)
        return len(frames)


def test_data_may_be_marked_and_acknowledgements_may_not() -> None:
    workers = tuple(
        WorkerAddress(index=i, name=f"h{i}", ip=f"10.0.0.{i + 1}", mac=f"02:00:00:00:00:0{i + 1}",
                      gateway_mac="02:00:00:00:01:00")
        for i in range(2)
    )  # fmt: skip
    kept = Kept()
    endpoint = RingEndpoint(CollectiveJob(job=1, lanes=LANES, workers=workers), 0, cast(Interface, kept))
    endpoint.send([RingMessage(round=0, fragment=0, step=0, lanes=np.zeros(LANES, np.int32))], [0])
    endpoint.acknowledge(1, 0, congested=True)
    data, acknowledgement = kept.frames
    assert data["tos"].tolist() == [ECT_0]
    assert acknowledgement["tos"].tolist() == [NOT_ECT]
