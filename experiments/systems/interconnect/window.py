"""What links carried in the time in which traffic is measured: between two readings of all of them.

Times are those of the engine that moves the packets, in which every link keeps to its rate: so no machine, however
late, makes a link carry more than it can.
"""

from __future__ import annotations

from dataclasses import dataclass

from gradbed.experiments.accounts.carried import LinkBytes, LinkRows
from gradbed.topo.graph import Direction
from gradbed.topo.link import LinkModel


@dataclass(frozen=True)
class Window:
    """before, after: every direction of every link; begin_ns, end_ns: of the engine."""

    begin_ns: int
    end_ns: int
    before: LinkRows
    after: LinkRows

    @classmethod
    def of(cls, carried: LinkBytes) -> Window | None:
        """None: nobody tells the times (BMv2)."""
        begin_ns, end_ns = (
            next((row.time_ns for row in rows.values()), None) for rows in (carried.before, carried.after)
        )
        if begin_ns is None or end_ns is None or begin_ns == end_ns:
            return None
        return cls(begin_ns, end_ns, carried.before, carried.after)

    @property
    def seconds(self) -> float:
        return (self.end_ns - self.begin_ns) / 1e9

    def carried_bytes(self, direction: Direction, channel: int | None = None) -> int:
        """What came to the far end, by one of the link's channels or by all; what links duplicate counts once."""
        first, last = self.before[direction], self.after[direction]
        if channel is not None:
            return last.channel_bytes[channel] - first.channel_bytes[channel]
        return last.bytes - last.duplicate_bytes - first.bytes + first.duplicate_bytes

    def copied_bytes(self, direction: Direction) -> int:
        """Duplicates that the link made of that."""
        return self.after[direction].duplicate_bytes - self.before[direction].duplicate_bytes

    def entered_bytes(self, direction: Direction) -> int:
        """What was handed to the link."""
        return self.after[direction].entered_bytes - self.before[direction].entered_bytes

    def under_way(self, direction: Direction) -> int:
        """Packets that were waiting for the link, being sent and in flight when it began."""
        row = self.before[direction]
        return (row.queued or 0) + row.in_flight

    def capacity_bytes(self, model: LinkModel, longest_bytes: int, channel: int = 0) -> float | None:
        """What a link, or a channel that takes turns, can bring to its far end in that time, but for the end of a
        packet whose beginning was sent before. longest_bytes: of a packet on it. None: it has no rate."""
        if not model.rate_bps:
            return None
        delay_ns = 1000 * model.delay_us
        sending_ns = open_ns(
            model, channel, self.begin_ns - delay_ns, self.end_ns - delay_ns, 8e9 * longest_bytes / model.rate_bps
        )
        return (sending_ns + 2000 * model.jitter_us) * model.rate_bps / 8e9


def open_ns(model: LinkModel, channel: int, begin_ns: int, end_ns: int, longest_ns: float) -> float:
    """How much of a time a channel may be sending (LinkModel.turn_us). What began to be sent just before the guard
    time takes as long as the longest packet."""
    if not model.turn_us or not channel:
        return end_ns - begin_ns
    turn_ns, others = 1000 * model.turn_us, model.channels - 1
    open_for_ns = min(turn_ns, turn_ns - 1000 * model.guard_us + longest_ns)
    turns = range(begin_ns // turn_ns, end_ns // turn_ns + 1)
    own = [turn * turn_ns for turn in turns if (turn + model.first_turn) % others == channel - 1]
    return sum(max(0.0, min(end_ns, start + open_for_ns) - max(begin_ns, start)) for start in own)


def turn_share(model: LinkModel, longest_ns: float) -> float:
    """The part of the time in which a channel may be sending, in the long run. In each turn whole packets of one
    length begin before the guard time."""
    if not model.turn_us:
        return 1.0
    turn_ns, open_for_ns = 1000 * model.turn_us, 1000 * (model.turn_us - model.guard_us)
    return min(turn_ns, -(-open_for_ns // longest_ns) * longest_ns) / turn_ns / (model.channels - 1)
