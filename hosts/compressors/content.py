"""Content: what a compressor makes of a gradient, codes for some of its values, and how packets carry it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradbed.formats.encoding import PAYLOAD_BYTES, Form


@dataclass(frozen=True)
class Content:
    """The value at places[i] stands for codes[i] * unit; all others for 0."""

    length: int
    """Length of the gradient."""
    codes: NDArray[Any]
    """Integers, each fits `width_bits` as two's complement; of a single bit, -1 and 1."""
    width_bits: int = 32
    unit: int = 1
    indices: NDArray[np.intp] | None = None
    """Positions of the codes, ascending, shape (codes,); None: those from `start` on without a gap."""
    start: int = 0
    drawn: NDArray[np.intp] | None = None
    """Places, ascending, that the reader knows; the positions of the codes are among these, or among all."""

    @property
    def positions(self) -> NDArray[np.intp]:
        """Return the positions of all codes, in `drawn` or in the gradient."""
        if self.indices is None:
            return np.arange(self.start, self.start + len(self.codes))
        return self.indices

    @property
    def places(self) -> NDArray[np.intp]:
        """Return the places of all codes in the gradient."""
        return self.positions if self.drawn is None else self.drawn[self.positions]

    @property
    def values(self) -> NDArray[np.int64]:
        """Return what the codes stand for."""
        return self.codes * np.int64(self.unit)

    def before(self, end: int) -> Content:
        """The first codes alone."""
        return replace(self, codes=self.codes[:end], indices=None if self.indices is None else self.indices[:end])

    def after(self, first: int) -> Content:
        """Return the content without the first codes."""
        indices = None if self.indices is None else self.indices[first:]
        return replace(self, codes=self.codes[first:], indices=indices, start=self.start + first)

    def chosen(self, which: NDArray[np.intp]) -> Content:
        """Return these codes alone, by their place among the codes, ascending."""
        return replace(self, codes=self.codes[which], indices=self.positions[which])

    def with_more(self, later: Content) -> Content:
        """Append the codes of another content of the same gradient, whose positions are all behind these."""
        codes = np.concatenate([self.codes, later.codes])
        return replace(self, codes=codes, indices=np.concatenate([self.positions, later.positions]))

    def decoded(self) -> NDArray[np.int64]:
        """The whole gradient that it stands for, shape (length,)."""
        gradient = np.zeros(self.length, np.int64)
        gradient[self.places] = self.values
        return gradient


# ---- Parts of a content in packets: each can be read without the others ----


INDEX_BYTES = 4
WIDTHS = (1, 4, 8, 32, 64)
"""Bits of a code."""


@dataclass(frozen=True)
class Written:
    """Packets, one row each: what their headers tell, and payloads, of which the first payload_bytes count."""

    form: Form
    width_bits: int
    unit: int
    first: NDArray[np.int64]
    """The place of the stretch's first value."""
    span: NDArray[np.int64]
    """Length of the stretch; 0 in the coordinate form."""
    codes: NDArray[np.int64]
    """Number of codes."""
    ends: NDArray[np.int64]
    """Number of codes in this packet and all before it, but for the dense form's zeros."""
    payload: NDArray[np.uint8]
    payload_bytes: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.first)


def written(content: Content, header_bytes: int) -> Written:
    """Write a content in its shortest form. header_bytes: of a packet beside its payload."""
    if content.indices is None or not len(content.codes):
        return _dense(replace(content, indices=None))
    bitmap, coordinate, dense = _bitmap_packets(content), _coordinate_packets(content), _dense_packets(content)
    forms = [(bitmap, _bitmap), (coordinate, _coordinate)]
    if content.width_bits > 1:
        forms.insert(0, (dense, _dense))
    _, write = min(forms, key=lambda form: form[0].sum() + header_bytes * len(form[0]))
    return write(content)


def wire_bytes(made: Written, header_bytes: int) -> int:
    """Return the bytes of all packets."""
    return int(made.payload_bytes.sum()) + header_bytes * len(made)


def read(
    form: int, width_bits: int, unit: int, first: int, span: int, codes: int, payload: NDArray[np.uint8], length: int
) -> tuple[NDArray[np.intp] | slice, NDArray[np.int64]] | None:
    """Positions and values of a packet for a content of `length` positions; None if it makes no sense."""
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
    """Write the content with zeros where positions are left out."""
    start, codes = content.start, content.codes
    if content.indices is not None:
        start = int(content.indices[0])
        codes = np.zeros(int(content.indices[-1]) + 1 - start, content.codes.dtype)
        codes[content.indices - start] = content.codes
    in_one = 8 * PAYLOAD_BYTES // content.width_bits
    offsets, counts = _evenly(len(codes), in_one)
    ends = offsets + counts
    if content.indices is not None:
        ends = np.searchsorted(content.indices, start + ends)
    payload, payload_bytes = np.zeros((len(counts), PAYLOAD_BYTES), np.uint8), _code_bytes(counts, content.width_bits)
    _fill(payload, codes, in_one, content.width_bits, 0)
    return Written(
        Form.DENSE,
        content.width_bits,
        content.unit,
        start + offsets,
        counts,
        counts,
        ends.astype(np.int64),
        payload,
        payload_bytes,
    )


def _dense_packets(content: Content) -> NDArray[np.int64]:
    """Bytes of each payload."""
    assert content.indices is not None
    _, counts = _evenly(int(content.indices[-1] - content.indices[0]) + 1, 8 * PAYLOAD_BYTES // content.width_bits)
    return _code_bytes(counts, content.width_bits)


def _coordinate(content: Content) -> Written:
    assert content.indices is not None
    in_one = _coordinates_in_one(content.width_bits)
    offsets, counts = _evenly(len(content.codes), in_one)
    payload = np.zeros((len(counts), PAYLOAD_BYTES), np.uint8)
    indices = content.indices.astype(">u4").view(np.uint8)
    _fill(payload, indices, INDEX_BYTES * in_one, 8, 0)
    _fill(payload, content.codes, in_one, content.width_bits, INDEX_BYTES * in_one)
    last = content.codes[offsets[-1] :]
    if len(last) < in_one:
        payload[-1, INDEX_BYTES * len(last) :] = 0
        _fill(payload[-1:], last, len(last), content.width_bits, INDEX_BYTES * len(last))
    return Written(
        Form.COORDINATE,
        content.width_bits,
        content.unit,
        content.indices[offsets].astype(np.int64),
        np.zeros(len(counts), np.int64),
        counts,
        offsets + counts,
        payload,
        INDEX_BYTES * counts + _code_bytes(counts, content.width_bits),
    )


def _coordinate_packets(content: Content) -> NDArray[np.int64]:
    _, counts = _evenly(len(content.codes), _coordinates_in_one(content.width_bits))
    return INDEX_BYTES * counts + _code_bytes(counts, content.width_bits)


def _coordinates_in_one(width_bits: int) -> int:
    in_one = PAYLOAD_BYTES * 8 // (8 * INDEX_BYTES + width_bits)
    while INDEX_BYTES * in_one + code_bytes(in_one, width_bits) > PAYLOAD_BYTES:
        in_one -= 1
    return in_one


def _bitmap(content: Content) -> Written:
    indices, width_bits = content.indices, content.width_bits
    assert indices is not None
    starts, ends, spans = _bitmap_stretches(indices, width_bits)
    bitmap_bytes = -(-spans // 8)
    lengths = bitmap_bytes + _code_bytes(ends - starts, width_bits)
    payload = np.zeros((len(starts), PAYLOAD_BYTES), np.uint8)
    for packet, row in enumerate(payload):
        part = slice(starts[packet], ends[packet])
        bits = np.zeros(spans[packet], np.uint8)
        bits[indices[part] - indices[starts[packet]]] = 1
        row[: bitmap_bytes[packet]] = np.packbits(bits)
        row[bitmap_bytes[packet] : lengths[packet]] = _write_codes(content.codes[part][None], width_bits)[0]
    first = indices[starts].astype(np.int64)
    return Written(Form.BITMAP, width_bits, content.unit, first, spans, ends - starts, ends, payload, lengths)


def _bitmap_packets(content: Content) -> NDArray[np.int64]:
    assert content.indices is not None
    starts, ends, spans = _bitmap_stretches(content.indices, content.width_bits)
    return -(-spans // 8) + _code_bytes(ends - starts, content.width_bits)


def _bitmap_stretches(
    indices: NDArray[np.intp], width_bits: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """First code, last code and one more, and span of each packet: its stretch begins at a position that is set, and
    is as long as fits."""
    # Bits that are needed up to each code, from where the first one lies; whole bytes cost 14 bits more at most.
    needed = np.arange(0, width_bits * len(indices), width_bits)
    needed += indices - indices[0]
    starts, place = [0], 0
    while True:
        place = int(np.searchsorted(needed, needed[place] + 8 * PAYLOAD_BYTES - 14 - width_bits, side="right"))
        if place >= len(indices):
            break
        starts.append(place)
    ends = np.array([*starts[1:], len(indices)], np.int64)
    spans = indices[ends - 1] + 1 - indices[starts]
    return np.array(starts, np.int64), ends, spans.astype(np.int64)


def _evenly(total: int, in_one: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Offsets and counts of packets."""
    offsets = np.arange(0, total, in_one, dtype=np.int64)
    return offsets, np.minimum(in_one, total - offsets)


def _fill(payload: NDArray[np.uint8], codes: NDArray[Any], in_one: int, width_bits: int, at: int) -> None:
    """Codes into each packet from that byte on, as many as fit one; none left over, the last has fewer."""
    whole, rest = divmod(len(codes), in_one) if in_one else (0, 0)
    if whole:
        rows = _write_codes(codes[: whole * in_one].reshape(whole, in_one), width_bits)
        payload[:whole, at : at + rows.shape[1]] = rows
    if rest:
        (row,) = _write_codes(codes[whole * in_one :][None], width_bits)
        payload[whole, at : at + len(row)] = row


def _code_bytes(codes: NDArray[np.int64], width_bits: int) -> NDArray[np.int64]:
    return -(-codes * width_bits // 8)


def _write_codes(codes: NDArray[Any], width_bits: int) -> NDArray[np.uint8]:
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
