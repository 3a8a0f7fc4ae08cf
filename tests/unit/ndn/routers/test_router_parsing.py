"""What routers say of any bytes, against a second reading of the rules: p4src/include/ndn/parser.p4 in Python."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TypeVar

import pytest

from gradbed.experiments.systems.ndn.metrics import DROP_REASONS
from tests.unit.ndn.routers.one_router import ETHERNET, OneRouter, drops

MALFORMED = frozenset((*DROP_REASONS[: DROP_REASONS.index("no_route")], "link_header"))
T = TypeVar("T")

FRAMES = 10_000
BATCH = 500
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
    if kind == 100:
        kind, at, end = _fragment(frame, at, first)
    else:
        if kind not in (5, 6):
            raise Malformed("unknown_type")
        left, head = _length(frame, at, first)
        at += head
        if at + left > len(frame):
            raise Malformed("truncated")
        end = at + left
    left = end - at
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
    if wrong is not None and wrong != "hop_limit":
        raise Malformed(wrong)
    if allowed is not None and not (len(components) in allowed and _ends_with_numbers(components)):
        raise Malformed("operation_name")
    if wrong is not None:
        raise Malformed(wrong)


def _fragment(frame: bytes, at: int, first: int) -> tuple[int, int, int]:
    """Of a packet in an LpPacket, which has nothing else: its type, and where what is in it begins and ends."""
    length, head = _length(frame, at, first)
    at += head
    end = at + length
    if end > len(frame):
        raise Malformed("truncated")
    if end - at < 2 or frame[at] != 80:
        raise Malformed("link_header")
    kind = 0
    for allowed in ((80,), (5, 6)):
        if end - at < 2:
            raise Malformed("nested_length")
        kind = frame[at]
        if kind not in allowed:
            raise Malformed("unknown_type")
        if frame[at + 1] == 253 and end - at < 4:
            raise Malformed("nested_length")
        length, head = _length(frame, at, frame[at + 1])
        at += head
        if at + length != end:
            raise Malformed("nested_length")
    return kind, at, end


def _ends_with_numbers(components: list[tuple[int, bytes]]) -> bool:
    """Those of a push do: version and segment."""
    numbers = components[3:]
    return [kind for kind, _ in numbers] == [54, 50][: len(numbers)] and all(len(v) in (1, 2, 4) for _, v in numbers)


PLACES = [{(0x21, 0)}, {(0x12, 0)}, {(0x0A, 4)}, {(0x0C, size) for size in (1, 2, 4, 8)}, {(0x22, 1)}]
"""Elements of an Interest that routers look at, in their order."""
OTHERS = 3


def _rest_of_interest(frame: bytes, at: int, end: int) -> str | None:
    """What is wrong with the elements after the name, or with a hop limit of 0."""
    place, hops = 0, None
    while at < end:
        head = _two_bytes(frame, at)
        found = next((number for number in range(place, len(PLACES)) if head in PLACES[number]), None)
        if found is None:
            break
        if at + 2 + head[1] > end:
            raise Malformed("nested_length")
        if found == 4:
            hops = frame[at + 2]
        place = found + 1
        at += 2 + head[1]
    if place < len(PLACES) and at < end and frame[at] == 0x22:
        return "bad_element"
    for number in range(OTHERS):
        if at >= end:
            break
        kind, first = _two_bytes(frame, at)
        if at + 2 > end:
            raise Malformed("nested_length")
        if kind < 32 or kind % 2 or kind >= 253:
            return "bad_element"
        length, size = _length(frame, at, first)
        if at + size + length > end:
            raise Malformed("nested_length")
        at += size + length
        if (first == 253 or number == OTHERS - 1) and at < end:
            return "bad_element"
    return "hop_limit" if hops == 0 else None


# ---- Packets at the limits, and packets whose lengths lie ----


class Frames:
    """Random ones. Most have one thing wrong at most, so that every rule is met with all others kept."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def __iter__(self) -> Iterator[bytes]:
        while True:
            packet = self._tlv(self._one([5, 5, 5, 5, 6, 6, 0x64, 0x63], 0.95), self._name() + self._parts())
            end = self._random.randrange(len(packet)) if self._rarely(0.1) else len(packet)
            packet = packet[:end]
            if self._rarely(0.1):
                packet = self._tlv(100, self._tlv(self._one([80, 81], 0.9), packet))
            yield ETHERNET + packet + self._one([b"", b"", b"\0", bytes(20)])

    def _rarely(self, probability: float) -> bool:
        return self._random.random() < probability

    def _one(self, values: Sequence[T], usual: float = 0.0) -> T:
        """The first with the probability `usual`, or any of them."""
        return values[0] if self._random.random() < usual else self._random.choice(values)

    def _length(self, true: int) -> bytes:
        """The true one in its shortest form, or one that is close by, or another form."""
        value = true
        if self._rarely(0.03):
            value = max(0, self._one([true - 4, true - 2, true - 1, true + 1, true + 2, true + 4, 0, 252, 253, 300]))
        if self._rarely(0.005):
            return self._one([b"\xfe", b"\xff\0\0\0\0"]) + value.to_bytes(4, "big")
        if value >= 253 or self._rarely(0.005):
            return b"\xfd" + value.to_bytes(2, "big")
        return bytes([value])

    def _tlv(self, kind: int, value: bytes) -> bytes:
        return bytes([kind]) + self._length(len(value)) + value

    def _name(self) -> bytes:
        kind = self._one([7, 8, 0], 0.97)
        if self._rarely(0.3):
            # About as long as makes a length of three bytes needed.
            sizes = self._random.choices(range(28, 33), k=8)
        else:
            sizes = [self._one([*range(5), 31, 32]) for _ in range(self._one([1, 2, 3, 4, 5, 7, 8, 0]))]
        if self._rarely(0.05):
            sizes += self._one([[0], [0, 0], [32], [5]])
        if sizes and self._rarely(0.05):
            sizes[self._random.randrange(len(sizes))] = 33
        components = [self._tlv(self._one([8, 50, 54, 1], 0.5), self._random.randbytes(size)) for size in sizes]
        if components and self._rarely(0.3):
            components[0] = self._tlv(self._one([8, 50], 0.9), self._one(list(OPERATIONS)))
            if len(components) == 5:
                components[3:] = [
                    self._tlv(self._one([kind, 8], 0.9), bytes(self._one([1, 2, 4, 8]))) for kind in (54, 50)
                ]
        return self._tlv(kind, b"".join(components))

    def _parts(self) -> bytes:
        """What follows an Interest's name: in order, some missing, some twice, some cut."""
        order: list[tuple[list[bytes], float]] = [
            ([b"\x21\0"], 0.2),
            ([b"\x12\0"], 0.2),
            ([b"\x0a\4" + self._random.randbytes(4)], 0.97),
            ([b"\x0c" + self._length(size) + bytes(size) for size in (1, 2, 4, 8, 3)], 0.4),
            ([b"\x22\1\7", b"\x22\1\7", b"\x22\1\0", b"\x22\2\7\7"], 0.4),
            (
                [
                    self._tlv(self._one([0x24, 0x2C, 0x26, 0x25, 0x0C]), bytes(self._one([0, 3, 40])))
                    for _ in range(2)
                ],
                0.15,
            ),
            ([self._tlv(self._one([0x2C, 0x22, 0xFC]), bytes(self._one([0, 252, 300])))], 0.1),
            ([self._tlv(0x2E, bytes(self._one([0, 32, 300])))], 0.1),
            ([self._tlv(0x40, b"")], 0.05),
        ]
        parts = [self._one(forms) for forms, probability in order if self._rarely(probability)]
        if parts and self._rarely(0.1):
            at = self._random.randrange(len(parts))
            parts[at] = self._one([parts[at][:1], parts[at][:-1], 2 * parts[at], self._random.randbytes(3)])
        if self._rarely(0.05):
            self._random.shuffle(parts)
        return b"".join(parts)


def test_frames_come_to_all_rules_and_limits() -> None:
    frames = list(itertools.islice(Frames(0), FRAMES))
    by_reason = Counter(map(reason_of, frames))
    assert set(by_reason) == {None, *MALFORMED} - {"port_beyond_16"}
    assert min(by_reason.values()) >= FRAMES // 500
    assert by_reason[None] > FRAMES // 5
    # A length of three bytes of the packet alone, of its name, too.
    good = [frame for frame in frames if reason_of(frame) is None]
    assert sum(frame[15] == 253 and frame[19] != 253 for frame in good) > 20
    assert sum(frame[15] == 253 and frame[19] == 253 for frame in good) > 20


@pytest.fixture(scope="module")
def router() -> Iterator[OneRouter]:
    with OneRouter(2) as made:
        yield made


def reasons_counted(router: OneRouter, *sent: bytes) -> Counter[str | None]:
    """By the router, of malformed packets; None: all other frames."""
    before = Counter(drops(router.counts()))
    out = router.exchange(2, *sent)
    found = Counter(drops(router.counts()))
    found.subtract(before)
    # Packets are dropped for want of a route, or of somebody who asked; a repeated insertion may be answered. Of
    # what is dropped, Interests without a route or with a known nonce come back as Nacks.
    left = [frame[len(ETHERNET)] for frames in out.values() for frame in frames]
    assert sum(found.values()) + len(left) - left.count(100) == len(sent)
    assert left.count(100) <= found["no_route"] + found["duplicate"]
    malformed = {key: count for key, count in found.items() if key in MALFORMED and count}
    return Counter({**malformed, None: len(sent) - sum(malformed.values())})


def check(router: OneRouter, seed: int, batches: int) -> None:
    frames = iter(Frames(seed))
    for _ in range(batches):
        batch = list(itertools.islice(frames, BATCH))
        if reasons_counted(router, *batch) == Counter(map(reason_of, batch)):
            continue
        for frame in batch:
            assert reasons_counted(router, frame) == Counter([reason_of(frame)]), frame.hex(" ")
        pytest.fail("the router counts some frames otherwise when they come together")


def test_malformed_packets_are_counted_for_their_reasons_and_no_others_are(router: OneRouter) -> None:
    check(router, 0, FRAMES // BATCH)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(1, 11))
def test_many_more_of_them(router: OneRouter, seed: int) -> None:
    check(router, seed, 10 * FRAMES // BATCH)
