"""How a content is written into packets: each can be read without the others.

Three forms: dense (the codes of a stretch of the gradient, those left out as zeros), bitmap (a bit for each place of
the stretch, and the codes of those that are set), coordinate (32 bits for each place, and its code). The shortest is
taken, headers counted: an index is not free. With 32-bit codes that is coordinate up to one value in 32, then bitmap,
and dense from 31 in 32 on. All is big-endian.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from hosts.compressors.content import Content

PAYLOAD_BYTES = 1408
"""Of a packet at most."""
INDEX_BYTES = 4
WIDTHS = (1, 4, 8, 32, 64)
"""Bits of a code."""


class Form(IntEnum):
    """In the order in which the shorter of two equally long ones is taken."""

    DENSE = 0
    BITMAP = 1
    COORDINATE = 2


@dataclass(frozen=True)
class Written:
    """Packets, one row each: what their headers tell, and payloads, of which the first payload_bytes count.

    first: the place of the stretch's first value. span: how long it is; of the coordinate form 0. codes: how many.
    ends: codes of this packet and all before it, but for the dense form's zeros.
    """

    form: Form
    width_bits: int
    unit: int
    first: NDArray[np.int64]
    span: NDArray[np.int64]
    codes: NDArray[np.int64]
    ends: NDArray[np.int64]
    payload: NDArray[np.uint8]
    payload_bytes: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.first)


def written(content: Content, header_bytes: int) -> Written:
    """In the shortest form. header_bytes: of a packet beside its payload."""
    if content.indices is None or not len(content.codes):
        return _dense(Content(content.length, content.codes, content.width_bits, content.unit, start=content.start))
    forms = [_bitmap, _coordinate]
    if content.width_bits > 1:
        forms.insert(0, _dense)
    return min((form(content) for form in forms), key=lambda made: wire_bytes(made, header_bytes))


def wire_bytes(made: Written, header_bytes: int) -> int:
    """Of all packets."""
    return int(made.payload_bytes.sum()) + header_bytes * len(made)


def read(
    form: int, width_bits: int, unit: int, first: int, span: int, codes: int, payload: NDArray[np.uint8], length: int
) -> tuple[NDArray[np.intp] | slice, NDArray[np.int64]] | None:
    """Places and values of a packet for a content of `length` values; None if it makes no sense."""
    if width_bits not in WIDTHS or form not in Form.__members__.values():
        return None
    index_bytes = {Form.DENSE: 0, Form.BITMAP: -(-span // 8), Form.COORDINATE: INDEX_BYTES * codes}[Form(form)]
    if len(payload) != index_bytes + code_bytes(codes, width_bits):
        return None
    values = _read_codes(payload[index_bytes:], codes, width_bits) * np.int64(unit)
    if form == Form.DENSE:
        return (slice(first, first + codes), values) if span == codes and first + codes <= length else None
    if form == Form.BITMAP:
        places = first + np.flatnonzero(np.unpackbits(payload[:index_bytes], count=span))
    else:
        places = payload[:index_bytes].view(">u4").astype(np.intp)
    if len(places) != codes or (codes and (places.max() >= length or (np.diff(places) <= 0).any())):
        return None
    return places, values


def code_bytes(codes: int, width_bits: int) -> int:
    return -(-codes * width_bits // 8)


def _dense(content: Content) -> Written:
    """With zeros where places are left out."""
    start, codes = content.start, content.codes
    if content.indices is not None:
        start = int(content.indices[0])
        codes = np.zeros(int(content.indices[-1]) + 1 - start, np.int64)
        codes[content.indices - start] = content.codes
    in_one = 8 * PAYLOAD_BYTES // content.width_bits
    packets = -(-len(codes) // in_one)
    padded = np.zeros(packets * in_one, np.int64)
    padded[: len(codes)] = codes
    offsets = in_one * np.arange(packets, dtype=np.int64)
    counts = np.minimum(in_one, len(codes) - offsets)
    ends = offsets + counts
    if content.indices is not None:
        ends = np.searchsorted(content.indices, start + ends)
    return Written(
        Form.DENSE,
        content.width_bits,
        content.unit,
        start + offsets,
        counts,
        counts,
        ends.astype(np.int64),
        _write_codes(padded.reshape(packets, in_one), content.width_bits),
        -(-counts * content.width_bits // 8),
    )


def _coordinate(content: Content) -> Written:
    assert content.indices is not None
    in_one = PAYLOAD_BYTES * 8 // (8 * INDEX_BYTES + content.width_bits)
    while INDEX_BYTES * in_one + code_bytes(in_one, content.width_bits) > PAYLOAD_BYTES:
        in_one -= 1
    total = len(content.codes)
    packets = -(-total // in_one)
    offsets = in_one * np.arange(packets, dtype=np.int64)
    counts = np.minimum(in_one, total - offsets)
    payload = np.zeros((packets, PAYLOAD_BYTES), np.uint8)
    lengths = INDEX_BYTES * counts + -(-counts * content.width_bits // 8)
    for row, offset, count, length in zip(payload, offsets, counts, lengths, strict=True):
        part = slice(offset, offset + count)
        row[: INDEX_BYTES * count] = content.indices[part].astype(">u4").view(np.uint8)
        row[INDEX_BYTES * count : length] = _write_codes(content.codes[part][None], content.width_bits)[0]
    return Written(
        Form.COORDINATE,
        content.width_bits,
        content.unit,
        content.indices[offsets].astype(np.int64),
        np.zeros(packets, np.int64),
        counts,
        offsets + counts,
        payload,
        lengths,
    )


def _bitmap(content: Content) -> Written:
    """Each packet's stretch begins at a place that is set, and is as long as fits."""
    indices, width_bits = content.indices, content.width_bits
    assert indices is not None
    # Bits that are needed up to each code, from where the first one lies; whole bytes cost 14 bits more at most.
    needed = indices - indices[0] + width_bits * np.arange(len(indices))
    starts, place = [0], 0
    while True:
        place = int(np.searchsorted(needed, needed[place] + 8 * PAYLOAD_BYTES - 14 - width_bits, side="right"))
        if place >= len(indices):
            break
        starts.append(place)
    ends = np.array([*starts[1:], len(indices)], np.int64)
    counts = ends - np.array(starts)
    first = indices[starts].astype(np.int64)
    spans = indices[ends - 1] + 1 - first
    bitmap_bytes = -(-spans // 8)
    lengths = bitmap_bytes + -(-counts * width_bits // 8)
    payload = np.zeros((len(starts), PAYLOAD_BYTES), np.uint8)
    for packet, row in enumerate(payload):
        part = slice(starts[packet], ends[packet])
        bits = np.zeros(spans[packet], np.uint8)
        bits[indices[part] - first[packet]] = 1
        row[: bitmap_bytes[packet]] = np.packbits(bits)
        row[bitmap_bytes[packet] : lengths[packet]] = _write_codes(content.codes[part][None], width_bits)[0]
    return Written(Form.BITMAP, width_bits, content.unit, first, spans, counts, ends, payload, lengths)


def _write_codes(codes: NDArray[np.int64], width_bits: int) -> NDArray[np.uint8]:
    """Rows of codes as rows of bytes."""
    if width_bits == 1:
        return np.packbits(codes > 0, axis=1)
    if width_bits == 4:
        nibbles = (codes & 15).astype(np.uint8)
        if nibbles.shape[1] % 2:
            nibbles = np.pad(nibbles, ((0, 0), (0, 1)))
        pairs: NDArray[np.uint8] = (nibbles[:, ::2] << np.uint8(4)) | nibbles[:, 1::2]
        return pairs
    typed = np.ascontiguousarray(codes.astype(f">i{width_bits // 8}"))
    return typed.view(np.uint8).reshape(len(codes), codes.shape[1] * width_bits // 8)


def _read_codes(payload: NDArray[np.uint8], count: int, width_bits: int) -> NDArray[np.int64]:
    if width_bits == 1:
        return 2 * np.unpackbits(payload, count=count).astype(np.int64) - 1
    if width_bits == 4:
        nibbles = np.stack([payload >> 4, payload & 15], axis=1).reshape(-1)[:count].astype(np.int64)
        return nibbles - 16 * (nibbles > 7)
    return np.ascontiguousarray(payload).view(f">i{width_bits // 8}").astype(np.int64)
