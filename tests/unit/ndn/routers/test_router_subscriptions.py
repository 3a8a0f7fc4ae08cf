"""A router's persistent PIT, packet by packet."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gradbed.formats.tlv import generic
from gradbed.hosts.systems.ndn.packets import Data, data_frame, read_packet
from tests.unit.ndn.routers.one_router import (
    EPOCH_US,
    ETHERNET,
    SMALL,
    OneRouter,
    drops,
    gradient_frame,
    interest,
    name,
    ports,
)

INSERTION = ("insert", "h1", "t")
DELETION = ("delete", "h1", "t")
ACKNOWLEDGEMENT = data_frame(ETHERNET, name("distribute", "h1", "t"))
PUBLISHER = 1


@pytest.fixture
def router() -> Iterator[OneRouter]:
    with OneRouter(5, {"/t/h1": PUBLISHER}) as made:
        yield made


def subscribe(router: OneRouter, *subscribers: int) -> None:
    for port in subscribers:
        router.exchange(port, interest(*INSERTION))
    router.exchange(PUBLISHER, ACKNOWLEDGEMENT)


def receivers(router: OneRouter, version: int) -> list[int]:
    return ports(router.exchange(PUBLISHER, gradient_frame("distribute", "h1", "t", version=version)))


def test_the_first_insertion_goes_on_and_equal_ones_wait(router: OneRouter) -> None:
    assert ports(router.exchange(2, interest(*INSERTION))) == [PUBLISHER]
    assert router.exchange(3, interest(*INSERTION)) == {}
    assert drops(router.counts()) == {"aggregated": 1}


def test_the_acknowledgement_goes_to_all_who_asked(router: OneRouter) -> None:
    router.exchange(2, interest(*INSERTION))
    router.exchange(3, interest(*INSERTION))
    out = router.exchange(PUBLISHER, ACKNOWLEDGEMENT)
    assert ports(out) == [2, 3]
    assert out[2] == [ACKNOWLEDGEMENT]


def test_who_joins_after_the_acknowledgement_gets_one_of_the_router(router: OneRouter) -> None:
    subscribe(router, 2)
    out = router.exchange(3, interest(*INSERTION))
    assert ports(out) == [3]
    packet = read_packet(out[3][0])
    assert packet == Data(name("distribute", "h1", "t"), b"")
    assert out[3][0][14:] == ACKNOWLEDGEMENT[14:]
    assert receivers(router, 1) == [2, 3]


def test_a_repetition_goes_on_while_nothing_is_acknowledged(router: OneRouter) -> None:
    router.exchange(2, interest(*INSERTION, nonce=1))
    assert ports(router.exchange(2, interest(*INSERTION, nonce=2))) == [PUBLISHER]


def test_a_fresh_insertion_goes_all_the_way(router: OneRouter) -> None:
    subscribe(router, 2)
    assert ports(router.exchange(2, interest(*INSERTION, fresh=True))) == [PUBLISHER]


def test_pushes_go_to_subscribers_and_to_nobody_else(router: OneRouter) -> None:
    subscribe(router, 2, 4)
    frame = gradient_frame("distribute", "h1", "t", version=7, segment=3)
    assert router.exchange(PUBLISHER, frame) == {2: [frame], 4: [frame]}
    # Another publisher, another training.
    assert router.exchange(PUBLISHER, gradient_frame("distribute", "h2", "t")) == {}
    assert router.exchange(PUBLISHER, gradient_frame("distribute", "h1", "u")) == {}
    assert drops(router.counts()) == {"not_upstream": 2, "aggregated": 1}


def test_pushes_come_from_upstream_of_their_publisher(router: OneRouter) -> None:
    subscribe(router, 2, 4)
    frame = gradient_frame("distribute", "h1", "t", version=7)
    for port in (2, 3, 4, 5):
        assert router.exchange(port, frame) == {}
    assert drops(router.counts()) == {"not_upstream": 4, "aggregated": 1}
    # It was neither kept nor taken for the push that has been here.
    assert "content_kept" not in router.counts()
    assert receivers(router, 7) == [2, 4]


@pytest.mark.parametrize(
    ("version", "segment", "goes_on"),
    [
        (7, 300, False),
        (7, 299, False),
        (7, 2, False),
        (6, 301, False),
        (7, 301, True),
        (8, 0, True),
        (70_000, 0, True),
    ],
)
def test_a_push_goes_on_only_beyond_all_before_it(
    router: OneRouter, version: int, segment: int, goes_on: bool
) -> None:
    subscribe(router, 2)
    last = gradient_frame("distribute", "h1", "t", version=7, segment=300)
    assert router.exchange(PUBLISHER, last) == {2: [last]}
    frame = gradient_frame("distribute", "h1", "t", version=version, segment=segment)
    assert router.exchange(PUBLISHER, frame) == ({2: [frame]} if goes_on else {})
    assert drops(router.counts()).get("overtaken", 0) == (not goes_on)
    # That was of this stream, and the first of another may be any.
    assert router.counts()["subscriptions_made"] == 1


def test_the_first_push_of_all_is_that_of_version_0_and_segment_0(router: OneRouter) -> None:
    subscribe(router, 2)
    assert receivers(router, 0) == [2]
    assert router.exchange(PUBLISHER, gradient_frame("distribute", "h1", "t", version=0)) == {}


def test_a_stream_whose_subscribers_left_goes_on_where_it_was(router: OneRouter) -> None:
    subscribe(router, 2)
    assert receivers(router, 5) == [2]
    router.exchange(2, interest(*DELETION))
    subscribe(router, 3)
    assert router.exchange(PUBLISHER, gradient_frame("distribute", "h1", "t", version=5)) == {}
    assert receivers(router, 6) == [3]


def test_a_row_that_another_stream_gets_begins_anew() -> None:
    publishers = {f"/t/p{number}": PUBLISHER for number in range(3)}
    with OneRouter(3, publishers, **SMALL) as router:
        for number in range(3):
            router.exchange(2, interest("insert", f"p{number}", "t"))
            frame = gradient_frame("distribute", f"p{number}", "t", version=9 - number)
            assert router.exchange(PUBLISHER, frame) == {2: [frame]}
            router.exchange(2, interest("delete", f"p{number}", "t"))
        assert router.counts()["subscriptions_made"] == 3


def test_an_acknowledgement_goes_on_once_for_each_insertion_that_did(router: OneRouter) -> None:
    subscribe(router, 2)
    assert router.exchange(PUBLISHER, ACKNOWLEDGEMENT) == {}
    assert router.exchange(3, ACKNOWLEDGEMENT) == {}
    router.exchange(2, interest(*INSERTION, fresh=True, nonce=2))
    assert router.exchange(PUBLISHER, ACKNOWLEDGEMENT) == {2: [ACKNOWLEDGEMENT]}
    assert drops(router.counts()) == {"unsolicited": 1, "not_upstream": 1}


def test_an_insertion_from_upstream_changes_nothing(router: OneRouter) -> None:
    subscribe(router, 2)
    router.exchange(PUBLISHER, interest(*INSERTION, nonce=2))
    router.exchange(2, interest(*DELETION))
    assert router.counts()["subscriptions_ended"] == 1


@pytest.mark.parametrize("last_bytes", [b"\x32\x03abc", b"\x32\x08" + bytes(8), b"\x08\x01a", b"\x36\x01\x00"])
def test_versions_and_segments_of_pushes_are_numbers(router: OneRouter, last_bytes: bytes) -> None:
    subscribe(router, 2)
    parts = (*name("distribute", "h1", "t"), b"\x36\x01\x01")
    assert router.exchange(PUBLISHER, data_frame(ETHERNET, (*parts, last_bytes))) == {}
    assert drops(router.counts()) == {"operation_name": 1}
    frame = data_frame(ETHERNET, (*parts, b"\x32\x04\x00\x00\x00\x01"))
    assert router.exchange(PUBLISHER, frame) == {2: [frame]}


def test_a_deletion_takes_out_its_own_port_alone(router: OneRouter) -> None:
    subscribe(router, 2, 3, 4)
    out = router.exchange(3, interest(*DELETION))
    assert ports(out) == [3]
    assert read_packet(out[3][0]) == Data(name(*DELETION), b"")
    assert receivers(router, 1) == [2, 4]


def test_the_last_deletion_goes_on_and_its_acknowledgement_comes_back(router: OneRouter) -> None:
    subscribe(router, 2, 3)
    router.exchange(2, interest(*DELETION))
    assert ports(router.exchange(3, interest(*DELETION))) == [PUBLISHER]
    answer = data_frame(ETHERNET, name(*DELETION))
    assert router.exchange(PUBLISHER, answer) == {3: [answer]}
    counts = router.counts()
    assert counts["subscriptions_made"] == counts["subscriptions_ended"] == 1
    assert router.exchange(PUBLISHER, gradient_frame("distribute", "h1", "t")) == {}


def test_a_repeated_deletion_is_acknowledged_again(router: OneRouter) -> None:
    subscribe(router, 2, 3)
    router.exchange(2, interest(*DELETION))
    assert ports(router.exchange(2, interest(*DELETION, nonce=2))) == [2]
    assert receivers(router, 1) == [3]


def test_who_does_not_refresh_is_out_after_a_whole_epoch(router: OneRouter) -> None:
    subscribe(router, 2, 3)
    router.wait(EPOCH_US)
    # The first refresh in an epoch goes on, and until it is acknowledged others wait with it.
    assert ports(router.exchange(2, interest(*INSERTION))) == [PUBLISHER]
    router.exchange(PUBLISHER, ACKNOWLEDGEMENT)
    assert receivers(router, 1) == [2, 3]
    router.wait(EPOCH_US)
    assert receivers(router, 2) == [2]
    router.wait(EPOCH_US)
    assert router.exchange(PUBLISHER, gradient_frame("distribute", "h1", "t", version=3)) == {}


def test_an_acknowledgement_is_for_those_who_have_refreshed(router: OneRouter) -> None:
    """Else a port whose refresh was lost would believe that it is in."""
    subscribe(router, 2, 3)
    router.wait(EPOCH_US)
    router.exchange(2, interest(*INSERTION))
    assert ports(router.exchange(PUBLISHER, ACKNOWLEDGEMENT)) == [2]


def test_without_a_free_row_insertions_go_on_and_are_counted() -> None:
    publishers = {f"/t/p{number}": PUBLISHER for number in range(40)}
    with OneRouter(3, publishers, **SMALL) as router:
        for number in range(40):
            assert ports(router.exchange(2, interest("insert", f"p{number}", "t"))) == [PUBLISHER]
        counts = router.counts()
        assert (counts["subscriptions_made"], counts["subscription_collisions"]) == (2, 38)
        # Its acknowledgement still finds back, and so does what is asked for by name.
        frame = data_frame(ETHERNET, name("distribute", "p39", "t"))
        assert router.exchange(PUBLISHER, frame) == {2: [frame]}
        assert ports(router.exchange(2, interest("t", "p39", "x"))) == [PUBLISHER]


def test_without_a_route_an_insertion_is_dropped(router: OneRouter) -> None:
    assert router.exchange(2, interest("insert", "nobody", "t")) == {}
    assert router.exchange(PUBLISHER, interest(*INSERTION)) == {}  # back to where it came from
    assert drops(router.counts()) == {"no_route": 2}


def test_operations_have_names_of_their_own_length(router: OneRouter) -> None:
    for parts in (("insert", "h1"), ("insert", "h1", "t", "x"), ("distribute", "h1", "t", "x"), ("delete",)):
        assert router.exchange(2, interest(*parts)) == {}
    assert drops(router.counts()) == {"operation_name": 4}


def test_a_component_that_begins_like_an_operation_is_an_ordinary_one() -> None:
    with OneRouter(2, {"/inserx/a": 1, "/distributf/a": 1, "/inserts/a": 1}) as router:
        for first in ("inserx", "distributf", "inserts"):
            assert ports(router.exchange(2, interest(first, "a"))) == [1]
    assert generic("insert") == bytes.fromhex("0806696e73657274")


def test_switches_with_many_ports_ask_for_their_groups() -> None:
    with OneRouter(12, {"/t/h1": PUBLISHER}) as router:
        assert not router.plan()["s1"].groups
        subscribe(router, 9, 12)
        assert receivers(router, 1) == [9, 12]
        assert [group.ports for group in router.plan()["s1"].groups] == [(9,), (9, 12)]
