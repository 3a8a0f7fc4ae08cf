"""All that an agent has of the world: interfaces, a clock, and a launcher that commands and listens."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from gradbed.hosts.agents.config import AgentAddress
    from gradbed.hosts.agents.frames.counts import InterfaceCounts
    from gradbed.hosts.agents.nic import RawFrames
    from gradbed.hosts.agents.queue_pairs import QueuePairs
    from gradbed.hosts.agents.tcp import TcpListener, TcpStream


Result = TypeVar("Result")
FastPath = Callable[[], "int | None"]
"""Part of an agent's work (AgentContext.wait)."""


class Interface(Protocol):
    """An interface of a host: whole Ethernet frames, in batches. A context manager that closes it."""

    def send(self, frames: NDArray[Any]) -> int:
        """Send equally long frames, one per row (C-contiguous); returns how many were taken.

        What is not taken is lost like any packet.
        """

    def send_at(
        self,
        frames: NDArray[Any],
        times_ns: NDArray[np.int64],
        lengths: NDArray[np.uint32] | None = None,
        *,
        stamp: bool = False,
    ) -> None:
        """Let each frame, a row, leave at its time of now_ns(), now if that is over. Times rise (frames,).

        lengths (frames,): bytes of each row that are the frame; None: all. stamp: the last eight bytes of each frame
        become the time at which it left, in nanoseconds and big-endian. Frames leave while the agent waits (wait): it
        does so until the last has left before it closes the interface.
        """

    @property
    def times_ns(self) -> NDArray[np.int64]:
        """Return when the frames of the last batch arrived, of now_ns(), shape (frames,)."""

    def receive(self) -> tuple[NDArray[np.uint8], NDArray[np.uint32]]:
        """Return one batch of waiting frames, without blocking: buffer (frames or more, capacity) and lengths
        (frames,).

        The buffer is valid until the next call. No lengths: nothing waits.
        """

    @property
    def counts(self) -> InterfaceCounts:
        """Return what it has carried so far."""

    def raw_frames(self) -> RawFrames | None:
        """Return what is beneath it, for an agent that receives all that there is, sends and counts by itself.

        None: other agents have opened it, or frames wait in the interface.
        """

    def keep(self, buffer: NDArray[np.uint8], lengths: NDArray[np.uint32], times_ns: NDArray[np.int64]) -> None:
        """Put back what came last from `raw_frames`, for `receive`."""

    def join(self, mac: bytes) -> None:
        """Take in frames to this multicast MAC address, too."""

    def drops(self) -> int:
        """Frames lost so far because the agent did not take them in soon enough."""

    def __enter__(self) -> Interface: ...

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class AgentContext(Protocol):
    """The world of an agent: time, waiting, sending and receiving, on the machine's clock or a simulated one."""

    @property
    def job(self) -> int:
        """The job's number."""

    @property
    def name(self) -> str:
        """Unique within the job, such as "worker 3"."""

    @property
    def interfaces(self) -> tuple[str, ...]:
        """Names, in the order of the host's ports."""

    @property
    def begun(self) -> bool:
        """The agents were told to begin; it stays."""

    @property
    def begins(self) -> int:
        """Return how often the agents were told to begin.

        For agents that meet more than once, and serve others while they wait.
        """

    @property
    def stopped(self) -> bool:
        """A stop has come; it stays."""

    def now_us(self) -> int:
        """Microseconds of a clock that never goes back."""

    def now_ns(self) -> int:
        """The same clock in nanoseconds."""

    def open(
        self,
        *,
        udp_port: int | None = None,
        ether_type: int | None = None,
        except_udp_port: int | None = None,
        interface: int = 0,
        quiet: bool = False,
    ) -> Interface:
        """Open the interface with this place among `interfaces`; frames that come later are taken in.

        udp_port: unfragmented IPv4 datagrams to that port alone. ether_type: frames of that type alone. Neither: all,
        and the host's kernel answers none of them meanwhile; except_udp_port: but such datagrams to this port.
        quiet: arrivals do not end a wait; frames are received when the agent looks. UserError if that is not
        possible.
        """

    def open_queue_pairs(self, address: AgentAddress, *, interface: int = 0) -> QueuePairs:
        """Queue pairs of the NIC behind the interface with this place among `interfaces`, none at first.

        address: the agent's own, where its packets come from. On the machine's clock the NIC is a thread of the
        agent's process, and paused with it.
        """

    def listen_tcp(self, port: int) -> TcpListener:
        """Connections of the kernel's TCP to this host's port. UserError where the network is simulated."""

    def connect_tcp(self, ip: str, port: int, timeout_s: float) -> TcpStream:
        """A connection of the kernel's TCP. UserError if nobody answers for timeout_s, or as for listen_tcp."""

    def wait(
        self, until_us: int | None = None, *, until_ns: int | None = None, fast_path: FastPath | None = None
    ) -> None:
        """Return when an open interface, connection or queue pair has something, a command has come, or it is
        `until_us` (None: no limit).

        It may return without any of these. until_ns: the same in nanoseconds, in place of until_us, which the virtual
        clock keeps exactly. fast_path: may be called in place of returning because something has come, or the time
        has; it does the agent's work and says until when (in microseconds) to go on waiting, or None: the wait is to
        return.
        """

    def wait_for_begin(self) -> bool:
        """Wait until the agents are told to begin (True, also if they were before) or to stop (False)."""

    def compute(self, work: Callable[[], Result]) -> Result:
        """Do work that takes a host's processor some time: as long as it does, or as the run says."""

    def require_kernel(self, what: str) -> None:
        """UserError where the network is simulated. what: that goes past the context to the kernel's network."""

    def emit(self, event: str, **fields: Any) -> None:
        """Tell the launcher's caller something; fields become JSON."""


# ---- The end of a run ----


QUIET_US = 50_000
"""Silence after which no frame is expected any more."""


def drain(context: AgentContext, receive: Callable[[], object | None]) -> None:
    """Call `receive`, which takes in one batch and returns None if there is none, until it is quiet."""
    quiet_us = context.now_us() + QUIET_US
    while context.now_us() < quiet_us:
        while receive() is not None:
            quiet_us = context.now_us() + QUIET_US
        context.wait(quiet_us)
