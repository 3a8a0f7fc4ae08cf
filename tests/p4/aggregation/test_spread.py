"""Slots by hash of aggregation.p4 against fragments that are thrown into slots at random: packet numbers follow each
other, and must spread like any others."""

from __future__ import annotations

import math
import zlib

import pytest

from tests.p4.aggregation.still_switch import StillSwitch
from tests.random_hashing import SIGMAS, assert_random, occupied

RUNS = 40


@pytest.mark.parametrize(
    ("slots", "fragments"),
    [(16, 64), (64, 64), (128, 64), (256, 64), (100, 64), (100, 100), (48, 32), (512, 400), (1024, 300)],
)
@pytest.mark.parametrize("first_number", [0, 1000, 0xFFFFFF00])
def test_as_many_find_a_slot_as_if_thrown_at_random(slots: int, fragments: int, first_number: int) -> None:
    """(A/L)(1 - (1 - 1/A)^L) of L consecutive fragments, in the mean of some jobs that have A slots each."""
    with StillSwitch(RUNS * 1024) as switch:
        claimed = []
        for run in range(RUNS):
            job = 1 + run
            switch.share(job, run * slots, slots)
            numbers = (first_number + 977 * run + number for number in range(fragments))
            switch.send(job, (number % 2**32 for number in numbers))
            claimed.append(switch.count(job, "claimed"))
            # No fragment has been answered, so the others found their slot held.
            assert claimed[-1] + switch.count(job, "collision") == fragments
    assert_random(claimed, slots, fragments)


def test_jobs_that_share_a_range_do_not_meet_everywhere() -> None:
    """Two jobs' fragments with equal numbers fall into slots as two times as many of one job would."""
    slots, fragments, runs = 64, 32, 20
    claimed = 0
    with StillSwitch(runs * slots) as switch:
        for run in range(runs):
            for job in (2 * run + 1, 2 * run + 2):
                switch.share(job, run * slots, slots)
                switch.send(job, range(fragments))
                claimed += switch.count(job, "claimed")
    mean, variance = occupied(slots, 2 * fragments)
    assert claimed / runs == pytest.approx(mean, abs=SIGMAS * math.sqrt(variance / runs))


def test_a_crc_alone_would_not_do() -> None:
    """Why it is mixed (docs/figures.md, figure 4): what a linear hash makes of numbers that follow each other."""
    numbers = [[first + n for n in range(64)] for first in range(0, 100_000, 977)]

    def used(slots: int) -> set[int]:
        return {len({zlib.crc32(n.to_bytes(6, "big")) % slots for n in each}) for each in numbers}

    assert (min(used(64)), max(used(64))) == (16, 32)
    assert used(256) == {64}
