"""What is beneath an interface: a socket of the kernel, or a host's NIC in a simulated network."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray


class RawFrames(Protocol):
    """Frames past the interface, which then counts none of them."""

    def send(self, frames: NDArray[Any]) -> int:
        """Send frames as gradbed.hosts.agents.context.Interface.send does."""

    @property
    def times_ns(self) -> NDArray[np.int64]:
        """Return when the frames of the last batch arrived."""

    def receive(self) -> tuple[NDArray[np.uint8], NDArray[np.uint32]]:
        """Return all waiting frames, as gradbed.hosts.agents.context.Interface.receive returns a batch.

        Whoever has not looked for a while must not take what has come for lost. A socket returns at most some
        thousand frames.
        """


class Nic(RawFrames, Protocol):
    """A host's end of a link in a simulated network, such as gradbed.switch.virtual.HostInterface."""

    def send(
        self,
        frames: NDArray[Any],
        lengths: NDArray[np.uint32] | None = None,
        times_ns: NDArray[np.int64] | None = None,
    ) -> int:
        """Send frames as gradbed.hosts.agents.context.Interface.send or send_at does; times_ns None: at the present
        time.
        """

    def set_quiet(self, quiet: bool) -> None:
        """Set whether time goes on although frames arrive."""


# ---- Time stamps in the last bytes of frames ----


STAMP_BYTES = 8


def stamped(
    frames: NDArray[Any], times_ns: NDArray[np.int64], lengths: NDArray[np.uint32] | None = None
) -> NDArray[np.uint8]:
    """The frames, rows of bytes, with times (frames,) in their last eight bytes, big-endian; changes them in place.

    lengths (frames,): bytes of each row that are the frame; None: all. Frames are at least eight bytes long.
    """
    rows: NDArray[np.uint8] = frames.view(np.uint8).reshape(len(frames), -1)
    stamps = times_ns.astype(">i8").view(np.uint8).reshape(-1, STAMP_BYTES)
    if lengths is None:
        rows[:, -STAMP_BYTES:] = stamps
    else:
        columns = lengths.astype(np.int64)[:, None] + np.arange(-STAMP_BYTES, 0)
        rows[np.arange(len(rows))[:, None], columns] = stamps
    return rows
