"""A router and programs of others: prefixes, digests and NDNLPv2, as python-ndn, ndn-tools and NFD have them."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256

import pytest
from ndn.encoding import (
    InterestParam,
    MetaInfo,
    NackReason,
    Name,
    make_data,
    make_interest,
    parse_data,
    parse_lp_packet_v2,
    parse_tl_num,
)
from ndn.security import DigestSha256Signer, NullSigner

from gradbed.formats.datagram import ETHERNET_BYTES
from tests.unit.ndn.routers.one_router import ETHERNET, TICK_US, OneRouter, drops, gradient_frame, ports

PRODUCER = 2


@pytest.fixture(scope="module")
def shared() -> Iterator[OneRouter]:
    with OneRouter(4, {"/a": PRODUCER}) as made:
        yield made


@pytest.fixture
def router() -> Iterator[OneRouter]:
    with OneRouter(4, {"/a": PRODUCER}) as made:
        yield made


def asked(uri: str | list[bytes], nonce: int, **options: object) -> bytes:
    return ETHERNET + bytes(make_interest(uri, InterestParam(nonce=nonce, **options)))  # type: ignore[arg-type]


def data(uri: str, content: bytes = b"content") -> bytes:
    """As ndnputchunks and ndnpoke have it: with MetaInfo, signed."""
    return ETHERNET + bytes(make_data(uri, MetaInfo(freshness_period=10_000), content, DigestSha256Signer()))


def linked(frame: bytes) -> bytes:
    """In an LpPacket with a bare fragment (NDNLPv2: LpPacket 100, Fragment 80)."""
    fragment = tlv(80, frame[ETHERNET_BYTES:])
    return ETHERNET + tlv(100, fragment)


def tlv(kind: int, value: bytes) -> bytes:
    length = bytes([len(value)]) if len(value) < 253 else b"\xfd" + len(value).to_bytes(2, "big")
    return bytes([kind]) + length + value


def told(router: OneRouter, before: dict[str, int]) -> dict[str, int]:
    after = drops(router.counts())
    return {key: after[key] - before.get(key, 0) for key in after if after[key] != before.get(key, 0)}


# ---- CanBePrefix ----


def test_a_version_is_discovered(router: OneRouter) -> None:
    """ndncatchunks asks for /a/file/32=metadata, any longer and fresh; the answer has a version and a segment."""
    uri = "/a/file/32=metadata"
    assert ports(router.exchange(1, asked(uri, 1, can_be_prefix=True, must_be_fresh=True))) == [PRODUCER]
    answer = data(f"{uri}/54=%01/50=%00")
    assert router.exchange(PRODUCER, answer) == {1: [answer]}
    assert router.exchange(PRODUCER, answer) == {}, "one Data for an Interest"


@pytest.mark.parametrize("asked_for", range(1, 9))
def test_every_longer_name_answers_a_prefix(shared: OneRouter, asked_for: int) -> None:
    parts = [f"p{asked_for}x{n}" for n in range(8)]
    for answered in range(1, 9):
        names = [
            "/a" + "".join(f"/{part}{answered}" for part in parts[: length - 1]) for length in (asked_for, answered)
        ]
        before = drops(shared.counts())
        shared.exchange(1, asked(names[0], 100 * asked_for + answered, can_be_prefix=True, lifetime=100))
        out = shared.exchange(PRODUCER, data(names[1]))
        assert (1 in out) == (answered >= asked_for), names
        assert ("unsolicited" in told(shared, before)) == (answered < asked_for)
        shared.wait(120 * TICK_US)


def test_a_plain_interest_has_no_longer_answers(router: OneRouter) -> None:
    router.exchange(1, asked("/a/x", 1))
    assert router.exchange(PRODUCER, data("/a/x/y")) == {}
    assert list(router.exchange(PRODUCER, data("/a/x"))) == [1]


def test_all_who_wait_get_the_data_once(router: OneRouter) -> None:
    """Under one prefix, under a shorter one, and under the name itself; two under one are one Interest."""
    assert ports(router.exchange(1, asked("/a/x", 1, can_be_prefix=True))) == [PRODUCER]
    assert router.exchange(3, asked("/a/x", 2, can_be_prefix=True)) == {}
    assert ports(router.exchange(4, asked("/a/x/y/z", 3))) == [PRODUCER]
    assert ports(router.exchange(4, asked("/a", 4, can_be_prefix=True))) == [PRODUCER]
    answer = data("/a/x/y/z")
    assert router.exchange(PRODUCER, answer) == {1: [answer], 3: [answer], 4: [answer]}
    assert drops(router.counts()) == {"aggregated": 1}
    assert router.exchange(PRODUCER, answer) == {}


def test_a_prefix_ends_with_its_lifetime(router: OneRouter) -> None:
    router.exchange(1, asked("/a/x", 1, can_be_prefix=True, lifetime=200))
    router.wait(220 * TICK_US)
    assert router.exchange(PRODUCER, data("/a/x/y")) == {}
    assert drops(router.counts()) == {"unsolicited": 1}


@pytest.mark.thorough
def test_more_prefixes_than_rows_forget_the_one_that_ends_first() -> None:
    with OneRouter(2, {"/a": PRODUCER}, PREFIXES=2) as router:
        for number, lifetime in enumerate((3000, 1000, 2000)):
            router.exchange(1, asked(f"/a/{number}", number, can_be_prefix=True, lifetime=lifetime))
        assert router.counts()["prefixes_evicted"] == 1
        assert [bool(router.exchange(PRODUCER, data(f"/a/{n}/v"))) for n in range(3)] == [True, False, True]


# ---- Implicit digests ----


def test_an_interest_with_a_digest_is_answered_by_its_data(router: OneRouter) -> None:
    answer = data("/a/x")
    digest = b"\x01\x20" + sha256(answer[ETHERNET_BYTES:]).digest()
    wanted = [*map(bytes, Name.from_str("/a/x")), digest]
    assert ports(router.exchange(1, asked(wanted, 1))) == [PRODUCER]
    # Another digest does not wait for this one: they are different Data.
    other = [*wanted[:-1], b"\x01\x20" + bytes(32)]
    assert ports(router.exchange(3, asked(other, 2))) == [PRODUCER]
    assert router.exchange(PRODUCER, data("/a/x/y")) == {}
    assert router.exchange(PRODUCER, answer) == {1: [answer], 3: [answer]}


def test_a_store_does_not_answer_a_digest(router: OneRouter) -> None:
    """It keeps contents, not what was around them."""
    router.exchange(1, asked("/a/x/54=%01/50=%00", 1))
    kept = gradient_frame("a", "x", version=1, segment=0)
    router.exchange(PRODUCER, kept)
    assert router.counts()["content_kept"] == 1
    assert ports(router.exchange(1, asked("/a/x/54=%01/50=%00", 2))) == [1]
    wanted = [*map(bytes, Name.from_str("/a/x/54=%01/50=%00")), b"\x01\x20" + sha256(kept[ETHERNET_BYTES:]).digest()]
    assert ports(router.exchange(1, asked(wanted, 3))) == [PRODUCER]


# ---- LpPackets ----


@pytest.mark.parametrize("size", [0, 100, 195, 200, 205, 210, 215, 220, 225, 250, 300, 1300])
def test_a_fragment_is_taken_out_of_its_packet(shared: OneRouter, size: int) -> None:
    """Whatever the lengths of the packet, the fragment and the LpPacket are written with."""
    uri = f"/a/linked/{size}"
    bare = asked(uri, 7, lifetime=1000)
    assert shared.exchange(1, linked(bare)) == {PRODUCER: [bare]}
    wire = ETHERNET + bytes(make_data(uri, MetaInfo(), bytes(size), NullSigner()))
    assert shared.exchange(PRODUCER, linked(wire)) == {1: [wire]}
    found, *_ = parse_data(wire[ETHERNET_BYTES:])
    assert Name.to_str(found) == uri


@pytest.mark.parametrize(
    ("packet", "reason"),
    [
        (tlv(100, b""), "link_header"),  # IDLE
        (tlv(100, tlv(0x51, bytes(8)) + tlv(80, b"\x05\x00")), "link_header"),  # with a sequence number
        (tlv(100, tlv(80, b"\x05\x05\x07\x03\x08\x01a")) + b"", None),
        (tlv(100, tlv(80, b"\x05\x05\x07\x03\x08\x01a") + b"\x00"), "nested_length"),
        (tlv(100, tlv(80, b"\x05\x05\x07\x03\x08\x01a\x00")), "nested_length"),
        (tlv(100, tlv(80, tlv(100, b"\x50\x00"))), "unknown_type"),
        (tlv(100, tlv(80, b"\x05")), "nested_length"),
        # The Interest fills the LpPacket, and its fragment says less, or more.
        (b"\x64\x09\x50\x06\x05\x05\x07\x03\x08\x01a", "nested_length"),
        (b"\x64\x09\x50\x08\x05\x05\x07\x03\x08\x01a", "nested_length"),
        (tlv(100, b"\x50\xfd\x01\x0b" + tlv(5, tlv(7, 33 * tlv(8, b"name 1")))), "nested_length"),
        (b"\x64\x20\x50\x07\x05\x05\x07\x03\x08\x01a", "truncated"),
        (b"\x64\xfd\x00\x09\x50\x07\x05\x05\x07\x03\x08\x01a", "not_shortest"),
    ],
    ids=str,
)
def test_other_lp_packets_are_dropped_for_their_reason(shared: OneRouter, packet: bytes, reason: str | None) -> None:
    before = drops(shared.counts())
    out = shared.exchange(1, ETHERNET + packet)
    if reason is None:
        assert ports(out) == [PRODUCER]
    else:
        assert (out, told(shared, before)) == ({}, {reason: 1})


# ---- Nacks ----


def nacked(frame: bytes) -> tuple[int, bytes]:
    """Reason and Interest, by python-ndn."""
    packet = frame[ETHERNET_BYTES:]
    kind, at = parse_tl_num(packet)
    length, more = parse_tl_num(packet, at)
    assert (kind, len(packet)) == (100, at + more + length)
    found = parse_lp_packet_v2(packet[at + more :], with_tl=False)
    assert found.nack is not None and found.fragment is not None
    return found.nack.nack_reason, bytes(found.fragment)


@pytest.mark.parametrize("size", [1, 100, 190, 195, 200, 205, 207, 209, 211, 213, 215, 217, 220, 230])
def test_an_interest_without_a_way_comes_back(shared: OneRouter, size: int) -> None:
    parts = [f"/{'b' * min(30, size - 30 * at)}" for at in range(-(-size // 30))]
    wire = asked("".join(parts), 7, hop_limit=9)
    before = drops(shared.counts())
    (answer,) = shared.exchange(3, wire)[3]
    assert nacked(answer) == (NackReason.NO_ROUTE, wire[ETHERNET_BYTES:])
    assert told(shared, before) == {"no_route": 1}
    # From where the producer is there is no way either.
    assert nacked(shared.exchange(PRODUCER, asked(f"/a/back{size}", 1))[PRODUCER][0])[0] == NackReason.NO_ROUTE


def test_a_duplicate_comes_back(router: OneRouter) -> None:
    for number, options in enumerate(({}, {"can_be_prefix": True})):
        wire = asked(f"/a/x{number}", 5, **options)
        router.exchange(1, wire)
        (answer,) = router.exchange(3, wire)[3]
        assert nacked(answer) == (NackReason.DUPLICATE, wire[ETHERNET_BYTES:])
        # It does not count as one that waits.
        assert list(router.exchange(PRODUCER, data(f"/a/x{number}"))) == [1]


def test_a_nack_goes_no_farther(shared: OneRouter) -> None:
    (answer,) = shared.exchange(3, asked("/nowhere", 1))[3]
    before = drops(shared.counts())
    assert shared.exchange(1, answer) == {}
    assert told(shared, before) == {"link_header": 1}
