"""The three forms in which contents travel, byte for byte and packet by packet."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from gradbed.formats.encoding import PAYLOAD_BYTES, Form
from gradbed.hosts.compressors.content import Content, Written, code_bytes, read, wire_bytes, written

HEADER_BYTES = 72


def content(values: int, kept: int, width_bits: int = 32, seed: int = 1) -> Content:
    generator = np.random.default_rng(seed)
    most = 1 << (width_bits - 1)
    codes = generator.integers(-most, most, kept) if width_bits > 1 else generator.choice([-1, 1], kept)
    indices = np.sort(generator.choice(values, kept, replace=False))
    return Content(values, codes, width_bits, 3, indices)


@pytest.mark.parametrize(
    ("made", "form", "expected"),
    [
        (Content(5000, np.array([1, -2]), 32, 3, np.array([2, 70])), 2, "00000002 00000046 00000001 fffffffe"),
        (Content(5000, np.array([1, -2]), 4, 3, np.array([2, 700])), 2, "00000002 000002bc 1e"),
        (Content(5000, np.array([1, -2, 5]), 8, 3, np.array([2, 5, 12])), 1, "9020 01fe05"),
        (Content(5000, np.array([1, -1, -1]), 1, 3, np.array([2, 5, 12])), 1, "9020 80"),
        (Content(3, np.array([1 << 32, -1, 0]), 64, 3), 0, "0000000100000000 ffffffffffffffff 0000000000000000"),
    ],
)
def test_payloads_byte_for_byte(made: Content, form: int, expected: str) -> None:
    """Places, or a bit for each place from the first to the last; then codes in two's complement; all big-endian."""
    found = written(made, HEADER_BYTES)
    assert found.form == form
    assert found.payload[0, : found.payload_bytes[0]].tobytes() == bytes.fromhex(expected)


def packet(made: Written, number: int) -> tuple[int, int, int, int, int, int, NDArray[np.uint8]]:
    """The arguments of `read` but for the length."""
    payload = made.payload[number, : made.payload_bytes[number]]
    header = (int(made.first[number]), int(made.span[number]), int(made.codes[number]))
    return (made.form, made.width_bits, made.unit, *header, payload)


def put_together(made: Written, length: int) -> NDArray[np.int64]:
    found = np.zeros(length, np.int64)
    for number in range(len(made)):
        part = read(*packet(made, number), length)
        assert part is not None
        found[part[0]] += part[1]
    return found


@pytest.mark.parametrize("width_bits", [1, 4, 8, 32, 64])
@pytest.mark.parametrize("kept", [1, 2, 100, 1601, 5000, 40_000, 50_000])
def test_what_was_written_is_read(kept: int, width_bits: int) -> None:
    sparse = content(50_000, kept, min(width_bits, 62))
    sparse = Content(sparse.length, sparse.codes, width_bits, 3, sparse.indices)
    made = written(sparse, HEADER_BYTES)
    assert np.array_equal(put_together(made, 50_000), sparse.decoded())
    assert (made.payload_bytes <= PAYLOAD_BYTES).all() and (made.payload_bytes > 0).all()


@pytest.mark.parametrize("width_bits", [1, 4, 8, 32, 64])
def test_a_dense_content_is_written_as_it_is(width_bits: int) -> None:
    codes = content(7001, 7001, min(width_bits, 62)).codes
    made = written(Content(9000, codes, width_bits, 2, start=1999), HEADER_BYTES)
    assert made.form == Form.DENSE and int(made.payload_bytes.sum()) == code_bytes(7001, width_bits)
    found = put_together(made, 9000)
    assert not found[:1999].any() and np.array_equal(found[1999:], 2 * codes)


@pytest.mark.parametrize(
    ("kept", "form"), [(100, Form.COORDINATE), (1500, Form.COORDINATE), (1700, Form.BITMAP), (47_000, Form.BITMAP)]
)
def test_the_shortest_form_is_taken(kept: int, form: Form) -> None:
    """Of 50,000 places: a bit each is as much as four bytes for each of 1,562."""
    made = written(content(50_000, kept), HEADER_BYTES)
    assert made.form == form
    index_bytes = int(made.payload_bytes.sum()) - 4 * kept
    assert index_bytes == pytest.approx(4 * kept if form == Form.COORDINATE else 50_000 / 8, rel=0.02)


def test_nearly_all_values_are_written_dense() -> None:
    assert written(content(50_000, 49_500), HEADER_BYTES).form == Form.DENSE


def test_what_a_packet_ends_is_told() -> None:
    for kept in (100, 5000, 49_500):
        sparse = content(50_000, kept)
        made = written(sparse, HEADER_BYTES)
        assert made.ends[-1] == kept and (np.diff(made.ends) > 0).all()
        first = Content(50_000, sparse.codes[: made.ends[0]], 32, 3, sparse.places[: made.ends[0]])
        part = read(*packet(made, 0), 50_000)
        assert part is not None
        found = np.zeros(50_000, np.int64)
        found[part[0]] = part[1]
        assert np.array_equal(found, first.decoded())


def test_headers_count() -> None:
    made = written(content(50_000, 5000), HEADER_BYTES)
    assert wire_bytes(made, HEADER_BYTES) == int(made.payload_bytes.sum()) + HEADER_BYTES * len(made)


def test_nothing_is_no_packet() -> None:
    assert len(written(Content(5, np.zeros(0, np.int64)), HEADER_BYTES)) == 0


@pytest.mark.parametrize(
    "change",
    [
        {"form": 3},
        {"width_bits": 7},
        {"codes": 351},
        {"length": 5},
        {"payload": np.zeros(7, np.uint8)},
    ],
)
@pytest.mark.parametrize("kept", [100, 5000, 49_500])
def test_a_packet_that_makes_no_sense_is_refused(change: dict[str, object], kept: int) -> None:
    names = ("form", "width_bits", "unit", "first", "span", "codes", "payload")
    good = dict(zip(names, packet(written(content(50_000, kept), HEADER_BYTES), 0), strict=True))
    assert read(**good, length=50_000) is not None  # type: ignore[arg-type]
    assert read(**{**good, "length": 50_000, **change}) is None  # type: ignore[arg-type]


def test_places_that_come_twice_are_refused() -> None:
    payload = np.array([5, 5], ">u4").view(np.uint8)
    assert read(Form.COORDINATE, 8, 1, 0, 0, 2, np.concatenate([payload, [1, 2]]).astype(np.uint8), 10) is None
