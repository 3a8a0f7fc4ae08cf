"""What a switch does with gradient packets, in plain Python: slots, roles, partial sums.

Written from the packet's description, not from the P4 program, so that transport and program can be checked
against the same words.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

ACK, RESEND, PARTIAL = 0x01, 0x02, 0x04
_SPAN = 1 << 32


@dataclass(frozen=True)
class Packet:
    """A gradient packet; worker is the sender (for acknowledgements: the addressee, None for all)."""

    flags: int
    job: int
    number: int
    switch_number: int
    fan_in: int
    bitmap: int
    lanes: tuple[int, ...]
    worker: int | None = None


def add_lanes(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """Two's complement sums that wrap modulo 2^32."""
    return tuple((x + y + (1 << 31)) % _SPAN - (1 << 31) for x, y in zip(a, b, strict=True))


def is_newer(number: int, than: int) -> bool:
    """Serial number comparison (RFC 1982)."""
    return 0 < (number - than) % _SPAN < _SPAN // 2


@dataclass
class Slot:
    """One aggregator. owner: (job, packet number); last: the latest owner that it has been freed from."""

    owner: tuple[int, int] | None = None
    last: tuple[int, int] | None = None
    bitmap: int = 0
    lanes: tuple[int, ...] = ()

    def claim(self, packet: Packet) -> None:
        self.owner = (packet.job, packet.number)
        self.bitmap = 0
        self.lanes = (0,) * len(packet.lanes)

    def free(self) -> None:
        self.last, self.owner = self.owner, None

    def claimable(self, packet: Packet) -> bool:
        if self.owner is not None:
            return False
        stale = self.last is not None and self.last[0] == packet.job and not is_newer(packet.number, self.last[1])
        return not stale


@dataclass
class SwitchModel:
    """A switch with a number, some slots, and the jobs that it aggregates for."""

    number: int
    slot_count: int
    jobs: frozenset[int]
    slots: list[Slot] = field(init=False)

    def __post_init__(self) -> None:
        self.slots = [Slot() for _ in range(self.slot_count)]

    def slot(self, job: int, number: int) -> Slot:
        return self.slots[(job * 40503 + number * 2654435761 >> 7) % self.slot_count]

    def process(self, packet: Packet) -> Packet | None:
        """What goes on in the packet's direction; None: the switch has taken it in."""
        if packet.job not in self.jobs or packet.switch_number != self.number:
            return packet
        slot = self.slot(packet.job, packet.number)
        own = slot.owner == (packet.job, packet.number)
        if packet.flags & ACK:
            if own:
                slot.free()
            return packet
        if packet.flags & RESEND:
            if not own:
                return replace(packet, switch_number=0)
            self._add(slot, packet)
            released = self._released(slot, packet)
            slot.free()
            return released
        if not own:
            if not slot.claimable(packet):
                return replace(packet, switch_number=0)
            slot.claim(packet)
        elif slot.bitmap & packet.bitmap:
            return None
        self._add(slot, packet)
        if slot.bitmap.bit_count() == packet.fan_in:
            return self._released(slot, packet)
        return None

    @staticmethod
    def _add(slot: Slot, packet: Packet) -> None:
        if not slot.bitmap & packet.bitmap:
            slot.bitmap |= packet.bitmap
            slot.lanes = add_lanes(slot.lanes, packet.lanes)

    @staticmethod
    def _released(slot: Slot, packet: Packet) -> Packet:
        return replace(packet, flags=packet.flags | PARTIAL, switch_number=0, bitmap=slot.bitmap, lanes=slot.lanes)
