"""What a worker of a shuffle is told: its part of the schedule, and how to reach the others."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import reduce
from operator import and_, or_

from pydantic import Field

from gradbed.formats.addresses import Ip
from gradbed.hosts.agents.config import AgentConfig, WorkerAddress
from gradbed.hosts.systems.shuffle.samples import SampleSource


class PlannedTransmission(AgentConfig):
    """A transmission that the worker sends: the XOR of samples."""

    number: int
    samples: tuple[int, ...]
    receivers: tuple[tuple[int, int], ...]
    """Pairs of a worker and the sample that it decodes."""
    dst_ip: Ip | None = None
    """Address of a host or a group; None: by bit string, on the tree bift_id."""
    bift_id: int = 0
    waits_for: tuple[int, ...] = ()
    """Numbers of the loans that it needs."""
    is_loan: bool = False
    """Whether it lends its sample."""


class PlannedReception(AgentConfig):
    """A transmission that comes to the worker, who decodes the sample `wanted` of it."""

    number: int
    sender: int
    place: int
    """Place in its sender's queue."""
    planned_us: int
    """Time after the beginning at which the sender has sent it if nothing holds it up."""
    samples: tuple[int, ...]
    wanted: int
    asked: tuple[int, ...] = Field(min_length=1)
    """Workers who can send it again what was lost, in the order in which they are asked if nothing comes."""
    lent_for: int | None = None
    """Transmission for which it borrows the sample; None: it needs the sample itself."""


class RepairTree(AgentConfig):
    """A tree on which the worker may send by bit string."""

    bift_id: int
    hosts: int
    """Hosts that it reaches, as a set of bits."""
    up: tuple[int, ...]
    """For each worker the links between it and the tree's root, as a set of bits, from which a packet's cost
    follows."""

    def hops(self, sender: int, receivers: Sequence[int]) -> int | None:
        """Links that a packet takes: those above some of the workers and not above all. None: it does not reach
        them."""
        if any(not self.hosts >> worker & 1 for worker in receivers):
            return None
        up = [self.up[worker] for worker in (sender, *receivers)]
        return (reduce(or_, up) ^ reduce(and_, up)).bit_count()


class RepairGroup(AgentConfig):
    """A multicast group that the worker sends to."""

    dst_ip: Ip
    members: int
    """Members as a set of bits; they all get what is sent to the group."""
    cost_hops: int
    """Number of links that a packet takes."""

    def hops(self, sender: int, receivers: Sequence[int]) -> int | None:
        """Return the hops to some members; None: some are no members."""
        return self.cost_hops if all(self.members >> worker & 1 for worker in receivers) else None


class ShuffleConfig(AgentConfig):
    """The config of one worker of a job."""

    job: int
    index: int
    workers: tuple[WorkerAddress, ...]
    """All workers, and the master, if there is one, as the last."""
    source: SampleSource
    bits: int = Field(ge=8, multiple_of=8)
    """Length of bit strings."""
    fragment_bytes: int = Field(ge=1)
    """Payload of every packet."""
    sizes_bytes: Mapping[int, int]
    """Size of every sample that the worker meets."""
    stored: tuple[int, ...]
    """Samples that it holds at first."""
    keep: tuple[int, ...]
    """Samples that it must hold in the end."""
    outgoing: tuple[PlannedTransmission, ...]
    """Transmissions in the order of its queue."""
    incoming: tuple[PlannedReception, ...]
    holders: Mapping[int, int]
    """For each sample that it may be asked for, the workers that hold it, as a set of bits."""
    repair_routes: tuple[RepairTree | RepairGroup, ...] = ()
    """Routes of repairs to several receivers at once."""
    distances: tuple[int, ...]
    """Number of hops to every worker."""
    interval_us: float = Field(ge=0)
    """Time between two packets."""
    timeout_us: int = Field(ge=1)
    """Time without news of what should have come, after which it asks for it."""
    give_up_us: int = Field(ge=1)
    """Time for which it asks without any answer."""
    tell_contents: bool = False
    """Whether it reports the bytes that it holds at the end."""

    def fragments(self, sample: int) -> int:
        """Return how many fragments a sample takes."""
        return fragments_of(self.sizes_bytes[sample], self.fragment_bytes)


def fragments_of(size_bytes: int, fragment_bytes: int) -> int:
    return math.ceil(size_bytes / fragment_bytes)


def even_fragment_bytes(sizes_bytes: Sequence[int], most_bytes: int) -> int:
    """The length of fragments: the longest sample in as few as possible, all equally long."""
    longest = max(sizes_bytes)
    return math.ceil(longest / fragments_of(longest, most_bytes))
