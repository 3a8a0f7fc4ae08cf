"""What routers say of any bytes, against a second reading of the rules: p4src/include/ndn/parser.p4 in Python."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from experiments.systems.ndn.counts import DROP_REASONS
from tests.unit.ndn.one_router import ETHERNET, OneRouter, drops

MALFORMED = frozenset(DROP_REASONS[: DROP_REASONS.index("no_route")])
OPERATIONS = {b"insert": (3,), b"delete": (3,), b"distribute": (3, 5)}


class Malformed(Exception):
    """For the reason that is its argument."""


def reason_of(frame: bytes) -> str | None:
    """Why a frame of NDN is no packet; None: it is one."""
    try:
        _check(frame)
    except Malformed as reason:
        return str(reason)
    return None


def _two_bytes(frame: bytes, at: int) -> tuple[int, int]:
    """Looked at, wherever the packet ends."""
    if at + 2 > len(frame):
        raise Malformed("truncated")
    return frame[at], frame[at + 1]


def _length(frame: bytes, at: int, first: int) -> tuple[int, int]:
    """Of a TLV, and how many bytes type and length take."""
    if first >= 254:
        raise Malformed("not_shortest")
    if first < 253:
        return first, 2
    if at + 4 > len(frame):
        raise Malformed("truncated")
    length = int.from_bytes(frame[at + 2 : at + 4], "big")
    if length < 253:
        raise Malformed("not_shortest")
    return length, 4


def _check(frame: bytes) -> None:
    at = len(ETHERNET)
    kind, first = _two_bytes(frame, at)
    if kind not in (5, 6):
        raise Malformed("unknown_type")
    left, head = _length(frame, at, first)
    at += head
    if at + left > len(frame):
        raise Malformed("truncated")
    end = at + left
    if left < 2 or frame[at] != 7 or frame[at + 1] == 0:
        raise Malformed("no_name")
    if frame[at + 1] == 253 and left < 4:
        raise Malformed("nested_length")
    name_bytes, head = _length(frame, at, frame[at + 1])
    at += head
    if at + name_bytes > end:
        raise Malformed("nested_length")
    name_end = at + name_bytes
    components = []
    while at < name_end:
        if len(components) == 8:
            raise Malformed("too_many_components")
        which, size = _two_bytes(frame, at)
        if size > 32:
            raise Malformed("component_too_long")
        if at + 2 + size > name_end:
            raise Malformed("nested_length")
        components.append((which, frame[at + 2 : at + 2 + size]))
        at += 2 + size
    wrong = _rest_of_interest(frame, at, end) if kind == 5 else None
    allowed = OPERATIONS.get(components[0][1]) if components[0][0] == 8 else None
    if allowed is not None and len(components) not in allowed:
        raise Malformed("operation_name")
    if wrong is not None:
        raise Malformed(wrong)


def _rest_of_interest(frame: bytes, at: int, end: int) -> str | None:
    """What is wrong with a whole Interest without a nonce, or with a hop limit of 0."""
    order = {
        (0x21, 0): ("flag", {(0x12, 0), (0x0A, 4)}),
        (0x12, 0): ("flag", {(0x0A, 4)}),
        (0x0A, 4): ("nonce", {(0x0C, 1), (0x0C, 2), (0x0C, 4), (0x0C, 8), (0x22, 1)}),
        **{(0x0C, size): ("lifetime", {(0x22, 1)}) for size in (1, 2, 4, 8)},
        (0x22, 1): ("hop limit", set[tuple[int, int]]()),
    }
    expected = {(0x21, 0), (0x12, 0), (0x0A, 4)}
    nonce, hops = False, None
    while at < end and expected:
        head = _two_bytes(frame, at)
        if head not in expected:
            break
        if at + 2 + head[1] > end:
            raise Malformed("nested_length")
        what, expected = order[head]
        nonce |= what == "nonce"
        if what == "hop limit":
            hops = frame[at + 2]
        at += 2 + head[1]
    if not nonce:
        return "no_nonce"
    return "hop_limit" if hops == 0 else None


# ---- Packets whose lengths lie ----


@st.composite
def lengths(draw: st.DrawFn, true: int) -> bytes:
    """Mostly the true one, in its shortest form."""
    value = draw(st.one_of(st.just(true), st.just(true), st.just(true), st.integers(0, 300), st.integers(0, 0xFFFF)))
    wide = value >= 253 if draw(st.integers(0, 9)) else draw(st.booleans())
    if draw(st.integers(0, 40)) == 0:
        return bytes([draw(st.sampled_from([254, 255]))]) + value.to_bytes(4, "big")
    return b"\xfd" + value.to_bytes(2, "big") if wide else bytes([value % 253])


@st.composite
def tlvs(draw: st.DrawFn, kinds: st.SearchStrategy[int], values: st.SearchStrategy[bytes]) -> bytes:
    value = draw(values)
    return bytes([draw(kinds)]) + draw(lengths(len(value))) + value


COMPONENT_VALUES = st.one_of(
    st.binary(max_size=4), st.binary(min_size=30, max_size=34), st.sampled_from([*OPERATIONS, b"a"])
)
COMPONENTS = tlvs(st.sampled_from([8, 8, 8, 50, 54, 1]), COMPONENT_VALUES)
NAMES = tlvs(
    st.sampled_from([7, 7, 7, 7, 8]),
    st.one_of(st.lists(COMPONENTS, max_size=5), st.lists(COMPONENTS, min_size=7, max_size=10)).map(b"".join),
)
PARTS = st.one_of(
    st.sampled_from(
        [b"\x21\0", b"\x12\0", b"\x0a\4abcd", b"\x0c\1a", b"\x0c\2ab", b"\x0c\4abcd", b"\x0c\x08abcdefgh"]
    ),
    st.sampled_from([b"\x22\1\0", b"\x22\1\7", b"\x0a\4abcd", b"\x0a\4abcd", b"\x0a", b"\x21"]),
    st.binary(max_size=5),
)
PACKETS = tlvs(
    st.sampled_from([5, 5, 5, 6, 0x64]),
    st.tuples(NAMES, st.lists(PARTS, max_size=5).map(b"".join)).map(b"".join),
)


@st.composite
def frames(draw: st.DrawFn) -> bytes:
    packet = draw(PACKETS)
    cut = draw(st.one_of(st.just(len(packet)), st.integers(0, len(packet))))
    return ETHERNET + packet[:cut] + draw(st.sampled_from([b"", b"", b"\0", bytes(20)]))


@pytest.fixture(scope="module")
def router() -> Iterator[OneRouter]:
    with OneRouter(2) as made:
        yield made


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(frames(), min_size=1, max_size=40))
def test_malformed_packets_are_counted_for_their_reasons_and_no_others_are(
    router: OneRouter, sent: list[bytes]
) -> None:
    before = Counter(drops(router.counts()))
    router.exchange(2, *sent)
    found = Counter(drops(router.counts()))
    found.subtract(before)
    wanted = Counter(reason for frame in sent if (reason := reason_of(frame)) is not None)
    assert {key: count for key, count in found.items() if key in MALFORMED and count} == wanted
    # All others are dropped for want of a route, or of somebody who asked.
    assert sum(found.values()) >= len(sent) - found["port_beyond_16"]
