"""What a switch does with gradient packets, in plain Python: slots, roles, partial sums.

Written from the packet's description, not from the P4 program, so that transport and program can be checked
against the same words.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace

from gradbed.formats.aggregation import MAX_MAGNITUDE, Flags

_SPAN = 1 << 32


@dataclass(frozen=True)
class Label:
    """A designation: where a packet is summed, and with how many workers' gradients."""

    switch_number: int = 0
    fan_in: int = 0
    next_switch: int = 0
    next_fan_in: int = 0


@dataclass(frozen=True)
class Packet:
    """A gradient packet; worker is the sender (for acknowledgements: the addressee, None for all).

    congested: it bears CE or the flag CONGESTION. magnitude: in acknowledgements the shift.
    """

    flags: int
    job: int
    number: int
    label: Label
    bitmap: int
    magnitude: int
    lanes: tuple[int, ...]
    worker: int | None = None
    congested: bool = False

    @property
    def onward(self) -> Packet:
        """As a designated switch lets it go."""
        if self.flags & Flags.OVERFLOW:
            return replace(self, label=Label())
        return replace(self, label=Label(self.label.next_switch, self.label.next_fan_in))


def is_newer(number: int, than: int) -> bool:
    """Serial number comparison (RFC 1982)."""
    return 0 < (number - than) % _SPAN < _SPAN // 2


@dataclass
class Slot:
    """One aggregator. owner: (job, packet number); last: the latest owner that it has been freed from."""

    owner: tuple[int, int] | None = None
    last: tuple[int, int] | None = None
    bitmap: int = 0
    magnitude: int = 0
    congested: bool = False
    lanes: tuple[int, ...] = ()

    def claim(self, packet: Packet) -> None:
        self.owner = (packet.job, packet.number)
        self.bitmap = self.magnitude = 0
        self.congested = False
        self.lanes = (0,) * len(packet.lanes)

    def free(self) -> None:
        self.last, self.owner = self.owner, None

    def claimable(self, packet: Packet) -> bool:
        if self.owner is not None:
            return False
        stale = self.last is not None and self.last[0] == packet.job and not is_newer(packet.number, self.last[1])
        return not stale

    def add(self, packet: Packet) -> None:
        self.bitmap |= packet.bitmap
        self.magnitude += packet.magnitude
        self.lanes = tuple(x + y for x, y in zip(self.lanes, packet.lanes, strict=True))
        # What the magnitudes are for: a switch has 32 bits.
        assert all(abs(lane) <= MAX_MAGNITUDE for lane in self.lanes)


@dataclass
class SwitchModel:
    """A switch with a number, some slots, and the jobs that it aggregates for.

    static: slots are chosen by packet number.
    """

    number: int
    slot_count: int
    jobs: frozenset[int]
    static: bool = False
    slots: list[Slot] = field(init=False)
    events: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Restart with empty slots."""
        self.slots = [Slot() for _ in range(self.slot_count)]

    def slot(self, job: int, number: int) -> Slot:
        chosen = number if self.static else job * 40503 + number * 2654435761 >> 7
        return self.slots[chosen % self.slot_count]

    def process(self, packet: Packet) -> Packet | None:
        """What goes on in the packet's direction; None: the switch has taken it in."""
        slot = self.slot(packet.job, packet.number)
        own = slot.owner == (packet.job, packet.number)
        if packet.flags & Flags.ACK:
            if own and not packet.flags & Flags.NACK:
                slot.free()
            return packet
        if packet.job not in self.jobs or packet.label.switch_number != self.number:
            return packet
        if not own:
            if packet.flags & (Flags.RESEND | Flags.RETRY) or not slot.claimable(packet):
                self.events["passed"] += 1
                return packet.onward
            slot.claim(packet)
        return self._join(slot, packet)

    def _join(self, slot: Slot, packet: Packet) -> Packet | None:
        """The packet's own slot takes it in, or not."""
        slot.congested |= packet.congested
        newcomers = packet.bitmap & ~slot.bitmap
        if newcomers and newcomers != packet.bitmap:
            self.events["overlap"] += 1
            return packet.onward
        if newcomers:
            if slot.magnitude + packet.magnitude > MAX_MAGNITUDE:
                self.events["overflow"] += 1
                return replace(packet, flags=packet.flags | Flags.OVERFLOW).onward
            slot.add(packet)
        complete = slot.bitmap.bit_count() >= packet.label.fan_in
        if packet.flags & Flags.RESEND:
            slot.free()
        elif not complete or (not newcomers and not self._speaks_for_all(slot, packet)):
            return None
        elif not newcomers:
            self.events["repeated"] += 1
        return replace(
            packet,
            flags=packet.flags | Flags.PARTIAL,
            bitmap=slot.bitmap,
            magnitude=slot.magnitude,
            lanes=slot.lanes,
            congested=slot.congested,
        ).onward

    @staticmethod
    def _speaks_for_all(slot: Slot, packet: Packet) -> bool:
        """All workers wait as long as a complete sum is held, and all will retry: the lowest one's retry counts."""
        return bool(packet.flags & Flags.RETRY and packet.bitmap & slot.bitmap & -slot.bitmap)
