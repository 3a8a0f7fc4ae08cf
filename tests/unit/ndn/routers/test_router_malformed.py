"""What a router makes of frames that are no packets: a drop with a reason, and nothing else."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gradbed.controller.rest.interface import create_app
from gradbed.controller.rest.server import RestServer, listening_socket
from gradbed.experiments.systems.ndn.metrics import DROP_REASONS
from gradbed.formats.tlv import GENERIC, HOP_LIMIT, INTEREST, NAME, NONCE, number, tlv
from tests.examples import examples
from tests.unit.ndn.routers.one_router import ETHERNET, OneRouter, drops, gradient_frame, interest, name, ports

NONCE_TLV = tlv(NONCE, bytes(4))
ONE = tlv(GENERIC, b"a")
NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def shared() -> Iterator[OneRouter]:
    with OneRouter(3, {"/a": 1}) as made:
        yield made


@pytest.fixture
def router() -> Iterator[OneRouter]:
    with OneRouter(3, {"/a": 1}) as made:
        yield made


def packet(name_value: bytes, rest: bytes = NONCE_TLV) -> bytes:
    return ETHERNET + tlv(INTEREST, tlv(NAME, name_value) + rest)


def raw(*parts: bytes) -> bytes:
    return ETHERNET + b"".join(parts)


MALFORMED = {
    "another type": (raw(tlv(0x64, tlv(0x50, ONE))), "unknown_type"),
    "nothing": (raw(), "truncated"),
    "a type alone": (raw(b"\x05"), "truncated"),
    "longer than the frame": (raw(b"\x05\x20", tlv(NAME, ONE)), "truncated"),
    "much longer than the frame": (raw(b"\x05\xfd\xff\xff", tlv(NAME, ONE)), "truncated"),
    "three bytes for a short length": (raw(b"\x05\xfd\x00\x0b", tlv(NAME, ONE) + NONCE_TLV), "not_shortest"),
    "five bytes of length": (raw(b"\x05\xfe\x00\x00\x00\x0b", tlv(NAME, ONE) + NONCE_TLV), "not_shortest"),
    "nine bytes of length": (raw(b"\x05\xff", bytes(7), b"\x0b", tlv(NAME, ONE) + NONCE_TLV), "not_shortest"),
    "an empty packet": (raw(b"\x05\x00"), "no_name"),
    "no name": (raw(tlv(INTEREST, NONCE_TLV)), "no_name"),
    "an empty name": (packet(b""), "no_name"),
    "a name longer than the packet": (raw(b"\x05\x05", b"\x07\x09", ONE, bytes(9)), "nested_length"),
    "a component longer than the name": (packet(b"\x08\x05a"), "nested_length"),
    "a component without a length": (packet(ONE + b"\x08"), "nested_length"),
    "a wide name longer than the packet": (raw(b"\x05\x0a", b"\x07\xfd\x01\x00", bytes(300)), "nested_length"),
    "a component of 33 bytes": (packet(tlv(GENERIC, bytes(33))), "component_too_long"),
    "a component of 300 bytes": (packet(tlv(GENERIC, bytes(300))), "component_too_long"),
    "nine components": (packet(9 * ONE), "too_many_components"),
    "400 components": (packet(400 * ONE), "too_many_components"),
    "a nonce of five bytes": (packet(ONE, tlv(NONCE, bytes(5))), "bad_element"),
    "a second nonce": (packet(ONE, 2 * NONCE_TLV), "bad_element"),
    "a flag after the nonce": (packet(ONE, NONCE_TLV + tlv(0x12, b"")), "bad_element"),
    "a forwarding hint": (packet(ONE, tlv(0x1E, tlv(NAME, ONE)) + NONCE_TLV), "bad_element"),
    "a lifetime of three bytes": (packet(ONE, NONCE_TLV + tlv(0x0C, bytes(3))), "bad_element"),
    "a hop limit of two bytes": (packet(ONE, NONCE_TLV + tlv(HOP_LIMIT, bytes(2))), "bad_element"),
    "a lifetime after the hop limit": (
        packet(ONE, NONCE_TLV + tlv(HOP_LIMIT, b"\x05") + tlv(0x0C, b"\x05")),
        "bad_element",
    ),
    "an unknown critical element": (packet(ONE, NONCE_TLV + tlv(0x25, b"a")), "bad_element"),
    "four elements after the last known one": (packet(ONE, NONCE_TLV + 4 * tlv(0x24, b"a")), "bad_element"),
    "a type of three bytes": (packet(ONE, NONCE_TLV + b"\xfd\x01\x00\x00"), "bad_element"),
    "a lifetime of 196 bytes with 2 left": (packet(ONE, NONCE_TLV + b"\x0c\xc4\x0f\xa0"), "bad_element"),
    "parameters of 196 bytes with 2 left": (packet(ONE, NONCE_TLV + b"\x24\xc4ab"), "nested_length"),
    "parameters of 300 bytes with 299 left": (
        packet(ONE, NONCE_TLV + b"\x24\xfd\x01\x2c" + bytes(299)),
        "nested_length",
    ),
    "three bytes for a short length of parameters": (packet(ONE, NONCE_TLV + b"\x24\xfd\x00\x01a"), "not_shortest"),
    "parameters without a length": (packet(ONE, NONCE_TLV + b"\x24"), "truncated"),
    "a nonce beyond the packet": (raw(b"\x05\x07", tlv(NAME, ONE), b"\x0a\x04", bytes(8)), "nested_length"),
    "a hop limit of nothing": (packet(ONE, NONCE_TLV + tlv(HOP_LIMIT, b"\0")), "hop_limit"),
}


@pytest.mark.parametrize("what", MALFORMED)
def test_it_is_dropped_for_its_reason(shared: OneRouter, what: str) -> None:
    frame, reason = MALFORMED[what]
    before = drops(shared.counts())
    assert shared.exchange(2, frame) == {}
    after = drops(shared.counts())
    assert {key: after[key] - before.get(key, 0) for key in after if after[key] != before.get(key, 0)} == {reason: 1}


def test_every_reason_has_its_counter(shared: OneRouter) -> None:
    names = {full.rsplit(".", 1)[-1] for full in shared.southbound.counters("s1")}
    assert {f"dropped_{reason}" for reason in DROP_REASONS} == {each for each in names if each.startswith("dropped_")}


def test_the_table_of_drops_is_read_through_rest(router: OneRouter, tmp_path: Path) -> None:
    """By a reader that knows the interface alone: every reason with its packets and bytes."""
    sent: dict[str, list[bytes]] = {}
    for frame, reason in MALFORMED.values():
        assert router.exchange(2, frame) == {}
        sent.setdefault(f"dropped_{reason}", []).append(frame)
    path = str(tmp_path / "rest.sock")
    server = RestServer(create_app(router.controller), [listening_socket(path)])
    server.start()
    try:
        with httpx.Client(transport=httpx.HTTPTransport(uds=path), base_url="http://localhost", timeout=60) as client:
            counters = client.get("/switches/s1/counters").json()
    finally:
        server.stop()
    table = {full.rsplit(".", 1)[-1]: cells for full, cells in counters.items()}
    found = {name: cells for name, cells in table.items() if name.startswith("dropped_")}
    assert set(found) == {f"dropped_{reason}" for reason in DROP_REASONS}
    assert {name: cells for name, cells in found.items() if cells} == {
        name: [{"index": 0, "packets": len(frames), "bytes": sum(map(len, frames))}] for name, frames in sent.items()
    }


def test_a_name_of_10_000_components_is_dropped(shared: OneRouter) -> None:
    """As many of them as a frame can have, and all of them in a packet that is longer than its frame."""
    before = drops(shared.counts())
    whole = packet(10_000 * tlv(GENERIC, b""))
    assert shared.exchange(2, packet(4_500 * tlv(GENERIC, b"")), whole[:9_000]) == {}
    after = drops(shared.counts())
    for reason in ("too_many_components", "truncated"):
        assert after[reason] == before.get(reason, 0) + 1


@pytest.mark.parametrize("components", [1, 8])
@pytest.mark.parametrize("size", [0, 1, 31, 32])
def test_names_within_the_limits_pass(components: int, size: int) -> None:
    parts = [b"a", *[bytes([65 + i]) * size for i in range(components - 1)]]
    with OneRouter(3, {"/a": 1}) as router:
        frame = packet(b"".join(tlv(GENERIC, part) for part in parts))
        assert router.exchange(2, frame) == {1: [frame]}


def test_padding_after_the_packet_stays(router: OneRouter) -> None:
    frame = packet(ONE) + bytes(20)
    assert router.exchange(2, frame) == {1: [frame]}


def test_ports_beyond_16_are_refused() -> None:
    with OneRouter(20) as router:
        assert router.exchange(17, interest("a")) == {}
        assert drops(router.counts()) == {"port_beyond_16": 1}


def test_other_frames_are_routed_or_dropped(router: OneRouter) -> None:
    assert router.exchange(2, ETHERNET[:12] + b"\x08\x06" + bytes(46)) == {}
    assert drops(router.counts()) == {"not_ours": 1}


def counted(router: OneRouter, before: dict[str, int]) -> int:
    after = drops(router.counts())
    return sum(after.values()) - sum(before.values())


@settings(max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=120), st.sampled_from([b"", b"\x05", b"\x06", b"\x05\x10\x07", b"\x06\xfd\x01\x00\x07"]))
def test_random_bytes_are_dropped_and_counted(shared: OneRouter, rest: bytes, begin: bytes) -> None:
    before = drops(shared.counts())
    out = shared.exchange(2, raw(begin, rest))
    plain = [frame for frames in out.values() for frame in frames if frame[len(ETHERNET)] != 100]  # no Nacks
    assert counted(shared, before) + len(plain) == 1
    assert ports(shared.exchange(2, interest("a", "still", str(next(NUMBERS))))) == [1]


@pytest.mark.parametrize("whole", [interest("insert", "h1", "t"), gradient_frame("t", "h1"), interest(*"abcdefgh")])
def test_every_truncation_is_dropped(shared: OneRouter, whole: bytes) -> None:
    frames = [whole[:length] for length in range(len(ETHERNET), len(whole))]
    before = drops(shared.counts())
    assert shared.exchange(2, *frames) == {}
    assert counted(shared, before) == len(frames)
    assert set(drops(shared.counts())) <= set(DROP_REASONS)


def test_lengths_of_components_that_lie_change_nothing_else(shared: OneRouter) -> None:
    whole = bytearray(interest("a", "b"))
    place = len(ETHERNET) + 2 + 2 + 1
    assert whole[place - 1 : place + 1] == number(GENERIC) + number(1)
    before = drops(shared.counts())
    frames = []
    for lie in range(256):
        if lie != 1:
            whole[place] = lie
            frames.append(bytes(whole))
    assert 1 not in shared.exchange(2, *frames)
    assert counted(shared, before) == len(frames)
    assert name("a") == (ONE,)
