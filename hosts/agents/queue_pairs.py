"""Queue pairs of a host's NIC: reliable messages, as RDMA has them, collectives made of them, and fragment streams.

Collectives are as NICs carry them out that have triggered operations (Portals 4): the NIC sends each message as soon
as what that waits for has come.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from gradbed.common.congestion_control import is_plugin, unknown_control
from gradbed.hosts.agents.config import AgentAddress

if TYPE_CHECKING:
    from typing import Self


# ---- Streams of fragments: vectors that switches sum or copy on their way to many others ----
#
# A source sends vectors in fragments, and a fragment is done when replies have come from everybody. A sink takes
# vectors and replies to each fragment. A server adds up what sources send, alone or already summed by switches, and
# replies to all once everybody is in it. Windows and slots are as in Sapio et al., "Scaling Distributed Machine
# Learning with In-Network Aggregation" (NSDI 2021, section 3). Templates say what packets look like; they come
# from the system whose switches know them.


Word = tuple[int, int, int]
"""Offset in the frame in bytes, mask, value: of 16 bits, big-endian."""


class StreamOptions(BaseModel):
    """Options of one end of a stream of fragments. Offsets are in bytes from the frame's beginning."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    role: Literal["source", "sink", "server"]
    window: int = Field(ge=1, le=65_536)
    """Largest number of fragments under way; a sink takes at least as many, and a server twice as many, since one
    source may be a window ahead of another."""
    payload_bytes: int = Field(ge=4, multiple_of=4)
    """Payload of a fragment, a multiple of 4."""
    reply_payload: bool
    """Whether replies have as long a payload."""
    everybody: int = Field(ge=1, lt=1 << 64)
    """Bits of all ends that have to reply, or to send."""
    templates: tuple[str, ...] = Field(min_length=1, max_length=64)
    """Headers of what it sends, as hexadecimal digits; fragment n has the n-th, modulo their number."""
    number_offset: int = Field(ge=0)
    """Offset of the fragment's number, 32 bits."""
    bits_offset: int = Field(ge=0)
    """Offset of the bits of the ends that a packet is of, 64 bits."""
    magnitude_offset: int | None = Field(default=None, ge=0)
    """Offset of the largest absolute value in a payload of int32, 32 bits."""
    flags_offset: int = Field(ge=0)
    """Offset of the flags, 8 bits."""
    again: int = Field(ge=0, lt=256)
    """Flags of what is sent again."""
    came_again: int = Field(ge=0, lt=256)
    """Flags of an arrival that was sent again."""
    direct: str = ""
    """Header, past all switches, for what was sent again direct_after times; empty: none."""
    direct_after: int = Field(default=3, ge=1)
    arrivals: tuple[Word, ...]
    """Words that frames for this end have in common."""
    timeout_us: int = Field(default=1000, ge=1, le=3_600_000_000)
    """Time before a fragment is sent again; from the fifth time on it doubles, up to 1,024 times as long."""
    give_up_after: int = Field(default=30, ge=1)
    """Number of timeouts of a fragment after which the stream fails."""

    @model_validator(mode="after")
    def _alike(self) -> StreamOptions:
        if len({len(template) for template in (*self.templates, self.direct or self.templates[0])}) != 1:
            raise ValueError("templates and the direct header are equally long")
        return self


class FragmentStreamStatistics(BaseModel):
    """Counts of one end of a stream of fragments."""

    sent_fragments: int
    """Sent fragments, retransmissions among them."""
    retransmissions: int
    timeouts: int
    received_fragments: int
    duplicates: int
    """Fragments that came again."""
    parts: int
    """Contributions that a server added up."""


# ---- Collectives ----


TURN_BITS = 18
"""Of a message's tag: which of those between two ranks in a collective it is."""
SEND, RECEIVE, ADD, COPY = range(4)
"""Kinds of steps: a message to a peer; one from it that takes the place of what was there, or is added to that; a
move within the buffer."""

Lists = tuple[NDArray[np.uint32], NDArray[np.uint32]]
"""Lists one behind the other, and before that where each begins and the last one ends."""


@dataclass(frozen=True, eq=False)
class NicSchedule:
    """The part of a collective's schedule that ranks share that do the same. Do not modify."""

    kinds: NDArray[np.uint8]
    """Kind of each step (steps,)."""
    waits: NDArray[np.uint32]
    """Number of other steps that each waits for (steps,)."""
    dependents: Lists
    """Steps that wait for each step."""
    peer: NDArray[np.uint32]
    """The other rank of each step, as a place among the peers (steps,)."""
    turn: NDArray[np.uint32]
    """For a send, which of those to its peer it is (steps,)."""
    receives: Lists
    """For each peer the receives from it, in order."""


@dataclass(frozen=True, eq=False)
class NicCollective:
    """The part of one rank in a collective."""

    schedule: NicSchedule
    pairs: NDArray[np.uint32]
    """Numbers of the queue pairs to the peers (peers,)."""
    size_bytes: NDArray[np.uint64]
    """Size of each step (steps,)."""
    buffer: NDArray[np.int32] | None = None
    """Values, with the rank's input in its place; None: only lengths travel."""
    offset_bytes: NDArray[np.uint64] | None = None
    """Where in the buffer a step's bytes are (steps,); may be left out without a buffer."""
    source_bytes: NDArray[np.uint64] | None = None
    """Where a copy takes its bytes from (steps,); may be left out without a buffer."""


class CollectiveCounts(NamedTuple):
    """Counts of the collectives of an interface's queue pairs."""

    messages: int
    """Messages that collectives have sent."""
    bytes: int
    """Bytes that collectives have sent."""
    early: int
    """Messages that came for collectives that have not begun."""


# ---- Queue pairs ----


@dataclass(frozen=True)
class QueuePairControl:
    """A congestion control as hosts and experiments know it; the engine carries it out."""

    summary: str
    """For the help of options."""
    needs_window: bool = False
    """It is meaningless without a window_bytes."""
    echoes_marks: bool = False
    """Acknowledgements carry the marked bytes (gradbed.formats.roce)."""
    has_fixed_timers: bool = False
    """Its timers are those of fast links, and do not stretch when a network is emulated slower than it is."""
    heeds_marks: bool = True
    """Marks of switches slow it down."""
    heeds_losses: bool = True
    """Losses slow it down."""


CONGESTION_CONTROLS: Mapping[str, QueuePairControl] = {
    "none": QueuePairControl("none (a window of constant size)", heeds_marks=False, heeds_losses=False),
    # RFC 8257: ECN marks reduce a window.
    "dctcp": QueuePairControl("dctcp", needs_window=True, echoes_marks=True),
    # Zhu et al., SIGCOMM 2015: congestion notification packets reduce a rate.
    "dcqcn": QueuePairControl("dcqcn", has_fixed_timers=True, heeds_losses=False),
}
"""By name; switch/runtime/engine/transport/congestion.c has the same ones."""

_IN_PYTHON = QueuePairControl("", echoes_marks=True)
"""Those of other packages (gradbed.common.congestion_control)."""


def queue_pair_control(name: str) -> QueuePairControl:
    """Return a congestion control by its name; ValueError if there is none."""
    if name in CONGESTION_CONTROLS:
        return CONGESTION_CONTROLS[name]
    if is_plugin(name):
        return _IN_PYTHON
    raise ValueError(unknown_control(name, CONGESTION_CONTROLS))


def _known(name: str) -> str:
    queue_pair_control(name)
    return name


CongestionControlName = Annotated[str, AfterValidator(_known)]

Recovery = Literal["go-back-n", "selective-repeat"]


class QueuePairOptions(BaseModel):
    """Options of how a queue pair sends. Times are those of the network's clock."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    mtu_bytes: int = Field(default=4096, ge=64, le=64_000)
    """Largest part of a message in one packet (PMTU)."""
    window_bytes: int = Field(default=0, ge=0)
    """Most bytes that are unacknowledged, also for a congestion control that moves the window; 0: no limit."""
    rate_bps: int = Field(default=0, ge=0)
    """Rate of the NIC, which no queue pair exceeds; 0: the link's."""
    congestion_control: CongestionControlName = "none"
    recovery: Recovery = "go-back-n"
    timeout_us: int = Field(default=1000, ge=1)
    """Without an acknowledgement that tells something new, what is unacknowledged is sent again. Longer where the
    shortest of the last round trips takes more than half of it."""
    give_up_after: int = Field(default=30, ge=1)
    """Timeouts in a row after which the queue pair fails."""
    acknowledge_every: int = Field(default=4, ge=1)
    """Packets after which a receiver acknowledges, besides at the end of each message."""
    reordering_packets: int = Field(default=0, ge=0, le=65_535)
    """Selective repeat: so many later packets may have come before one counts as lost. For networks that spray."""
    priority: int = Field(default=0, ge=0, le=7)
    """Priority of its packets: their DSCP is 8 times it (class selector, RFC 2474)."""

    @model_validator(mode="after")
    def _has_a_window(self) -> Self:
        if queue_pair_control(self.congestion_control).needs_window and not self.window_bytes:
            raise ValueError(f"{self.congestion_control} needs a window_bytes")
        return self


class CompletionKind(Enum):
    """Kinds of completions."""

    SENT = 0
    """All of a message is acknowledged."""
    RECEIVED = 1
    """All of a message has come."""
    FAILED = 2
    """The queue pair has given up: nobody answers."""
    STREAMED = 3
    """All fragments of a vector are done; pair: the stream's number."""
    STREAM_FAILED = 4
    """A stream has given up."""
    COLLECTIVE = 5
    """A collective has its result; tag: as it began. Some of its messages may not be acknowledged yet."""
    COLLECTIVE_FAILED = 6
    """A message came that is none of its collective: ranks do not agree on it."""


class Completion(NamedTuple):
    """The completion of one message."""

    kind: CompletionKind
    pair: int
    tag: int
    """Tag that the sender gave."""
    size_bytes: int
    time_ns: int
    data: NDArray[np.uint8] | None = None
    """Contents of the message (bytes,), None if it had none."""


@dataclass(frozen=True)
class QueuePairStatistics:
    """Bytes are those of messages, without headers; those received are of messages in order. retransmissions are
    among the sent packets."""

    sent_packets: int
    sent_bytes: int
    retransmissions: int
    timeouts: int
    received_packets: int
    received_bytes: int
    duplicates: int
    """Packets that came again."""
    out_of_order: int
    """Packets that came before one that had to come first."""
    marked: int
    """Packets that came with congestion experienced (RFC 3168)."""
    acknowledgements_sent: int
    negatives_sent: int
    cnps_sent: int
    cnps_received: int
    unacknowledged_bytes: int
    window_bytes: int
    """Present window; 0: no limit."""
    rate_bps: int
    """Present rate; 0: no limit."""


class QueuePairs(Protocol):
    """The queue pairs of an agent on one interface, opened by AgentContext.open_queue_pairs.

    Messages of one pair arrive in order, each whole.

    Numbers of pairs (1 to 2^24 - 1) are unique at an interface, for all agents of the host. The NIC works on while
    its agent computes or waits, and on the virtual clock while it is paused, too; with the agent, or when they are
    closed, its queue pairs vanish, and peers learn of that by their timeouts alone. An agent that has received the
    last message of a peer stays until the peer need no answer any more. A context manager that closes them.
    """

    def connect(
        self,
        number: int,
        peer: AgentAddress,
        peer_number: int,
        options: QueuePairOptions,
        *,
        for_collectives: bool = False,
    ) -> None:
        """Make the queue pair `number`, whose other end is the queue pair peer_number of another host. Both ends may
        send as soon as both are made. for_collectives: messages that come by it are for begin_collective alone.
        UserError if the number is taken."""

    def send(self, number: int, tag: int, size_bytes: int, data: NDArray[np.generic] | None = None) -> None:
        """Send a message: data (C-contiguous, size_bytes long), or a length without contents. Data must not be
        changed before the message is complete. tag: 64 bits that arrive with the message."""

    def begin_collective(self, tag: int, collective: NicCollective) -> bool:
        """Let the NIC carry out this rank's part. tag: 64 bits that are the same at all ranks and of no other
        collective that any of them carries out meanwhile, the lowest TURN_BITS 0. True: it has its result already;
        else a completion tells. Arrays are not changed, and the buffer is not touched, before all is acknowledged;
        what is behind the result stays. UserError if a queue pair is missing."""

    def collective_counts(self) -> CollectiveCounts:
        """Return what all collectives have counted so far."""

    def open_stream(self, number: int, options: StreamOptions) -> None:
        """Open one end of a stream of fragments, which is known by its number. UserError if the number is taken."""

    def stream(
        self,
        number: int,
        tag: int,
        size_bytes: int,
        source: NDArray[np.int32] | None = None,
        target: NDArray[np.int32] | None = None,
    ) -> None:
        """Let a source send a vector, or a sink take the next one, of so many bytes (a multiple of 4). source: what
        is sent, None: zeros. target: where the replies' contents, or those that come, are put. Both must stay until
        the completion."""

    def stream_statistics(self, number: int) -> FragmentStreamStatistics:
        """Return what a stream has counted so far."""

    def completions(self) -> Sequence[Completion]:
        """Return what has been completed since the last call, in order. One that waits ends AgentContext.wait."""

    def statistics(self, number: int) -> QueuePairStatistics:
        """Return what a queue pair has counted so far."""

    def close(self) -> None:
        """Remove all queue pairs. May be repeated."""

    def __enter__(self) -> QueuePairs: ...

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None: ...
