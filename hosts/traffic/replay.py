"""A capture file as a schedule: its frames, at the distances at which they were recorded."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from common.errors import UserError
from hosts.agents.description import Description

WINDOW_FRAMES = 512
_ETHERNET = 1

Window = tuple[NDArray[np.int64], NDArray[np.uint8], NDArray[np.uint32]]
"""Times, rows of frames, and their lengths."""


class Replay(Description):
    """file: pcap or pcapng with Ethernet frames. speed: times as fast as they were recorded."""

    file: Path
    speed: float = Field(default=1.0, gt=0)


def read_capture(path: Path) -> tuple[NDArray[np.int64], list[bytes]]:
    """Nanoseconds since the first frame, and the frames. UserError for what is no capture of Ethernet frames."""
    from scapy.error import Scapy_Exception
    from scapy.utils import RawPcapReader

    times_ns, frames = [], []
    try:
        # From memory, which gives no more than there is, however long a packet says that it is.
        with RawPcapReader(io.BytesIO(path.read_bytes())) as reader:
            for frame, packet in reader:
                link_type = getattr(packet, "linktype", getattr(reader, "linktype", _ETHERNET))
                if link_type != _ETHERNET:
                    raise UserError(f"{path} has no Ethernet frames: its link type is {link_type}")
                if hasattr(packet, "tshigh"):
                    times_ns.append((packet.tshigh << 32 | packet.tslow) * 1_000_000_000 // packet.tsresol)
                else:
                    times_ns.append(packet.sec * 1_000_000_000 + packet.usec * (1 if reader.nano else 1000))
                frames.append(bytes(frame))
        times = np.array(times_ns, np.int64)
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from None
    except (Scapy_Exception, EOFError, MemoryError, ArithmeticError, struct.error, zlib.error):
        raise UserError(f"{path} is no capture file (pcap or pcapng)") from None
    if not frames:
        raise UserError(f"{path} has no frames")
    return times - times[0], frames


def replay_windows(replay: Replay, begin_ns: int) -> Iterator[tuple[int, Window]]:
    """The time at which each window begins, and its frames; frames do not overtake those before them."""
    recorded_ns, frames = read_capture(replay.file)
    times_ns = begin_ns + np.maximum.accumulate((recorded_ns / replay.speed).astype(np.int64))
    for first in range(0, len(frames), WINDOW_FRAMES):
        chosen = frames[first : first + WINDOW_FRAMES]
        lengths = np.array([len(frame) for frame in chosen], np.uint32)
        rows = np.zeros((len(chosen), int(lengths.max())), np.uint8)
        for row, frame in zip(rows, chosen, strict=True):
            row[: len(frame)] = np.frombuffer(frame, np.uint8)
        times = times_ns[first : first + WINDOW_FRAMES]
        yield int(times[0]), (times, rows, lengths)
