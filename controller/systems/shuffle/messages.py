"""What is said of a shuffle at the REST interface, and what is kept of it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from gradbed.controller.systems.shuffle.scheduling.instance import ShuffleInstance
from gradbed.controller.systems.shuffle.scheduling.queues import Timing
from gradbed.controller.systems.shuffle.scheduling.schedule import Schedule, TreeChoice
from gradbed.formats.shuffle import USUAL_BITS

Multicast = Literal["bit-string", "groups"]
"""How packets find several receivers: by the set of them in the packet, or by a group for each set."""

Unicast = Literal["trees", "routes"]
"""How packets find a single receiver: on a tree like all others, or on its IPv4 routes."""

# On star:3: h1 and h2 want what the other has, and h3 has both.
_REQUEST_EXAMPLE: dict[str, Any] = {
    "workers": ["h1", "h2", "h3"],
    "sizes_bytes": [65, 65],
    "stored": [[0], [1], [0, 1]],
    "needed": [[1], [0], []],
    "scheduler": "improved",
}


class ShuffleSettings(BaseModel):
    """bits: length of the bit strings that the switches' program knows."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    bits: int = Field(default=USUAL_BITS, ge=8, multiple_of=8)


class ShuffleRequest(BaseModel):
    """A shuffle to plan. workers: hosts; sizes_bytes: of every sample; stored, needed: samples of each worker, in
    ascending order. master: a host that stores everything, for coded-master. variants: trees that every sender may
    choose from, at most; tree_choice: which of equally short ones a packet takes. timing: of the model by which
    packets wait for loans; null: the scheduler's own."""

    model_config = ConfigDict(frozen=True, extra="forbid", json_schema_extra={"example": _REQUEST_EXAMPLE})

    workers: Annotated[tuple[str, ...], Field(min_length=1)]
    sizes_bytes: tuple[int, ...]
    stored: tuple[tuple[int, ...], ...]
    needed: tuple[tuple[int, ...], ...]
    master: str | None = None
    scheduler: str = "improved"
    seed: int = 1
    timing: Timing | None = None
    variants: int = Field(default=1, ge=1)
    tree_choice: TreeChoice = "least-loaded"
    multicast: Multicast = "bit-string"
    unicast: Unicast = "trees"


class Delivery(BaseModel):
    """How a transmission travels. dst_ip: of its one receiver, or of a group; null: by bit string, on the tree
    bift_id."""

    model_config = ConfigDict(frozen=True)

    dst_ip: str | None = None
    bift_id: int = 0


class ShuffleJob(BaseModel):
    """All decisions of a shuffle. deliveries: of each transmission. first_bift_id: of the schedule's first tree;
    first_address, addresses: multicast addresses, counted over all jobs; first_group, groups: of each switch, counted
    from the last number downwards."""

    model_config = ConfigDict(frozen=True)

    instance: ShuffleInstance
    schedule: Schedule
    deliveries: tuple[Delivery, ...]
    first_bift_id: int
    first_address: int
    addresses: int
    first_group: int
    groups: int


class NewShuffle(BaseModel):
    """What a shuffle's agents must know. bits: length of bit strings; hops: of all transmissions together."""

    job: int
    bits: int
    hops: int
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
