"""How often a host asks for its subscriptions."""

from __future__ import annotations

import itertools

from gradbed.formats.ndn import DISTRIBUTE, INSERT
from gradbed.formats.tlv import Name, generic
from gradbed.hosts.systems.ndn.subscriptions import Subscriptions
from gradbed.hosts.transport.retransmission_timeout import CONSTANT_TIMEOUTS, MAX_BACKED_OFF_US

RETRY_US, REFRESH_US = 20_000, 400_000
STREAM = generic("h1"), generic("training")


def asked_us(subscriptions: Subscriptions, sent: list[Name], begin_us: int, end_us: int) -> list[int]:
    """When Interests leave while nobody answers."""
    times = []
    now_us = begin_us
    while now_us < end_us:
        count = len(sent)
        subscriptions.act(now_us)
        times += [now_us] * (len(sent) - count)
        deadline_us = subscriptions.deadline_us
        assert deadline_us is not None and deadline_us > now_us
        now_us = deadline_us
    return times


def test_a_publisher_that_does_not_answer_is_asked_less_and_less_often() -> None:
    sent: list[Name] = []
    subscriptions = Subscriptions([STREAM], RETRY_US, REFRESH_US, lambda name, fresh: sent.append(name))
    gaps_us = [b - a for a, b in itertools.pairwise(asked_us(subscriptions, sent, 0, 30_000_000))]
    assert set(sent) == {(INSERT, *STREAM)}
    assert gaps_us[: CONSTANT_TIMEOUTS + 1] == [RETRY_US] * CONSTANT_TIMEOUTS + [2 * RETRY_US]
    assert gaps_us == sorted(gaps_us) and gaps_us[-1] == MAX_BACKED_OFF_US
    # An acknowledgement: the next question that is not answered is repeated as soon as the first one was.
    assert subscriptions.take((DISTRIBUTE, *STREAM), 30_000_000)
    again_us = asked_us(subscriptions, sent, 30_000_000, 31_000_000)
    assert again_us[:2] == [30_000_000 + REFRESH_US, 30_000_000 + REFRESH_US + RETRY_US]


def test_it_is_asked_as_often_as_rows_are_refreshed() -> None:
    """Else rows on the way would end between two questions."""
    sent: list[Name] = []
    subscriptions = Subscriptions([STREAM], RETRY_US, 2 * RETRY_US, lambda name, fresh: sent.append(name))
    gaps_us = [b - a for a, b in itertools.pairwise(asked_us(subscriptions, sent, 0, 5_000_000))]
    assert max(gaps_us) == 2 * RETRY_US
