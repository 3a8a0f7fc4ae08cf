"""Digest lists to the controllers and their acknowledgements, for one device under one pipeline."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from finsy.proto import p4r

from switch.p4runtime.pipeline.digests import DigestBuffer, DigestCodec, DigestConfig

Send = Callable[[int, Any], bool]
"""Digest id and p4.v1.DigestList; False if there is no controller to send it to."""


class DigestExchange:
    """All calls are the event loop's."""

    def __init__(self, codecs: Iterable[DigestCodec], configs: Mapping[int, DigestConfig], send: Send) -> None:
        """`configs`: of the digests that are enabled now, by digest id."""
        self._codecs = {codec.list_id: codec for codec in codecs}
        self._configs = configs
        self._send = send
        self._buffers: dict[int, DigestBuffer] = {}
        self._timers: dict[int, asyncio.TimerHandle] = {}

    def receive(self, list_id: int, words: tuple[int, ...]) -> None:
        """A message from the data plane."""
        codec = self._codecs.get(list_id)
        config = self._configs.get(codec.digest_id) if codec is not None else None
        if codec is None or config is None:
            return
        buffer = self._buffers.setdefault(codec.digest_id, DigestBuffer(config))
        buffer.config = config
        if buffer.add(codec.values(words), time.monotonic_ns()):
            self._flush(codec)
        elif codec.digest_id not in self._timers and buffer.due_ns is not None:
            delay_s = max(0, buffer.due_ns - time.monotonic_ns()) / 1e9
            self._timers[codec.digest_id] = asyncio.get_running_loop().call_later(delay_s, self._flush, codec)

    def acknowledge(self, digest_id: int, list_id: int) -> None:
        buffer = self._buffers.get(digest_id)
        if buffer is not None:
            buffer.acknowledge(list_id)

    def forget(self) -> None:
        """Another controller is in charge: nothing has been sent to it yet."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self._buffers.clear()

    def _flush(self, codec: DigestCodec) -> None:
        timer = self._timers.pop(codec.digest_id, None)
        if timer is not None:
            timer.cancel()
        buffer = self._buffers[codec.digest_id]
        if codec.digest_id not in self._configs:
            del self._buffers[codec.digest_id]
            return
        list_id, messages = buffer.take(time.monotonic_ns())
        digest_list = p4r.DigestList(digest_id=codec.digest_id, list_id=list_id, timestamp=time.time_ns())
        for values in messages:
            codec.encode(values, digest_list.data.add())
        if not self._send(codec.digest_id, digest_list):
            buffer.acknowledge(list_id)
