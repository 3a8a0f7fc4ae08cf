"""What a scheduler decides: coded packets, the trees that they follow, and the queues of their senders."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from gradbed.controller.systems.shuffle.scheduling.instance import Instance
from gradbed.controller.systems.shuffle.scheduling.trees import Tree, Trees


@dataclass(frozen=True, slots=True)
class Transmission:
    """One packet (of as many fragments as its longest sample takes): the XOR of `samples`, each padded with zeros.

    number: its place in the schedule's list. sender: number of a worker, or of the master. receivers: (worker, the
    sample that it decodes); it stores the packet's other samples, or borrows them. Several receivers may decode the
    same sample. tree: number in the schedule's list; hops: links of it that the packet takes.

    lent_for: the number of the packet for which this one lends its single sample to its single receiver, who is a
    sender or receiver of that packet and deletes the sample afterwards; None if it is no loan. waits_for: loans to
    the sender, without which the packet cannot be made. wait_us: how long it is planned to wait for them (S5).
    """

    number: int
    sender: int
    samples: tuple[int, ...]
    receivers: tuple[tuple[int, int], ...]
    tree: int
    hops: int
    lent_for: int | None = None
    waits_for: tuple[int, ...] = ()
    wait_us: int = 0

    @property
    def kind(self) -> Literal["A", "B", "C"]:
        """The class of S5: A waits for a neighbour, a neighbour waits for B, and C is neither."""
        if self.waits_for:
            return "A"
        return "C" if self.lent_for is None else "B"


@dataclass(frozen=True)
class Schedule:
    """All packets of a shuffle.

    queues: for each sender (workers by number, then the master where there is one) numbers of its packets in the
    order in which it sends them. trees: what Transmission.tree counts.
    """

    scheduler: str
    transmissions: tuple[Transmission, ...]
    queues: tuple[tuple[int, ...], ...]
    trees: tuple[Tree, ...]

    @property
    def hops(self) -> int:
        """Links that all packets take together: the number that a scheduler makes small."""
        return sum(transmission.hops for transmission in self.transmissions)


class Scheduler(Protocol):
    """A way to make schedules; the same one for the same arguments, everywhere."""

    @property
    def name(self) -> str: ...

    def schedule(self, instance: Instance, trees: Trees, seed: int) -> Schedule:
        """A schedule that serves every demand; check_schedule holds for it."""
        ...
