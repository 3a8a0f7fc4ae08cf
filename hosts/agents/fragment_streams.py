"""Streams of fragments: vectors that switches sum or copy on their way between a host's NIC and many others.

A source sends vectors in fragments, and a fragment is done when replies have come from everybody. A sink takes
vectors and replies to each fragment. A server adds up what sources send, alone or already summed by switches, and
replies to all once everybody is in it. Windows and slots are as in Sapio et al., "Scaling Distributed Machine
Learning with In-Network Aggregation" (NSDI 2021, section 3). What packets look like is said in templates, by the
system whose switches know them.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

Word = tuple[int, int, int]
"""Offset in the frame in bytes, mask, value: of 16 bits, big-endian."""


class StreamOptions(BaseModel):
    """Options of one end of a stream of fragments.

    Offsets are in bytes from the frame's beginning.

    window: fragments under way at most; of a sink at least as many, of a server twice as many, since one source may
    be a window ahead of another. payload_bytes: of a fragment, a multiple of 4. reply_payload: whether replies have
    as long a payload. everybody: the bits of all who have to reply, or to send. templates: headers of what it sends,
    as hexadecimal digits; fragment n has the n-th, modulo their number. number_offset: of the fragment's number, 32
    bits. bits_offset: of who a packet is of, 64 bits. magnitude_offset: of the largest absolute value in a payload of
    int32, 32 bits. flags_offset, again: the flags, of 8 bits, of what is sent again; came_again: those of an arrival
    that was. direct: a header for what was sent again direct_after times, past all switches; empty: none. arrivals:
    what frames for this end have in common. timeout_us: before a fragment is sent again; from the fifth time on twice
    as long each time, up to 1,024 times as long. give_up_after: so many times; then the stream fails.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    role: Literal["source", "sink", "server"]
    window: int = Field(ge=1, le=65_536)
    payload_bytes: int = Field(ge=4, multiple_of=4)
    reply_payload: bool
    everybody: int = Field(ge=1, lt=1 << 64)
    templates: tuple[str, ...] = Field(min_length=1, max_length=64)
    number_offset: int = Field(ge=0)
    bits_offset: int = Field(ge=0)
    magnitude_offset: int | None = Field(default=None, ge=0)
    flags_offset: int = Field(ge=0)
    again: int = Field(ge=0, lt=256)
    came_again: int = Field(ge=0, lt=256)
    direct: str = ""
    direct_after: int = Field(default=3, ge=1)
    arrivals: tuple[Word, ...]
    timeout_us: int = Field(default=1000, ge=1, le=3_600_000_000)
    give_up_after: int = Field(default=30, ge=1)

    @model_validator(mode="after")
    def _alike(self) -> StreamOptions:
        if len({len(template) for template in (*self.templates, self.direct or self.templates[0])}) != 1:
            raise ValueError("templates and the direct header are equally long")
        return self


class FragmentStreamStatistics(BaseModel):
    """sent_fragments: retransmissions among them. parts: of a server, what it added up. duplicates: came again."""

    sent_fragments: int
    retransmissions: int
    timeouts: int
    received_fragments: int
    duplicates: int
    parts: int
