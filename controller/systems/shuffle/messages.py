"""Requests, state and answers of shuffle jobs, in the REST interface and in the journal."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from gradbed.controller.systems.shuffle.scheduling.instance import ShuffleInstance
from gradbed.controller.systems.shuffle.scheduling.queues import Timing
from gradbed.controller.systems.shuffle.scheduling.schedule import Schedule, TreeChoice
from gradbed.formats.shuffle import USUAL_BITS

Multicast = Literal["bit-string", "groups"]
"""Addressing of several receivers: a bit string in the packet, or a multicast group for each set."""

Unicast = Literal["trees", "routes"]
"""Path to a single receiver: a tree, as for several, or the IPv4 routes."""

# On star:3: h1 and h2 want what the other has, and h3 has both.
_REQUEST_EXAMPLE: dict[str, Any] = {
    "workers": ["h1", "h2", "h3"],
    "sizes_bytes": [65, 65],
    "stored": [[0], [1], [0, 1]],
    "needed": [[1], [0], []],
    "scheduler": "improved",
}


class ShuffleSettings(BaseModel):
    """Settings of the service."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    bits: int = Field(default=USUAL_BITS, ge=8, multiple_of=8)
    """Length of the bit strings of the switches' program."""


class ShuffleRequest(BaseModel):
    """A shuffle to plan."""

    model_config = ConfigDict(frozen=True, extra="forbid", json_schema_extra={"example": _REQUEST_EXAMPLE})

    workers: Annotated[tuple[str, ...], Field(min_length=1)]
    """Hosts."""
    sizes_bytes: tuple[int, ...]
    """Size of every sample."""
    stored: tuple[tuple[int, ...], ...]
    """Samples that each worker stores, in ascending order."""
    needed: tuple[tuple[int, ...], ...]
    """Samples that each worker needs, in ascending order."""
    master: str | None = None
    """A host that stores every sample, for schedulers that need one."""
    scheduler: str = "improved"
    seed: int = 1
    timing: Timing | None = None
    """Timing by which packets wait for loans; null: the scheduler's own."""
    variants: int = Field(default=1, ge=1)
    """Largest number of trees that every sender may choose from."""
    tree_choice: TreeChoice = "least-loaded"
    """Rule by which a packet chooses among equally short trees."""
    multicast: Multicast = "bit-string"
    unicast: Unicast = "trees"


class Delivery(BaseModel):
    """The addressing of a transmission."""

    model_config = ConfigDict(frozen=True)

    dst_ip: str | None = None
    """Address of its one receiver, or of a multicast group; null: receivers are in the bit string."""
    bift_id: int = 0
    """Number of the tree for the bit string."""


class ShuffleJob(BaseModel):
    """A shuffle with all decisions made."""

    model_config = ConfigDict(frozen=True)

    instance: ShuffleInstance
    schedule: Schedule
    deliveries: tuple[Delivery, ...]
    """The addressing of each transmission."""
    first_bift_id: int
    """Number of the schedule's first tree."""
    first_address: int
    """Its first multicast address, counted over all jobs."""
    addresses: int
    """Number of its multicast addresses."""
    first_group: int
    """Its first multicast group in each switch; groups are counted downwards from the last number."""
    groups: int
    """Number of its multicast groups."""


class NewShuffle(BaseModel):
    """The answer to a new shuffle: what its agents need to know."""

    job: int
    bits: int
    """Length of bit strings."""
    hops: int
    """Hops of all transmissions."""
    schedule: Schedule
    deliveries: tuple[Delivery, ...]
    first_bift_id: int


class ListedShuffle(BaseModel):
    """A shuffle in the list of jobs."""

    job: int
    workers: tuple[str, ...]
    scheduler: str
    transmissions: int
    hops: int
