"""Queue pairs of the NIC at a host's port, with streams of fragments and collectives, which the data plane
carries out (gradbed.hosts.agents.queue_pairs).
"""

from __future__ import annotations

import ctypes
import errno
from collections import defaultdict, deque
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from gradbed.common.congestion_control import WindowCallbacks, is_plugin
from gradbed.common.errors import UserError
from gradbed.common.resources import Closing
from gradbed.switch.engine import Engine, abi
from gradbed.switch.engine.statistics import pattern_structs
from gradbed.switch.runtime.library import ENGINE_HEADERS

# ---- The C interface: queue_pairs.h, fragment_streams.h and collectives.h in runtime/engine/transport ----


MOST_MESSAGE_BYTES = ENGINE_HEADERS.constant("GB_MOST_MESSAGE_BYTES")
MOST_WINDOW_PACKETS = 2**15
"""Of a pair whose window_bytes is 0, for a control in Python."""
RECOVERIES = ("go-back-n", "selective-repeat")
"""By their numbers."""
SENT, RECEIVED, FAILED, STREAMED, STREAM_FAILED, COLLECTIVE, COLLECTIVE_FAILED, COLLECTIVE_ENDED = (
    ENGINE_HEADERS.constant(f"GB_COMPLETION_{name}")
    for name in (
        *("SENT", "RECEIVED", "FAILED", "STREAMED", "STREAM_FAILED"),
        *("COLLECTIVE", "COLLECTIVE_FAILED", "COLLECTIVE_ENDED"),
    )
)
"""Kinds of completions."""
MOST_TEMPLATES = ENGINE_HEADERS.constant("GB_MOST_TEMPLATES")
MOST_TEMPLATE_BYTES = ENGINE_HEADERS.constant("GB_MOST_TEMPLATE_BYTES")
NO_OFFSET = ENGINE_HEADERS.constant("GB_NO_OFFSET")
ROLES = ("source", "sink", "server")
"""By their numbers."""
TURN_BITS = ENGINE_HEADERS.constant("GB_TURN_BITS")
"""The lowest of a message's tag."""
SEND, RECEIVE, ADD, COPY = (ENGINE_HEADERS.constant(f"GB_STEP_{name}") for name in ("SEND", "RECEIVE", "ADD", "COPY"))
"""Kinds of steps."""


@ENGINE_HEADERS.declare("gb_queue_pair_options")
class QueuePairOptionsStruct(ctypes.Structure):
    """Options of a queue pair."""


@ENGINE_HEADERS.declare("gb_completion")
class CompletionStruct(ctypes.Structure):
    """A message, stream or collective that is complete."""


@ENGINE_HEADERS.declare("gb_queue_pair_statistics")
class QueuePairStatisticsStruct(ctypes.Structure):
    """Counts of a queue pair."""


@ENGINE_HEADERS.declare("gb_consumer_counts")
class ConsumerCountsStruct(ctypes.Structure):
    """Counts of a consumer."""


@ENGINE_HEADERS.declare("gb_stream_options")
class StreamOptionsStruct(ctypes.Structure):
    """Options of a stream of fragments."""


@ENGINE_HEADERS.declare("gb_stream_statistics")
class StreamStatisticsStruct(ctypes.Structure):
    """Counts of a stream of fragments."""


@ENGINE_HEADERS.declare("gb_schedule")
class ScheduleStruct(ctypes.Structure):
    """The part of a collective that ranks which do the same share."""


@ENGINE_HEADERS.declare("gb_collective")
class CollectiveStruct(ctypes.Structure):
    """A rank's collective."""


@ENGINE_HEADERS.declare("gb_collective_counts")
class CollectiveCountsStruct(ctypes.Structure):
    """Counts of what a consumer's collectives have sent."""


# ---- What of a collective NICs take ----


class NicSchedule(Protocol):
    """gradbed.hosts.agents.queue_pairs.NicSchedule."""

    @property
    def kinds(self) -> NDArray[np.uint8]: ...
    @property
    def waits(self) -> NDArray[np.uint32]: ...
    @property
    def dependents(self) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]: ...
    @property
    def peer(self) -> NDArray[np.uint32]: ...
    @property
    def turn(self) -> NDArray[np.uint32]: ...
    @property
    def receives(self) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]: ...


class NicCollective(Protocol):
    """gradbed.hosts.agents.queue_pairs.NicCollective."""

    @property
    def schedule(self) -> NicSchedule: ...
    @property
    def pairs(self) -> NDArray[np.uint32]: ...
    @property
    def size_bytes(self) -> NDArray[np.uint64]: ...
    @property
    def buffer(self) -> NDArray[np.int32] | None: ...
    @property
    def offset_bytes(self) -> NDArray[np.uint64] | None: ...
    @property
    def source_bytes(self) -> NDArray[np.uint64] | None: ...


def check_collective(collective: NicCollective) -> None:
    """Raise UserError if messages are too long or too many."""
    schedule = collective.schedule
    if collective.size_bytes.max(initial=0, where=schedule.kinds != COPY) > MOST_MESSAGE_BYTES:
        raise UserError("a message has at most 2^31 bytes: a collective needs more ranks or chunks for its size")
    if schedule.turn.max(initial=0) >= 1 << TURN_BITS:
        raise UserError(f"a collective has at most {1 << TURN_BITS:,} messages between two ranks: take fewer chunks")


def collective_struct(tag: int, collective: NicCollective) -> tuple[CollectiveStruct, tuple[object, ...]]:
    """Return a collective as C has it, and what has to stay until it has ended."""
    schedule = collective.schedule
    by_pair = np.argsort(collective.pairs, kind="stable").astype(np.uint32)
    of_schedule: tuple[NDArray[Any], ...] = (
        *(schedule.kinds, schedule.waits, *schedule.dependents),
        *(schedule.peer, schedule.turn, *schedule.receives),
    )
    struct = ScheduleStruct(len(schedule.kinds), len(schedule.receives[0]) - 1, *map(_pointer, of_schedule))
    arrays: tuple[NDArray[Any] | None, ...] = (
        *(collective.pairs, by_pair, collective.size_bytes),
        *(collective.buffer, collective.offset_bytes, collective.source_bytes),
    )
    return CollectiveStruct(tag, ctypes.pointer(struct), *map(_pointer, arrays)), (arrays, schedule)


def _pointer(array: NDArray[Any] | None) -> int | None:
    if array is not None and not array.flags.c_contiguous:
        raise ValueError("an array of a collective is not C-contiguous")
    return None if array is None else array.ctypes.data


# ---- Queue pairs ----


_AT_ONCE = 64
Pattern = Sequence[tuple[int, int, int]]
"""Words of 16 bits: offset in bytes, mask, value."""


class NicCompletion(NamedTuple):
    """Completion of a message or collective."""

    kind: int
    """A value of gradbed.hosts.agents.queue_pairs.CompletionKind."""
    pair: int
    tag: int
    size_bytes: int
    time_ns: int
    data: NDArray[np.uint8] | None
    """The contents that came, if the message had any."""


class HostQueuePairs(Closing):
    """Queue pairs of one consumer at a port.

    When they are closed, they vanish with all that is on its way; peers are not notified.
    """

    def __init__(self, engine: Engine, device_id: int, port: int) -> None:
        self._engine = engine
        self._consumer = engine.call("open_consumer", device_id, port)
        if self._consumer < 0:
            raise UserError(f"port {port} of switch {device_id} does not lead to a host in memory")
        self._completions = (CompletionStruct * _AT_ONCE)()
        self._sending: dict[int, deque[NDArray[np.generic] | None]] = defaultdict(deque)
        # Messages of a pair are complete in order: until then their contents stay.
        self._streaming: dict[tuple[int, int], tuple[NDArray[np.int32] | None, ...]] = {}
        # Likewise vectors, by their streams and tags.
        self._collectives: dict[int, tuple[object, ...]] = {}
        # And all that collectives use, by their tags.
        self._callbacks: dict[int, WindowCallbacks] = {}
        # Of pairs whose congestion control is in Python, by their numbers.
        self._counts: dict[str, Any] | None = None

    def connect(
        self,
        number: int,
        peer_number: int,
        *,
        src_mac: bytes,
        dst_mac: bytes,
        congestion_control: str,
        recovery: str,
        for_collectives: bool = False,
        **numbers: int,
    ) -> None:
        """Create a queue pair and connect it to a peer's. Raises UserError if the number is taken.

        `for_collectives`: messages that come are for collectives, and not reported. `numbers`: the other fields of
        struct gb_queue_pair_options.
        """
        name, callbacks = congestion_control.encode(), None
        if self._engine.call("congestion_control", name) < 0 and is_plugin(congestion_control):
            most = numbers["window_bytes"] // numbers["mtu_bytes"] or MOST_WINDOW_PACKETS
            callbacks = WindowCallbacks(congestion_control, most)
        options = QueuePairOptionsStruct(
            number=number,
            peer_number=peer_number,
            congestion_control=self._engine.call("congestion_control", b"callback" if callbacks else name),
            recovery=RECOVERIES.index(recovery),
            for_collectives=for_collectives,
            src_mac=(ctypes.c_uint8 * 6)(*src_mac),
            dst_mac=(ctypes.c_uint8 * 6)(*dst_mac),
            **numbers,
        )
        if callbacks is not None:
            options.window_acknowledged, options.window_lost = callbacks.acknowledged, callbacks.lost
            options.window_packets = callbacks.window
        code = self._call("connect_pair", ctypes.byref(options))
        if code == -errno.EEXIST:
            raise UserError(f"there is a queue pair {number} at this interface already")
        if code == -errno.ENODATA:
            raise UserError(f"{congestion_control} needs a rate: give the link one, or the queue pair a rate_bps")
        if code == -errno.ENOMEM:
            raise MemoryError("out of memory for a queue pair")
        if code < 0:
            raise UserError(
                f"queue pair {number} to {peer_number}: numbers are 1 to 2^24 - 1, and {congestion_control} is a "
                "congestion control that the engine has, with a window if it needs one"
            )
        if callbacks is not None:
            self._callbacks[number] = callbacks

    def send(self, number: int, tag: int, size_bytes: int, data: NDArray[np.generic] | None = None) -> None:
        """Send as gradbed.hosts.agents.queue_pairs.QueuePairs.send does."""
        if data is not None and (data.nbytes != size_bytes or not data.flags.c_contiguous):
            raise ValueError(f"{data.nbytes} bytes of data, C-contiguous or not, for a message of {size_bytes} bytes")
        if not 0 <= size_bytes <= MOST_MESSAGE_BYTES:
            raise UserError(f"a message has at most 2^31 bytes, not {size_bytes}")
        if not 0 <= tag < 2**64:
            raise UserError(f"a tag has 64 bits, {tag} does not fit")
        pointer = None if data is None else data.ctypes.data
        self._sending[number].append(data)
        code = self._call("send_message", number, tag, size_bytes, pointer)
        if code < 0:
            self._sending[number].pop()
            if code == -errno.ENOMEM:
                raise MemoryError("out of memory for a message")
            raise UserError(f"there is no queue pair {number} here")

    def begin_collective(self, tag: int, collective: NicCollective) -> bool:
        """Begin as gradbed.hosts.agents.queue_pairs.QueuePairs.begin_collective does."""
        check_collective(collective)
        options, kept = collective_struct(tag, collective)
        code = self._call("begin_collective", ctypes.byref(options))
        if code == -errno.ENOMEM:
            raise MemoryError("out of memory for a collective")
        if code < 0:
            raise UserError(
                f"collective {tag:#x}: it runs already, or a queue pair that it needs is not for collectives"
            )
        self._collectives[tag] = kept
        return bool(code)

    def hold_collectives(self, held: bool) -> None:
        """Hold back what collectives send, or let it go."""
        if self._counts is None:
            self._call("hold_collectives", int(held))

    def collective_counts(self) -> dict[str, int]:
        """Return the members of struct gb_collective_counts."""
        row = CollectiveCountsStruct()
        self._call("collective_counts", ctypes.byref(row))
        return abi.values(row)

    def open_stream(
        self,
        number: int,
        role: str,
        templates: Sequence[bytes],
        words: Pattern,
        direct: bytes = b"",
        **numbers: int,
    ) -> None:
        """Open a stream. Raises UserError if the number is taken.

        `numbers`: the other fields of struct gb_stream_options.
        """
        options = StreamOptionsStruct(
            number=number,
            role=ROLES.index(role),
            template_bytes=len(templates[0]),
            template_count=len(templates),
            arrivals=pattern_structs([words])[0],
            **numbers,
        )
        for place, template in enumerate(templates):
            options.templates[place][: len(template)] = tuple(template)
        options.direct[: len(direct)] = tuple(direct)
        code = self._call("open_stream", ctypes.byref(options))
        if code == -errno.EEXIST:
            raise UserError(f"there is a stream {number} at this interface already")
        if code == -errno.ENOMEM:
            raise MemoryError("out of memory for a stream")
        if code < 0:
            raise UserError(f"stream {number}: its templates, offsets or sizes do not fit each other")

    def stream(
        self,
        number: int,
        tag: int,
        size_bytes: int,
        source: NDArray[np.int32] | None = None,
        target: NDArray[np.int32] | None = None,
    ) -> None:
        """Stream as gradbed.hosts.agents.queue_pairs.QueuePairs.stream does."""
        for what in (source, target):
            if what is not None and (what.nbytes != size_bytes or not what.flags.c_contiguous):
                raise ValueError(f"{what.nbytes} bytes for a vector of {size_bytes} bytes")
        pointers = (None if each is None else each.ctypes.data for each in (source, target))
        self._streaming[number, tag] = (source, target)
        code = self._call("stream", number, tag, size_bytes, *pointers)
        if code < 0:
            del self._streaming[number, tag]
            raise UserError(f"stream {number} takes no vector of {size_bytes} bytes")

    def stream_statistics(self, number: int) -> dict[str, int]:
        """Return the counts of a stream: the members of struct gb_stream_statistics."""
        row = StreamStatisticsStruct()
        if self._call("stream_statistics", number, ctypes.byref(row)) < 0:
            raise UserError(f"there is no stream {number} here")
        return abi.values(row)

    def completions(self) -> list[NicCompletion]:
        """Return what was completed since the last call, in order."""
        found: list[NicCompletion] = []
        if self._counts is not None:
            return found
        for callbacks in self._callbacks.values():
            callbacks.check()
        count = _AT_ONCE
        while count == _AT_ONCE:
            count = self._call("completions", self._completions, _AT_ONCE)
            rows = (self._completions[place] for place in range(count))
            found += [self._completion(row) for row in rows if not self._has_ended(row)]
        return found

    def _has_ended(self, row: CompletionStruct) -> bool:
        """Return whether this is a collective whose agent knows its result already."""
        if row.kind == COLLECTIVE_ENDED:
            del self._collectives[row.tag]
        return bool(row.kind == COLLECTIVE_ENDED)

    def _completion(self, row: CompletionStruct) -> NicCompletion:
        data = None
        if row.kind in (STREAMED, STREAM_FAILED):
            del self._streaming[row.pair, row.tag]
        elif row.kind in (SENT, FAILED):
            if row.pair in self._sending:  # otherwise a collective's
                self._sending[row.pair].popleft()
        elif row.data:
            data = np.empty(row.size_bytes, np.uint8)
            self._engine.call("take_contents", row.data, row.size_bytes, data.ctypes.data)
        return NicCompletion(row.kind, row.pair, row.tag, row.size_bytes, row.time_ns, data)

    def statistics(self, number: int) -> dict[str, int]:
        """Return the counts of a queue pair: the members of struct gb_queue_pair_statistics."""
        row = QueuePairStatisticsStruct()
        if self._call("pair_statistics", number, ctypes.byref(row)) < 0:
            raise UserError(f"there is no queue pair {number} here")
        return abi.values(row)

    def counts(self) -> dict[str, Any]:
        """Return the members of struct gb_consumer_counts, those by class as lists."""
        if self._counts is not None:
            return self._counts
        row = ConsumerCountsStruct()
        self._call("consumer_counts", ctypes.byref(row))
        return {
            name: list(value) if isinstance(value, ctypes.Array) else value for name, value in abi.values(row).items()
        }

    def close(self) -> None:
        """Close all queue pairs. May be repeated."""
        if self._counts is None:
            self._counts = self.counts()
            self._call("close_consumer")
            self._sending.clear()
            self._streaming.clear()
            self._collectives.clear()
            self._callbacks.clear()

    def _call(self, name: str, *arguments: object) -> int:
        return self._engine.call(name, self._consumer, *arguments)
