"""A router's FIB, PIT and content store, packet by packet."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest

from gradbed.controller.systems.ndn.entries import name_id
from gradbed.formats.tlv import CONTENT, HOP_LIMIT, NONCE, generic, name_tlv, tlv
from gradbed.hosts.systems.ndn.packets import Data, data_frame, fragment_name, interest_frame, read_packet
from tests.unit.ndn.routers.one_router import (
    ETHERNET,
    SMALL,
    TICK_US,
    OneRouter,
    drops,
    gradient_frame,
    interest,
    name,
    ports,
)

PUBLISHER = 1


@pytest.fixture
def router() -> Iterator[OneRouter]:
    with OneRouter(4, {"/t/h1": PUBLISHER, "/a": 2, "/a/b": 3, "/a/b/c/d/e/f/g/h": 4}) as made:
        yield made


def probe(first: str, second: str, version: int, segment: int, nonce: int = 1, fresh: bool = False) -> bytes:
    return interest_frame(ETHERNET, fragment_name(name(first, second), version, segment), nonce, 1000, fresh)


def is_refused(out: dict[int, list[bytes]], port: int) -> bool:
    """Whether nothing but a Nack leaves (an LpPacket, type 100), to who sent the Interest."""
    return ports(out) == [port] and out[port][0][len(ETHERNET)] == 100


# ---- FIB and PIT ----


@pytest.mark.parametrize(
    ("parts", "port"),
    [
        (("a",), 2),
        (("a", "x"), 2),
        (("a", "b"), 3),
        (("a", "b", "c"), 3),
        (("a", "b", "c", "d", "e", "f", "g", "x"), 3),
        (("a", "b", "c", "d", "e", "f", "g", "h"), 4),
    ],
)
def test_the_longest_prefix_decides(router: OneRouter, parts: tuple[str, ...], port: int) -> None:
    assert ports(router.exchange(1, interest(*parts))) == [port]


def test_no_prefix_of_bytes_only_of_components(router: OneRouter) -> None:
    assert is_refused(router.exchange(1, interest("ab")), 1)
    assert drops(router.counts()) == {"no_route": 1}


def test_data_go_back_where_interests_came_from_once(router: OneRouter) -> None:
    router.exchange(1, interest("a", "x", nonce=1))
    assert router.exchange(3, interest("a", "x", nonce=2)) == {}
    frame = data_frame(
        ETHERNET, name("a", "x"), tlv(CONTENT, b"anything") + b"\x16\x03\x1b\x01\x00\x17\x20" + bytes(32)
    )
    assert router.exchange(2, frame) == {1: [frame], 3: [frame]}
    assert router.exchange(2, frame) == {}
    assert drops(router.counts()) == {"aggregated": 1, "unsolicited": 1}


def test_data_are_not_sent_back(router: OneRouter) -> None:
    router.exchange(2, interest("t", "h1", "x", nonce=1))
    router.exchange(3, interest("t", "h1", "x", nonce=2))
    assert list(router.exchange(2, data_frame(ETHERNET, name("t", "h1", "x")))) == [3]


def test_the_same_nonce_is_a_duplicate(router: OneRouter) -> None:
    router.exchange(1, interest("a", "x", nonce=5))
    assert is_refused(router.exchange(3, interest("a", "x", nonce=5)), 3)
    assert drops(router.counts()) == {"duplicate": 1}


def test_a_repetition_goes_on_but_not_at_once(router: OneRouter) -> None:
    router.exchange(1, interest("a", "x", nonce=1))
    assert router.exchange(1, interest("a", "x", nonce=2)) == {}
    router.wait(9 * TICK_US)
    assert ports(router.exchange(1, interest("a", "x", nonce=3))) == [2]


@pytest.mark.parametrize("lifetime_ms", [200, 1000, 70_000])
def test_an_interest_lasts_as_long_as_it_says(router: OneRouter, lifetime_ms: int) -> None:
    frame = data_frame(ETHERNET, name("a", "x"))
    router.exchange(1, interest("a", "x", nonce=1, lifetime_ms=lifetime_ms))
    router.wait(int(0.9 * lifetime_ms * TICK_US))
    assert router.exchange(2, frame) == {1: [frame]}
    router.exchange(1, interest("a", "x", nonce=2, lifetime_ms=lifetime_ms))
    router.wait(int(1.1 * lifetime_ms * TICK_US))
    assert router.exchange(2, frame) == {}


def test_hop_limits_count_down_and_end(router: OneRouter) -> None:
    def with_hops(hops: bytes) -> bytes:
        rest = tlv(NONCE, bytes(4)) + tlv(HOP_LIMIT, hops)
        return ETHERNET + tlv(5, name_tlv(name("a", "x")) + rest)

    (out,) = router.exchange(1, with_hops(b"\x02"))[2]
    assert out == with_hops(b"\x01")
    assert router.exchange(3, with_hops(b"\x00")) == {}
    assert drops(router.counts()) == {"hop_limit": 1}


def with_one_hop(*parts: str) -> bytes:
    return interest(*parts, nonce=7)[:-1] + b"\x01"


def test_an_interest_whose_hops_are_used_up_does_not_go_on(router: OneRouter) -> None:
    assert router.exchange(1, with_one_hop("a", "x")) == {}
    assert drops(router.counts()) == {"hop_limit": 1}
    assert "pending_made" not in router.counts()
    # A store may answer it.
    pushed(router, (3, 1))
    frame = probe("t", "h1", 3, 1)[:-1] + b"\x01"
    assert ports(router.exchange(2, frame)) == [2]


@pytest.mark.parametrize("operation", ["insert", "delete"])
def test_subscriptions_do_not_change_where_hops_are_used_up(router: OneRouter, operation: str) -> None:
    if operation == "delete":
        router.exchange(3, interest("insert", "h1", "t"))
    before = router.counts()
    assert router.exchange(3, with_one_hop(operation, "h1", "t")) == {}
    after = router.counts()
    assert drops(after) == {"hop_limit": 1}
    assert {key: after.get(key) for key in before} == before
    assert after.get("subscriptions_ended", 0) == 0


NONCE_BYTES = 6


@pytest.mark.commit_cases(8)
@pytest.mark.parametrize("size", [1, 200, 220, 221, 222, 230])
@pytest.mark.parametrize("flags", [b"", b"\x21\0", b"\x12\0", b"\x21\0\x12\0"])
def test_an_interest_without_a_nonce_gets_one(router: OneRouter, size: int, flags: bytes) -> None:
    """Where it belongs, whatever that does to the packet's length."""
    parts = [b"a", *(bytes([65 + at]) * min(32, size - 32 * at) for at in range(-(-size // 32)))][:8]
    wanted, guiders = name_tlv([generic(part) for part in parts]), b"\x0c\x01\x64\x22\x01\x09"
    (out,) = router.exchange(1, ETHERNET + tlv(5, wanted + flags + guiders))[2]
    packet = tlv(5, wanted + flags + tlv(NONCE, bytes(4)) + guiders[:-1] + b"\x08")
    place = packet.index(wanted) + len(wanted) + len(flags) + 2
    got = out[len(ETHERNET) :]
    assert got[:place] + bytes(4) + got[place + 4 :] == packet
    # Another gets another one.
    (other,) = router.exchange(3, ETHERNET + tlv(5, name_tlv(name("a", "y")) + guiders))[2]
    assert other[-10:-6] != got[place : place + 4]


def test_what_may_be_ignored_stays_as_it_is(router: OneRouter) -> None:
    """ApplicationParameters and a signature; unknown elements that are not critical."""
    whole = interest("a", "x")[len(ETHERNET) + 2 :]
    for number, rest in enumerate((
        tlv(0x24, b"ab"), tlv(0x24, b"") + tlv(0x2C, bytes(30)) + tlv(0x2E, bytes(300)), tlv(0x24, bytes(252)),
        tlv(0x24, bytes(700)), 3 * tlv(0xFC, b"abc"), tlv(HOP_LIMIT, b"\x07"),
    )):  # fmt: skip
        body = whole.replace(b"\x08\x01x", bytes([8, 1, 109 + number]))
        (out,) = router.exchange(1, ETHERNET + tlv(5, body + rest))[2]
        assert out == ETHERNET + tlv(5, body[:-1] + bytes([body[-1] - 1]) + rest)


@pytest.mark.thorough
def test_a_full_pit_forgets_the_one_that_ends_first() -> None:
    with OneRouter(2, {"/a": 1}, **SMALL) as router:
        for number, lifetime_ms in enumerate((3000, 1000, 2000)):
            router.exchange(2, interest("a", str(number), nonce=number, lifetime_ms=lifetime_ms))
        assert router.counts()["pending_evicted"] == 1
        answered = [bool(router.exchange(1, data_frame(ETHERNET, name("a", str(n))))) for n in range(3)]
        assert answered == [True, False, True]


# ---- The content store ----


def pushed(router: OneRouter, *numbers: tuple[int, int]) -> None:
    """Versions and segments of h1's, which come by and are kept; their lanes say which they are."""
    router.exchange(4, interest("insert", "h1", "t"))
    for version, segment in numbers:
        router.exchange(
            PUBLISHER,
            gradient_frame("distribute", "h1", "t", version=version, segment=segment, lane=1000 * version + segment),
        )


def test_a_probe_gets_what_was_pushed_under_its_own_name(router: OneRouter) -> None:
    pushed(router, (3, 0), (3, 1))
    out = router.exchange(2, probe("t", "h1", 3, 1))
    assert ports(out) == [2]
    assert out[2][0] == gradient_frame("t", "h1", version=3, segment=1, lane=3001)


def test_the_pushed_name_asks_for_the_same(router: OneRouter) -> None:
    pushed(router, (3, 1))
    wanted = fragment_name(name("distribute", "h1", "t"), 3, 1)
    out = router.exchange(2, interest_frame(ETHERNET, wanted, 1, 1000))
    assert out == {2: [gradient_frame("distribute", "h1", "t", version=3, segment=1, lane=3001)]}


def test_what_came_by_a_probe_is_kept_too(router: OneRouter) -> None:
    assert ports(router.exchange(2, probe("t", "h1", 3, 1))) == [PUBLISHER]
    answer = gradient_frame("t", "h1", version=3, segment=1, lane=9)
    assert router.exchange(PUBLISHER, answer) == {2: [answer]}
    assert router.exchange(3, probe("t", "h1", 3, 1, nonce=2)) == {3: [answer]}


@pytest.mark.parametrize("wanted", [("t", "h1", 3, 2), ("t", "h1", 4, 1), ("t", "h2", 3, 1), ("h1", "t", 3, 1)])
def test_other_versions_segments_publishers_do_not_hit(router: OneRouter, wanted: tuple[str, str, int, int]) -> None:
    pushed(router, (3, 1))
    out = router.exchange(2, probe(*wanted))
    assert 2 not in out or is_refused(out, 2)


def test_who_wants_it_fresh_is_not_answered_from_the_store(router: OneRouter) -> None:
    pushed(router, (3, 1))
    assert ports(router.exchange(2, probe("t", "h1", 3, 1, fresh=True))) == [PUBLISHER]


def test_unsolicited_data_are_not_kept(router: OneRouter) -> None:
    assert router.exchange(2, gradient_frame("t", "h1", version=1, segment=1)) == {}
    assert "content_kept" not in router.counts()


def test_a_push_that_is_asked_for_elsewhere_is_not_sent_twice(router: OneRouter) -> None:
    router.exchange(2, interest("insert", "h1", "t"))
    router.exchange(2, probe("t", "h1", 3, 1))
    frame = gradient_frame("distribute", "h1", "t", version=3, segment=1)
    assert router.exchange(PUBLISHER, frame) == {2: [frame]}
    assert router.exchange(PUBLISHER, gradient_frame("t", "h1", version=3, segment=1)) == {}


def test_the_older_of_two_contents_is_replaced() -> None:
    with OneRouter(4, {"/t/h1": PUBLISHER}, **SMALL) as router:
        pushed(router, (1, 0), (2, 0), (3, 0))
        assert router.counts()["content_evicted"] == 1
        held = [list(router.exchange(2, probe("t", "h1", version, 0))) == [2] for version in (1, 2, 3)]
        assert held == [False, True, True]
        pushed(router, (4, 0))
        held = [list(router.exchange(2, probe("t", "h1", version, 0, nonce=9))) == [2] for version in (2, 3, 4)]
        assert held == [False, True, True]


@pytest.mark.thorough
def test_without_a_store_probes_go_to_the_publisher() -> None:
    with OneRouter(4, {"/t/h1": PUBLISHER}, CONTENTS=0) as router:
        pushed(router, (3, 1))
        assert ports(router.exchange(2, probe("t", "h1", 3, 1))) == [PUBLISHER]


def colliding_names() -> tuple[str, str]:
    """Two names of one component whose CRC-32 is the same."""
    seen: dict[int, str] = {}
    for number in count():
        text = f"{number * 2654435761 % 2**32:08x}"
        key = name_id([text.encode()]) >> 32
        if key in seen:
            return seen[key], text
        seen[key] = text
    raise AssertionError


@pytest.mark.thorough
def test_names_with_equal_hashes_are_told_apart(router: OneRouter) -> None:
    one, other = colliding_names()
    assert name_id([one.encode()]) >> 32 == name_id([other.encode()]) >> 32
    with OneRouter(4, {f"/{one}": 1, f"/{other}": 2}) as router:
        assert ports(router.exchange(3, interest(one))) == [1]
        # Two entries of the PIT.
        assert ports(router.exchange(4, interest(other))) == [2]
        frame = gradient_frame(one).replace(name_tlv(fragment_name(name(one), 1, 0)), name_tlv(name(one)))
        content = read_packet(gradient_frame(one, lane=7))
        assert isinstance(content, Data)
        frame = data_frame(ETHERNET, name(one), tlv(CONTENT, content.content) + bytes.fromhex("16031b01c81700"))
        assert router.exchange(1, frame) == {3: [frame]}
        # The content of one is never given for the other.
        assert router.exchange(3, interest(other, nonce=3)) == {}
        router.wait(2_000_000)
        assert ports(router.exchange(3, interest(other, nonce=4))) == [2]
        assert router.exchange(3, interest(one, nonce=5)) == {3: [frame]}
        assert router.counts()["content_collisions"] == 2


def test_a_components_type_belongs_to_its_name(router: OneRouter) -> None:
    assert is_refused(router.exchange(1, interest_frame(ETHERNET, (tlv(0x36, b"a"), generic("x")), 1, 1000)), 1)
    assert drops(router.counts()) == {"no_route": 1}
