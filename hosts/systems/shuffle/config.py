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
    """A transmission that the worker sends: the XOR of samples.

    receivers: (worker, the sample that it decodes). dst_ip: of a host, or of a group; None: by bit string, on the
    tree bift_id. waits_for: numbers of the loans that it takes to make it. is_loan: it lends its sample.
    """

    number: int
    samples: tuple[int, ...]
    receivers: tuple[tuple[int, int], ...]
    dst_ip: Ip | None = None
    bift_id: int = 0
    waits_for: tuple[int, ...] = ()
    is_loan: bool = False


class PlannedReception(AgentConfig):
    """A transmission that comes to the worker, who decodes the sample `wanted` of it.

    place: in its sender's queue. planned_us: when the sender has sent it if nothing holds it up, after the beginning.
    asked: workers who can send it again what was lost, in the order in which they are asked if nothing comes.
    lent_for: the transmission for which it borrows the sample; None: it needs it itself.
    """

    number: int
    sender: int
    place: int
    planned_us: int
    samples: tuple[int, ...]
    wanted: int
    asked: tuple[int, ...] = Field(min_length=1)
    lent_for: int | None = None


class RepairTree(AgentConfig):
    """A tree on which the worker may send by bit string. hosts: those that it reaches, as a set of bits. up: for each
    worker the links between it and the tree's root as a set of bits: what a packet costs follows from these."""

    bift_id: int
    hosts: int
    up: tuple[int, ...]

    def hops(self, sender: int, receivers: Sequence[int]) -> int | None:
        """Links that a packet takes: those above some of the workers and not above all. None: it does not reach
        them."""
        if any(not self.hosts >> worker & 1 for worker in receivers):
            return None
        up = [self.up[worker] for worker in (sender, *receivers)]
        return (reduce(or_, up) ^ reduce(and_, up)).bit_count()


class RepairGroup(AgentConfig):
    """A multicast group that the worker sends to. members: as a set of bits; they all get what is sent to it.
    cost_hops: links that a packet takes."""

    dst_ip: Ip
    members: int
    cost_hops: int

    def hops(self, sender: int, receivers: Sequence[int]) -> int | None:
        """Return the hops to some members; None: some are no members."""
        return self.cost_hops if all(self.members >> worker & 1 for worker in receivers) else None


class ShuffleConfig(AgentConfig):
    """The config of one worker of a job.

    workers: all of them, and the master, if there is one, as the last. bits: length of bit strings. fragment_bytes:
    of every packet. sizes_bytes: of every sample that the worker meets. stored: what it holds at first; keep: what it
    must hold in the end. outgoing: in the order of its queue. holders: for samples that it may be asked for the
    workers that hold them, as a set of bits. repair_routes: to several receivers at once. distances: hops to every
    worker. interval_us: between two packets. timeout_us: after so long without news of what should have come it asks
    for it; give_up_us: for so long it asks without any answer. tell_contents: whether it tells the bytes that it
    holds at the end.
    """

    job: int
    index: int
    workers: tuple[WorkerAddress, ...]
    source: SampleSource
    bits: int = Field(ge=8, multiple_of=8)
    fragment_bytes: int = Field(ge=1)
    sizes_bytes: Mapping[int, int]
    stored: tuple[int, ...]
    keep: tuple[int, ...]
    outgoing: tuple[PlannedTransmission, ...]
    incoming: tuple[PlannedReception, ...]
    holders: Mapping[int, int]
    repair_routes: tuple[RepairTree | RepairGroup, ...] = ()
    distances: tuple[int, ...]
    interval_us: float = Field(ge=0)
    timeout_us: int = Field(ge=1)
    give_up_us: int = Field(ge=1)
    tell_contents: bool = False

    def fragments(self, sample: int) -> int:
        """Return how many fragments a sample takes."""
        return fragments_of(self.sizes_bytes[sample], self.fragment_bytes)


def fragments_of(size_bytes: int, fragment_bytes: int) -> int:
    return math.ceil(size_bytes / fragment_bytes)


def even_fragment_bytes(sizes_bytes: Sequence[int], most_bytes: int) -> int:
    """The length of fragments: the longest sample in as few as possible, all equally long."""
    longest = max(sizes_bytes)
    return math.ceil(longest / fragments_of(longest, most_bytes))
