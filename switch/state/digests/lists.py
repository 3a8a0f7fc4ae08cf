"""Digest lists to the controllers and their acknowledgements, for one device under one pipeline."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from finsy.proto import p4r

from gradbed.switch.state.digests.codec import DigestBuffer, DigestCodec, DigestConfig

Send = Callable[[int, Any], bool]
"""Digest id and p4.v1.DigestList; False if there is no controller to send it to."""


class DigestLists:
    """One call at a time."""

    def __init__(
        self,
        codecs: Iterable[DigestCodec],
        configs: Mapping[int, DigestConfig],
        send: Send,
        clock_ns: Callable[[], int],
        timestamp_ns: Callable[[], int],
    ) -> None:
        """`configs`: of the digests that are enabled now, by digest id. `clock_ns` is that of their timeouts,
        `timestamp_ns` what lists are stamped with."""
        self._codecs = {codec.list_id: codec for codec in codecs}
        self._configs = configs
        self._send = send
        self._clock_ns = clock_ns
        self._timestamp_ns = timestamp_ns
        self._buffers: dict[int, DigestBuffer] = {}

    def receive(self, list_id: int, words: tuple[int, ...]) -> None:
        """Take a message from the data plane; send its list if that is complete."""
        codec = self._codecs.get(list_id)
        config = self._configs.get(codec.digest_id) if codec is not None else None
        if codec is None or config is None:
            return
        buffer = self._buffers.setdefault(codec.digest_id, DigestBuffer(config))
        buffer.config = config
        if buffer.add(codec.values(words), self._clock_ns()):
            self._send_list(codec, buffer)

    @property
    def due_ns(self) -> int | None:
        """When `send_due` has something to send; None: nothing waits."""
        times = [buffer.due_ns for buffer in self._buffers.values()]
        return min((time_ns for time_ns in times if time_ns is not None), default=None)

    def send_due(self) -> None:
        """Send the lists whose time has come, complete or not."""
        now_ns = self._clock_ns()
        for codec in self._codecs.values():
            buffer = self._buffers.get(codec.digest_id)
            if buffer is not None and buffer.due_ns is not None and buffer.due_ns <= now_ns:
                self._send_list(codec, buffer)

    def acknowledge(self, digest_id: int, list_id: int) -> None:
        buffer = self._buffers.get(digest_id)
        if buffer is not None:
            buffer.acknowledge(list_id)

    def forget(self) -> None:
        """Another controller is in charge: nothing has been sent to it yet."""
        self._buffers.clear()

    def _send_list(self, codec: DigestCodec, buffer: DigestBuffer) -> None:
        if codec.digest_id not in self._configs:
            del self._buffers[codec.digest_id]
            return
        list_id, messages = buffer.take(self._clock_ns())
        digest_list = p4r.DigestList(digest_id=codec.digest_id, list_id=list_id, timestamp=self._timestamp_ns())
        for values in messages:
            codec.encode(values, digest_list.data.add())
        if not self._send(codec.digest_id, digest_list):
            buffer.acknowledge(list_id)
