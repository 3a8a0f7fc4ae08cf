"""gradbed.hosts.agents.queue_pairs on a NIC that the engine carries out."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from gradbed.common.resources import Closing
from gradbed.formats.addresses import ip_integer, mac_bytes
from gradbed.hosts.agents.config import AgentAddress
from gradbed.hosts.agents.queue_pairs import (
    CollectiveCounts,
    Completion,
    CompletionKind,
    FragmentStreamStatistics,
    NicCollective,
    QueuePairOptions,
    QueuePairStatistics,
    StreamOptions,
    Word,
)

_KINDS = tuple(CompletionKind)
NO_OFFSET = 2**32 - 1
"""Of a field that there is not."""


class NicCompletion(Protocol):
    """gradbed.hosts.agents.queue_pairs.Completion, its kind as a number."""

    @property
    def kind(self) -> int: ...
    @property
    def pair(self) -> int: ...
    @property
    def tag(self) -> int: ...
    @property
    def size_bytes(self) -> int: ...
    @property
    def time_ns(self) -> int: ...
    @property
    def data(self) -> NDArray[np.uint8] | None: ...


class NicQueuePairs(Protocol):
    """The queue pairs of one agent at a NIC, such as gradbed.switch.engine.queue_pairs.HostQueuePairs."""

    def connect(
        self,
        number: int,
        peer_number: int,
        *,
        src_mac: bytes,
        dst_mac: bytes,
        congestion_control: str,
        recovery: str,
        for_collectives: bool,
        **numbers: int,
    ) -> None: ...

    def send(self, number: int, tag: int, size_bytes: int, data: NDArray[np.generic] | None = None) -> None: ...

    def begin_collective(self, tag: int, collective: NicCollective) -> bool: ...

    def hold_collectives(self, held: bool) -> None: ...

    def collective_counts(self) -> dict[str, int]: ...

    def open_stream(
        self,
        number: int,
        role: str,
        templates: Sequence[bytes],
        words: Sequence[Word],
        direct: bytes = b"",
        **numbers: int,
    ) -> None: ...

    def stream(
        self,
        number: int,
        tag: int,
        size_bytes: int,
        source: NDArray[np.int32] | None = None,
        target: NDArray[np.int32] | None = None,
    ) -> None: ...

    def stream_statistics(self, number: int) -> dict[str, int]: ...

    def completions(self) -> Sequence[NicCompletion]: ...

    def statistics(self, number: int) -> dict[str, int]: ...

    def counts(self) -> dict[str, Any]: ...

    def close(self) -> None: ...


@runtime_checkable
class NicWithQueuePairs(Protocol):
    def open_queue_pairs(self) -> NicQueuePairs: ...


class QueuePairCounts(NamedTuple):
    """Counts of what queue pairs carried, in the form of InterfaceCounts (frames/counts.py)."""

    carried: Callable[[], Mapping[str, Any]]
    classes: int
    """Number of classes by which the context counts; 0: none."""

    def as_json(self) -> dict[str, Any]:
        carried = self.carried()
        numbers = ("sent_frames", "sent_bytes", "received_frames", "received_bytes", "drops")
        length = self.classes + 1 if self.classes else 0
        by_class = {name: list(carried[name][:length]) for name in ("sent_classes", "received_classes")}
        return {**{name: carried[name] for name in numbers}, **by_class}


class AgentQueuePairs(Closing):
    """Made by AgentContext.open_queue_pairs."""

    def __init__(self, nic: NicQueuePairs, address: AgentAddress, wake: Callable[[], None] = lambda: None) -> None:
        """wake: of the agent's context, for who knows when there is something."""
        self._wake = wake
        self._nic = nic
        self._address = address
        self._on_close: list[Callable[[AgentQueuePairs], None]] = []
        self._waiting: deque[Completion] = deque()
        self._is_open = True
        self._is_collected = False

    @property
    def waiting(self) -> bool:
        """Something has been completed that nobody has looked at yet."""
        return bool(self._waiting)

    def collect(self) -> bool:
        """The NIC may have something; whether there is anything new."""
        found = [
            Completion(_KINDS[each.kind], each.pair, each.tag, each.size_bytes, each.time_ns, each.data)
            for each in self._nic.completions()
        ]
        self._waiting.extend(found)
        return bool(found)

    def wake(self) -> None:
        """Let the agent go on, if it waits: all that there is was collected at this moment."""
        self._is_collected = True
        self._wake()
        self._is_collected = False

    def connect(
        self,
        number: int,
        peer: AgentAddress,
        peer_number: int,
        options: QueuePairOptions,
        *,
        for_collectives: bool = False,
    ) -> None:
        numbers = options.model_dump(exclude={"timeout_us", "congestion_control", "recovery"})
        self._nic.connect(
            number,
            peer_number,
            src_mac=mac_bytes(self._address.mac),
            dst_mac=mac_bytes(self._address.mac_towards(peer)),
            congestion_control=options.congestion_control,
            recovery=options.recovery,
            for_collectives=for_collectives,
            src_ip=ip_integer(self._address.ip),
            dst_ip=ip_integer(peer.ip),
            timeout_ns=1000 * options.timeout_us,
            **numbers,
        )

    def send(self, number: int, tag: int, size_bytes: int, data: NDArray[np.generic] | None = None) -> None:
        self._nic.send(number, tag, size_bytes, data)

    def begin_collective(self, tag: int, collective: NicCollective) -> bool:
        return self._nic.begin_collective(tag, collective)

    def hold_collectives(self, held: bool) -> None:
        """While the agent is paused, its collectives are, too."""
        self._nic.hold_collectives(held)

    def collective_counts(self) -> CollectiveCounts:
        return CollectiveCounts(**self._nic.collective_counts())

    def open_stream(self, number: int, options: StreamOptions) -> None:
        names = ("window", "payload_bytes", "everybody", "number_offset", "bits_offset", "flags_offset")
        flags = {"again": options.again, "came_again": options.came_again}
        self._nic.open_stream(
            number,
            options.role,
            [bytes.fromhex(template) for template in options.templates],
            options.arrivals,
            reply_payload=int(options.reply_payload),
            magnitude_offset=NO_OFFSET if options.magnitude_offset is None else options.magnitude_offset,
            timeout_ns=1000 * options.timeout_us,
            give_up_after=options.give_up_after,
            direct=bytes.fromhex(options.direct),
            direct_after=options.direct_after if options.direct else 0,
            **flags,
            **{name: getattr(options, name) for name in names},
        )

    def stream(
        self,
        number: int,
        tag: int,
        size_bytes: int,
        source: NDArray[np.int32] | None = None,
        target: NDArray[np.int32] | None = None,
    ) -> None:
        self._nic.stream(number, tag, size_bytes, source, target)

    def stream_statistics(self, number: int) -> FragmentStreamStatistics:
        return FragmentStreamStatistics(**self._nic.stream_statistics(number))

    def completions(self) -> Sequence[Completion]:
        if not self._is_collected:
            self.collect()
        found = tuple(self._waiting)
        self._waiting.clear()
        return found

    def statistics(self, number: int) -> QueuePairStatistics:
        return QueuePairStatistics(**self._nic.statistics(number))

    def close(self) -> None:
        if self._is_open:
            self._is_open = False
            self._nic.close()
            for action in self._on_close:
                action(self)

    def on_close(self, action: Callable[[AgentQueuePairs], None]) -> None:
        """Do something when they are closed."""
        self._on_close.append(action)

    def counts(self, classes: int) -> QueuePairCounts:
        """Return what they carried; classes: by which the context counts."""
        return QueuePairCounts(self.carried, classes)

    def carried(self) -> Mapping[str, Any]:
        """Return counts in the form of InterfaceCounts, with all classes that there can be."""
        return {"drops": 0, **self._nic.counts()}
