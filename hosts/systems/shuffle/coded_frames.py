"""The shuffle's packets in batches: packed and parsed as NumPy columns (coded.py is the definition)."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hosts.protocols.addresses import AgentAddress, ip_integer, mac_array
from hosts.protocols.datagram_frames import DATAGRAM, Frames, only, pack_datagrams, well_formed_datagrams
from hosts.systems.shuffle.coded_format import (
    CODED_PORT,
    CODED_VERSION,
    COMPONENTS,
    REQUEST_BITS,
    CodedFlags,
)

_COMPONENTS: list[Any] = [
    ("count", ">u2"),
    ("components", [("sample", ">u4"), ("fragment", ">u2")], (COMPONENTS,)),
]
_REQUEST: list[Any] = [("sample", ">u4"), ("missing", "u1", (REQUEST_BITS // 8,))]


@functools.cache
def _header(bits: int) -> tuple[Any, ...]:
    return (
        *DATAGRAM,
        ("version", "u1"),
        ("flags", "u1"),
        ("job", ">u2"),
        ("bift_id", ">u2"),
        ("bfir_id", ">u2"),
        ("transmission", ">u4"),
        ("fragment", ">u2"),
        ("fragments", ">u2"),
        ("bit_string", "u1", (bits // 8,)),
    )


@functools.cache
def scheduled_dtype(bits: int, fragment_bytes: int) -> np.dtype[np.void]:
    """A whole frame of a scheduled packet."""
    return np.dtype([*_header(bits), ("payload", "u1", (fragment_bytes,))])


@functools.cache
def repair_dtype(bits: int, fragment_bytes: int) -> np.dtype[np.void]:
    """A whole frame of a repair."""
    return np.dtype([*_header(bits), *_COMPONENTS, ("payload", "u1", (fragment_bytes,))])


@functools.cache
def request_dtype(bits: int) -> np.dtype[np.void]:
    """A whole frame of a request."""
    return np.dtype([*_header(bits), *_REQUEST])


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
            "src_port": CODED_PORT,
        }

    def scheduled(self, payload: NDArray[np.uint8], *, fragment: ArrayLike, **header: Any) -> Frames:
        """Frames of a transmission, one for each row of payload, shape (frames, fragment_bytes)."""
        dtype = scheduled_dtype(self._bits, self._fragment_bytes)
        return self._pack(dtype, {"payload": payload, "fragment": fragment}, len(payload), **header)

    def repair(self, payload: NDArray[np.uint8], components: Sequence[tuple[int, int]], **header: Any) -> Frames:
        """The frame of a repair: the sum of these fragments (sample, fragment), shape (fragment_bytes,)."""
        listed = np.zeros(COMPONENTS, [("sample", ">u4"), ("fragment", ">u2")])
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
        dtype: np.dtype[np.void],
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
        header: dict[str, Any] = {
            "version": CODED_VERSION,
            "flags": int(flags),
            "job": self._job,
            "bift_id": bift_id,
            "bfir_id": self._bfir_id,
            "transmission": transmission,
            "fragments": fragments,
            "bit_string": bit_string(receivers, self._bits),
        }
        return pack_datagrams(
            dtype, {"fragment": 0, **header, **fields}, count, **self._src, dst_ip=dst_ip, dst_port=CODED_PORT, tos=0
        )


class Parsed:
    """The well-formed packets of a batch, in order of arrival each; copies, so the buffer may be used again."""

    def __init__(
        self, buffer: NDArray[np.uint8], lengths: NDArray[np.integer[Any]], job: int, bits: int, fragment_bytes: int
    ) -> None:
        def of_kind(dtype: np.dtype[np.void], kind: int) -> Frames:
            frames = well_formed_datagrams(buffer, lengths, dtype, CODED_PORT)
            flags = frames["flags"] & (CodedFlags.REPAIR | CodedFlags.REQUEST)
            return only(frames, (frames["version"] == CODED_VERSION) & (frames["job"] == job) & (flags == kind))

        self.scheduled = of_kind(scheduled_dtype(bits, fragment_bytes), 0)
        self.repairs = of_kind(repair_dtype(bits, fragment_bytes), CodedFlags.REPAIR)
        self.requests = of_kind(request_dtype(bits), CodedFlags.REQUEST)
        self.foreign = len(lengths) - len(self.scheduled) - len(self.repairs) - len(self.requests)
        """Frames that are none of these: malformed, or of another job."""
