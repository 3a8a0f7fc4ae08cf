"""Frames that carry lanes, or none, behind a header with flags."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gradbed.formats.header import Header
from gradbed.hosts.protocols.datagram_frames import (
    Frames,
    FrameType,
    frame_type,
    only,
    pack_datagrams,
    well_formed_datagrams,
)


@functools.cache
def lane_frame_type(header: Header, lanes: int) -> FrameType:
    """The whole Ethernet frame with `lanes` lanes."""
    return frame_type(header, ("lanes", ">i4", (lanes,)))


def pack_lane_frames(header: Header, lanes: NDArray[np.int32], /, **values: ArrayLike) -> Frames:
    """Frames that carry `lanes`, shape (frames, lanes), one per row; without lanes: shape (frames, 0). values: as
    gradbed.hosts.protocols.datagram_frames.pack_datagrams takes them."""
    count, lane_count = lanes.shape
    return pack_datagrams(header, lane_frame_type(header, lane_count), count, lanes=lanes, **values)


@dataclass(frozen=True)
class LaneFrames:
    """What `parse_lane_frames` made of a batch, in order of arrival each; copies, so the receive buffer may be used
    again."""

    with_lanes: Frames
    without_lanes: Frames
    malformed: int
    """Frames that are neither."""


def parse_lane_frames(
    header: Header, buffer: NDArray[np.uint8], lengths: NDArray[np.integer[Any]], lanes: int, flag: int, flags: int
) -> LaneFrames:
    """Check and pick the frames with `lanes` lanes, and those without, out of a receive buffer.

    buffer, lengths: as gradbed.hosts.protocols.datagram_frames.well_formed_datagrams takes them; what it does not
    take counts as malformed. So do frames with lanes that have the flag `flag`, and those without that have not all
    of `flags`.
    """
    found = well_formed_datagrams(header, lane_frame_type(header, lanes), buffer, lengths)
    found = only(found, found["flags"] & flag == 0)
    if len(found) == len(lengths):  # as usual
        return LaneFrames(found, np.empty(0, lane_frame_type(header, 0)), 0)
    bare = well_formed_datagrams(header, lane_frame_type(header, 0), buffer, lengths)
    bare = only(bare, bare["flags"] & flags == flags)
    return LaneFrames(found, bare, len(lengths) - len(found) - len(bare))
