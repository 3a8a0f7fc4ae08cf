"""What a worker makes of packets: decoded as soon as possible, lent samples gone, and asked for what is missing."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise, permutations

import numpy as np
import pytest

from gradbed.common.errors import UserError
from gradbed.hosts.agents.config import WorkerAddress
from gradbed.hosts.systems.shuffle.config import (
    PlannedReception,
    ShuffleConfig,
    even_fragment_bytes,
    fragments_of,
)
from gradbed.hosts.systems.shuffle.reception import CONSTANT_TIMEOUTS, MOST_DOUBLINGS, UNANSWERED, SampleReception
from gradbed.hosts.systems.shuffle.samples import Fragments, Store, SyntheticSamples, cut, encode, original

FRAGMENT_BYTES = 4
SIZES = {0: 10, 1: 3, 2: 9, 3: 12}
SOURCE = SyntheticSamples(mean_bytes=8, spread_bytes=4)
TIMEOUT_US = 1000
GIVE_UP_US = 20_000
COMPUTED: list[object] = []
"""What took the worker's processor some time."""

PACKET = PlannedReception(number=5, sender=1, place=1, planned_us=300, samples=(0, 1, 2), wanted=0, asked=(1,))
"""The worker stores sample 1, and borrows sample 2 for it."""
LOAN = PlannedReception(number=4, sender=2, place=0, planned_us=100, samples=(2,), wanted=2, asked=(2,), lent_for=5)
LATER = PlannedReception(number=6, sender=1, place=2, planned_us=400, samples=(3,), wanted=3, asked=(1,))


def fragments(sample: int) -> np.ndarray:
    return cut(original(SOURCE, sample, SIZES[sample]), FRAGMENT_BYTES)


def reception(*incoming: PlannedReception, give_up_us: int = GIVE_UP_US) -> tuple[SampleReception, Store]:
    store = Store(FRAGMENT_BYTES)
    store.put(1, fragments(1))
    config = ShuffleConfig(
        job=1,
        index=0,
        workers=tuple(
            WorkerAddress(
                name=f"h{i}", ip=f"10.0.0.{i}", mac="02:00:00:00:00:01", gateway_mac="02:00:00:00:00:02", index=i
            )
            for i in range(3)
        ),
        source=SOURCE,
        bits=64,
        fragment_bytes=FRAGMENT_BYTES,
        sizes_bytes=SIZES,
        stored=(1,),
        keep=(0,),
        outgoing=(),
        incoming=incoming,
        holders={},
        distances=(0, 2, 2),
        interval_us=10,
        timeout_us=TIMEOUT_US,
        give_up_us=give_up_us,
    )

    def compute(work: Callable[[], Fragments]) -> Fragments:
        COMPUTED.append(work)
        return work()

    return SampleReception(config, store, compute), store


def take(found: SampleReception, told: PlannedReception, fragment: int, now_us: int = 1) -> None:
    payload = encode(map(fragments, told.samples), FRAGMENT_BYTES)[fragment]
    found.take_scheduled(told.sender, told.number, fragment, payload, now_us)


ARRIVALS = [(LOAN, 0), (LOAN, 1), (LOAN, 2), (PACKET, 0), (PACKET, 1), (PACKET, 2)]


@pytest.mark.parametrize("order", list(permutations(range(6)))[::7])
def test_any_order_decodes_and_nothing_lent_is_left(order: tuple[int, ...]) -> None:
    found, store = reception(PACKET, LOAN)
    for place in order:
        assert not found.complete
        take(found, *ARRIVALS[place])
    assert found.complete and found.has(PACKET.number)
    assert store.borrowed == 1 and store.lent == 0 and not store.holds(2)
    assert store.contents(SIZES)[0].tobytes() == original(SOURCE, 0, SIZES[0]).tobytes()


def test_lent_samples_are_there_until_the_packet_is_decoded() -> None:
    found, store = reception(PACKET, LOAN)
    for fragment in range(3):
        take(found, LOAN, fragment)
    assert store.lent == 1 and found.has(LOAN.number) and store.find(2, PACKET.number) is not None
    assert store.find(2, LATER.number) is None, "it is lent for that packet alone"
    assert store.fragment(2, 0) is None, "and is not there for others' repairs"


def test_a_packet_that_came_by_repairs_needs_no_loan_any_more() -> None:
    found, store = reception(PACKET, LOAN)
    take(found, LOAN, 0)
    for fragment in range(3):
        found.take_repair([(0, fragment)], fragments(0)[fragment], 2)
    assert found.complete
    take(found, LOAN, 1)
    take(found, LOAN, 2)
    assert store.lent == 0 and found.duplicates == 2


def test_copies_and_strangers_are_counted_and_change_nothing() -> None:
    found, store = reception(LATER)
    take(found, LATER, 0)
    take(found, LATER, 0)
    found.take_scheduled(2, LATER.number, 1, np.zeros(FRAGMENT_BYTES, np.uint8), 1)  # not its sender
    found.take_scheduled(1, 99, 1, np.zeros(FRAGMENT_BYTES, np.uint8), 1)
    assert (found.duplicates, found.misdirected) == (1, 2)
    take(found, LATER, 1)
    take(found, LATER, 2)
    take(found, LATER, 2)
    assert found.duplicates == 2
    assert store.contents(SIZES)[3].tobytes() == original(SOURCE, 3, SIZES[3]).tobytes()


def test_sums_of_repairs_are_decoded_by_what_is_held() -> None:
    found, store = reception(LATER)
    for fragment in range(3):
        # Sample 1 has one fragment: beyond its end it is zeros.
        total = fragments(3)[fragment] ^ (fragments(1)[0] if fragment == 0 else 0)
        found.take_repair([(1, fragment), (3, fragment)], total, 1)
    assert found.complete and store.holds(3)
    found.take_repair([(0, 0), (2, 0)], fragments(0)[0], 1)  # two are unknown
    found.take_repair([(1, 0)], fragments(1)[0], 1)  # none is
    assert found.useless_repairs == 2


def asked(found: SampleReception, now_us: int) -> list[tuple[int, list[bool]]]:
    return [(told.number, missing.tolist()) for told, _, missing in found.asking(now_us)]


def test_it_asks_after_a_silence_and_not_before_the_sender_can_have_sent() -> None:
    found, _ = reception(LATER)
    assert found.deadline_us == LATER.planned_us + TIMEOUT_US
    assert asked(found, LATER.planned_us + TIMEOUT_US - 1) == []
    take(found, LATER, 1, now_us=500)
    assert asked(found, 500 + TIMEOUT_US) == [(LATER.number, [True, False, True])]
    for place in range(1, CONSTANT_TIMEOUTS + 1):
        assert asked(found, 500 + (1 + place) * TIMEOUT_US) == [(LATER.number, [True, False, True])]
    last_us = 500 + (1 + CONSTANT_TIMEOUTS) * TIMEOUT_US
    assert asked(found, last_us + TIMEOUT_US) == []
    assert asked(found, last_us + 2 * TIMEOUT_US) != []


def test_what_later_packets_have_overtaken_is_asked_for_though_others_come() -> None:
    found, _ = reception(PACKET, LATER)
    take(found, LATER, 0, now_us=10)
    for now_us in range(10, 10 + TIMEOUT_US, 100):
        take(found, LATER, 0, now_us)
        assert asked(found, now_us) == []
    take(found, LATER, 2, now_us=10 + TIMEOUT_US)
    assert asked(found, 10 + TIMEOUT_US) == [(PACKET.number, [True] * 3)]
    # Fragment 1 was overtaken by fragment 2 only now.
    assert asked(found, 10 + 2 * TIMEOUT_US) == [(PACKET.number, [True] * 3), (LATER.number, [False, True, False])]


def test_a_fragment_that_its_own_transmission_has_overtaken_is_asked_for_though_others_come() -> None:
    found, _ = reception(LATER, LOAN)
    start_us = LATER.planned_us
    take(found, LATER, 0, now_us=start_us)
    take(found, LATER, 2, now_us=start_us)
    take(found, LOAN, 0, now_us=start_us + TIMEOUT_US // 2)
    assert asked(found, start_us + TIMEOUT_US - 1) == []
    assert asked(found, start_us + TIMEOUT_US) == [(LATER.number, [False, True, False])]


def test_what_waits_for_its_loan_is_not_asked_for() -> None:
    found, _ = reception(PACKET, LOAN)
    for fragment in range(3):
        take(found, PACKET, fragment)
    assert asked(found, 10_000) == [(LOAN.number, [True] * 3)]


def test_decoding_takes_the_processor_once_a_packet_and_plain_samples_never() -> None:
    COMPUTED.clear()
    found, store = reception(PACKET, LOAN, LATER)
    for told in (LOAN, LATER, PACKET):
        for fragment in range(3):
            take(found, told, fragment)
    assert found.complete and store.holds(0) and store.holds(3) and len(COMPUTED) == 1
    found, _ = reception(LATER)
    found.take_repair([(1, 0), (3, 0)], fragments(3)[0] ^ fragments(1)[0], 1)
    assert len(COMPUTED) == 2


def test_of_a_sender_that_says_nothing_other_holders_are_asked_and_then_it_gives_up() -> None:
    found, _ = reception(LATER.model_copy(update={"asked": (1, 2)}))
    whom = []
    with pytest.raises(
        UserError, match=r"sample 3 does not come, though h1 and h2 should have it and was asked \d+ t"
    ):
        for now_us in range(0, 100_000, 100):
            whom += [asked_worker for _, asked_worker, _ in found.asking(now_us)]
    assert now_us >= LATER.planned_us + TIMEOUT_US + GIVE_UP_US
    assert whom[: 2 * UNANSWERED] == [1] * UNANSWERED + [2] * UNANSWERED


def test_whoever_sends_something_of_it_is_asked_on() -> None:
    found, _ = reception(LATER.model_copy(update={"asked": (1, 2)}))
    for now_us in range(0, 12 * GIVE_UP_US, 10 * TIMEOUT_US):
        found.take_repair([(3, 0)], fragments(3)[0], now_us)
        found._arriving[LATER.number].have[0] = False  # as if there were always more to come
        assert [whom for _, whom, _ in found.asking(now_us + 5 * TIMEOUT_US)] in ([], [1])


@pytest.mark.parametrize(("size", "most"), [(1, 10), (10, 10), (11, 10), (65, 1200), (3001, 1200)])
def test_fragments_are_as_few_as_possible_and_even(size: int, most: int) -> None:
    fragment_bytes = even_fragment_bytes([1, size], most)
    assert fragment_bytes <= most
    assert fragments_of(size, fragment_bytes) == fragments_of(size, most)
    assert fragments_of(size, fragment_bytes) * fragment_bytes - size < fragments_of(size, most)


def test_what_is_wanted_of_one_that_says_nothing_takes_turns() -> None:
    """A worker that has stopped, or stands still, is not asked for everything at once."""
    found, _ = reception(PACKET, LATER, give_up_us=200_000)
    found.begin(0)
    asked: list[tuple[int, int]] = []
    while (now_us := found.deadline_us) is not None and now_us < 150_000:
        asked += [(now_us, told.number) for told, _, _ in found.asking(now_us)]
    silent = asked[-10:]
    times_us = [time_us for time_us, _ in silent]
    assert {after - before for before, after in pairwise(times_us)} == {TIMEOUT_US << MOST_DOUBLINGS}
    assert {(a, b) for (_, a), (_, b) in pairwise(silent)} == {(5, 6), (6, 5)}
    # Once it sends anything, all is asked for that is due.
    found.heard(1)
    last_us = times_us[-1]
    assert [told.number for told, _, _ in found.asking(last_us + 1)] == [silent[-2][1]]
