"""A worker's gradient on its way: written into frames, and written anew when only a part of what is left is sent."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gradbed.formats.encoding import PAYLOAD_BYTES
from gradbed.hosts.compressors.content import Content
from gradbed.hosts.compressors.selection import top_k
from gradbed.hosts.compressors.wire import INDEX_BYTES, Written, code_bytes, wire_bytes, written
from gradbed.hosts.systems.compression.packets.frames import HEADER_BYTES, Route, end_frame, part_frames
from gradbed.hosts.systems.compression.packets.outgoing import Outgoing

_SHRINK = 0.98


class GradientMessage:
    """One round's. Bytes are those of whole frames, headers and all."""

    def __init__(
        self, content: Content, route: Route, round_number: int, outgoing: Outgoing, *, turn: float = 0.0
    ) -> None:
        """turn: from 0 to 1, how far into the content sending begins, if its codes are more than a packet's; what is
        before that comes last."""
        self._route = route
        self._round = round_number
        self._outgoing = outgoing
        fits_a_packet = code_bytes(len(content.codes), content.width_bits) <= PAYLOAD_BYTES
        first = 0 if fits_a_packet else int(turn * len(content.codes))
        self._rest = [content.after(first), content.before(first)] if first else [content]
        """What the frames from `_begun` on are written of."""
        self._begun = 0
        self._sent: list[Content] = []
        outgoing.begin()
        self._made = self._queue()
        self.total_bytes = self._planned(self._made)
        """Of the gradient as it was to be sent at first."""
        self.planned_bytes = self.total_bytes
        self.sum_bytes = 0 if content.indices is not None else dense_bytes(len(content.codes))
        """Of the sum that comes back, as far as that does not depend on how much is sent."""

    def _queue(self) -> list[Written]:
        made = [written(content, HEADER_BYTES) for content in self._rest]
        for each in made:
            self._outgoing.queue(part_frames(self._route, each, self._round, self._outgoing.next_sequence))
        self._outgoing.queue([end_frame(self._route, self._round, self._outgoing.next_sequence)])
        return made

    def _planned(self, made: list[Written]) -> int:
        return self._outgoing.handed_bytes + sum(wire_bytes(each, HEADER_BYTES) for each in made) + HEADER_BYTES

    def cut(self, target_bytes: float) -> bool:
        """Of what has not been handed to the network keep the largest values, so that no more than target_bytes are
        sent in all, as far as that is possible still. False: nothing was left to be cut."""
        handed = self._outgoing.handed - self._begun
        if handed > sum(map(len, self._made)) or target_bytes >= self.planned_bytes:
            return False
        left = []
        for content, made in zip(self._rest, self._made, strict=True):
            packets = min(handed, len(made))
            handed -= packets
            codes = int(made.ends[packets - 1]) if packets else 0
            self._sent.append(content.before(codes))
            left.append(content.after(codes))
        # What comes last lies before the rest.
        rest = left[0] if len(left) == 1 else left[1].with_more(left[0])
        self._outgoing.withdraw()
        self._rest = [fitting(rest, int(target_bytes) - self._outgoing.handed_bytes - HEADER_BYTES)]
        self._begun = self._outgoing.handed
        self._made = self._queue()
        self.planned_bytes = self._planned(self._made)
        return True

    def sent(self) -> Iterator[Content]:
        """What the message has come to, once all of it was sent."""
        yield from self._sent
        yield from self._rest


def dense_bytes(values: int) -> int:
    """Of so many values in 32 bits."""
    return 4 * values + HEADER_BYTES * (1 + -(-4 * values // PAYLOAD_BYTES))


def fitting(content: Content, budget_bytes: int) -> Content:
    """The largest values of a content that can be written in so many bytes, headers counted; perhaps none."""
    if wire_bytes(written(content, HEADER_BYTES), HEADER_BYTES) <= budget_bytes:
        return content
    count = _guess(content, budget_bytes)
    while count > 0:
        kept = content.chosen(top_k(content.codes, count))
        if wire_bytes(written(kept, HEADER_BYTES), HEADER_BYTES) <= budget_bytes:
            return kept
        count = min(count - 1, int(_SHRINK * count))
    return content.chosen(np.zeros(0, np.intp))


def _guess(content: Content, budget_bytes: int) -> int:
    """How many values the better of bitmap and coordinate form has room for, or somewhat more."""
    if not len(content.codes):
        return 0
    bits = 8 * budget_bytes * PAYLOAD_BYTES / (PAYLOAD_BYTES + HEADER_BYTES)
    positions = content.positions
    by_bitmap = (bits - float(positions[-1] - positions[0])) / content.width_bits
    by_coordinate = bits / (8 * INDEX_BYTES + content.width_bits)
    return min(len(content.codes), max(0, int(max(by_bitmap, by_coordinate)) + 1))
