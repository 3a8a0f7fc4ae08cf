"""The hot path of the gradient packet: many whole frames at once as a NumPy structured array."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gradbed.formats.aggregation import GRADIENT, GRADIENT_PORT, Flags
from gradbed.hosts.protocols.frames import Frames, LaneFrames, pack_lane_frames, parse_lane_frames

# Plain integers: the flags of an enumeration cost much in what runs for every packet.
_ACK, _NACK = Flags.ACK.value, Flags.NACK.value


def magnitudes(lanes: NDArray[np.int32]) -> NDArray[np.int64]:
    """The largest absolute value in each row of `lanes`, shape (frames, lanes); 0 to 2^31."""
    largest: NDArray[np.int64] = np.maximum(
        lanes.max(axis=1, initial=0).astype(np.int64), -lanes.min(axis=1, initial=0).astype(np.int64)
    )
    return largest


def pack_frames(
    lanes: NDArray[np.int32],
    *,
    flags: ArrayLike = 0,
    switch_number: ArrayLike = 0,
    magnitude: ArrayLike | None = None,
    **values: ArrayLike,
) -> Frames:
    """Frames that carry `lanes`, shape (frames, lanes); one per row. NACKs: shape (frames, 0). values: of the other
    fields, as gradbed.hosts.protocols.frames.pack_datagrams takes them.

    Without `magnitude` it is the largest absolute value of a frame's lanes, and 0 in frames with the flag ACK.
    """
    acks = np.asarray(flags) & _ACK != 0
    numbers = np.asarray(switch_number)
    if magnitude is None:
        magnitude = 0 if acks.all() else np.where(acks, 0, magnitudes(lanes))
    return pack_lane_frames(
        GRADIENT,
        lanes,
        flags=flags,
        switch_number=switch_number,
        magnitude=magnitude,
        src_port=np.where(acks | (numbers == 0), GRADIENT_PORT, numbers),
        **values,
    )


def parse_frames(buffer: NDArray[np.uint8], lengths: NDArray[np.integer[Any]], lanes: int) -> LaneFrames:
    """Check and pick gradients, sums and ACKs with `lanes` lanes, and NACKs, which have none, out of a receive
    buffer; a NACK with lanes and any other packet without them count as malformed."""
    return parse_lane_frames(GRADIENT, buffer, lengths, lanes, _NACK, _ACK | _NACK)
