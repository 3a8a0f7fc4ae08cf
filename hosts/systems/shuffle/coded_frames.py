"""The shuffle's packets in batches: packed and parsed as NumPy columns."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gradbed.formats.addresses import ip_integer
from gradbed.formats.datagram import NOT_ECT
from gradbed.formats.shuffle import CODED, COMPONENT, COMPONENTS, REQUEST, REQUEST_BITS, CodedFlags
from gradbed.hosts.agents.config import AgentAddress
from gradbed.hosts.protocols.frames import (
    Frames,
    FrameType,
    frame_type,
    mac_array,
    only,
    pack_datagrams,
    well_formed_datagrams,
)


def _bit_string(bits: int) -> tuple[Any, ...]:
    return ("bit_string", "u1", (bits // 8,))


@functools.cache
def scheduled_dtype(bits: int, fragment_bytes: int) -> FrameType:
    """A whole frame of a scheduled packet."""
    return frame_type(CODED, _bit_string(bits), ("payload", "u1", (fragment_bytes,)))


@functools.cache
def repair_dtype(bits: int, fragment_bytes: int) -> FrameType:
    """A whole frame of a repair."""
    components = ("components", COMPONENT.columns, (COMPONENTS,))
    return frame_type(CODED, _bit_string(bits), ("count", ">u2"), components, ("payload", "u1", (fragment_bytes,)))


@functools.cache
def request_dtype(bits: int) -> FrameType:
    """A whole frame of a request."""
    return frame_type(CODED, _bit_string(bits), *REQUEST.columns)


def bit_string(workers: int, bits: int) -> NDArray[np.uint8]:
    """A set of workers (bit w is worker w) as it is sent, shape (bits / 8,)."""
    return np.frombuffer(workers.to_bytes(bits // 8, "big"), np.uint8)


class Packer:
    """Packs an agent's packets. fragment_bytes: of every packet of the job."""

    def __init__(self, job: int, index: int, own: AgentAddress, bits: int, fragment_bytes: int) -> None:
        self._job = job
        self._bfir_id = index + 1
        self._bits = bits
        self._fragment_bytes = fragment_bytes
        self._src: dict[str, Any] = {
            "src_mac": mac_array(own.mac),
            "dst_mac": mac_array(own.gateway_mac),
            "src_ip": ip_integer(own.ip),
        }

    def scheduled(self, payload: NDArray[np.uint8], *, fragment: ArrayLike, **header: Any) -> Frames:
        """Frames of a transmission, one for each row of payload, shape (frames, fragment_bytes)."""
        dtype = scheduled_dtype(self._bits, self._fragment_bytes)
        return self._pack(dtype, {"payload": payload, "fragment": fragment}, len(payload), **header)

    def repair(self, payload: NDArray[np.uint8], components: Sequence[tuple[int, int]], **header: Any) -> Frames:
        """The frame of a repair: the sum of these fragments (sample, fragment), shape (fragment_bytes,)."""
        listed = np.zeros(COMPONENTS, COMPONENT.columns)
        listed[: len(components)] = list(components)
        fields = {"payload": payload, "count": len(components), "components": listed}
        return self._pack(
            repair_dtype(self._bits, self._fragment_bytes), fields, 1, flags=CodedFlags.REPAIR, **header
        )

    def request(self, sample: int, missing: NDArray[np.bool_], **header: Any) -> Frames:
        """The frame of a request. missing: of the fragments from `fragment` on, at most REQUEST_BITS of them."""
        bitmap = np.zeros(REQUEST_BITS // 8, np.uint8)
        packed = np.packbits(missing)
        bitmap[: len(packed)] = packed
        fields = {"sample": sample, "missing": bitmap}
        return self._pack(request_dtype(self._bits), fields, 1, flags=CodedFlags.REQUEST, **header)

    def _pack(
        self,
        dtype: FrameType,
        fields: dict[str, Any],
        count: int,
        *,
        dst_ip: int,
        transmission: int,
        receivers: int = 0,
        bift_id: int = 0,
        flags: int = 0,
        fragments: int = 1,
        fragment: int | None = None,
    ) -> Frames:
        """receivers: those in the bit string, by which the packet then goes."""
        if receivers:
            flags |= CodedFlags.BY_BIT_STRING
        if fragment is not None:
            fields = {**fields, "fragment": fragment}
        return pack_datagrams(
            CODED,
            dtype,
            count,
            **self._src,
            dst_ip=dst_ip,
            tos=NOT_ECT,
            flags=int(flags),
            job=self._job,
            bift_id=bift_id,
            bfir_id=self._bfir_id,
            transmission=transmission,
            fragments=fragments,
            bit_string=bit_string(receivers, self._bits),
            **fields,
        )


class Parsed:
    """The well-formed packets of a batch, in order of arrival each; copies, so the buffer may be used again."""

    def __init__(
        self, buffer: NDArray[np.uint8], lengths: NDArray[np.integer[Any]], job: int, bits: int, fragment_bytes: int
    ) -> None:
        def of_kind(dtype: FrameType, kind: int) -> Frames:
            frames = well_formed_datagrams(CODED, dtype, buffer, lengths)
            flags = frames["flags"] & (CodedFlags.REPAIR | CodedFlags.REQUEST)
            return only(frames, (frames["job"] == job) & (flags == kind))

        self.scheduled = of_kind(scheduled_dtype(bits, fragment_bytes), 0)
        self.repairs = of_kind(repair_dtype(bits, fragment_bytes), CodedFlags.REPAIR)
        self.requests = of_kind(request_dtype(bits), CodedFlags.REQUEST)
        self.foreign = len(lengths) - len(self.scheduled) - len(self.repairs) - len(self.requests)
        """Frames that are none of these: malformed, or of another job."""
