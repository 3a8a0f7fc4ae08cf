"""Whether all slots of a range are held, wherever it begins and ends: held_slots.p4 of the aggregation against a
set."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import pytest

from gradbed.formats.aggregation import Flags
from tests.p4.aggregation.still_switch import StillSwitch

SLOTS = 3 * 4096 + 100
"""More than two words of words of 64."""
IDLE_US = 64 << 17
HOLDER, ASKER = 1, 2
"""Jobs: the first may hold any slot, by its packet number; the second's range changes."""


class Slots(StillSwitch):
    """Use as a context manager."""

    def __init__(self) -> None:
        super().__init__(SLOTS)
        self.give(HOLDER, 0, SLOTS)
        self._number = np.arange(SLOTS)  # of the holder's fragment: a slot takes none again that it has had

    def hold(self, *slots: int) -> None:
        self.send(HOLDER, self._number[list(slots)])

    def free(self, *slots: int) -> None:
        self.send(HOLDER, self._number[list(slots)], Flags.ACK)
        self._number[list(slots)] += SLOTS

    def exhausted(self, slots: range, held: int) -> bool:
        """Whether the job with these slots, of which `held` is another's, counts exhaustion."""
        self.give(ASKER, slots.start, len(slots))
        before = self.count(ASKER, "contention"), self.count(ASKER, "exhaustion")
        self.send(ASKER, [held - slots.start])
        assert self.count(ASKER, "contention") == before[0] + 1
        return self.count(ASKER, "exhaustion") > before[1]


def ranges() -> Iterator[range]:
    """Beginning and ending in every position to the words of 64 slots, and of 64 words."""
    edges = sorted({edge + d for edge in (0, 64, 128, 4096, 4160, 8192, 12288, SLOTS) for d in (-65, -64, -1, 0, 1)})
    edges = [edge for edge in edges if 0 <= edge <= SLOTS]
    choice = random.Random(1)
    pairs = [(a, b) for i, a in enumerate(edges) for b in edges[i + 1 :]]
    for a, b in choice.sample(pairs, 150):
        yield range(a, b)


@pytest.mark.commit_cases(1)
@pytest.mark.parametrize("whole", [True, False])
def test_all_slots_of_a_range_are_held(whole: bool) -> None:
    """Each range with its neighbours held or free, then with single slots missing."""
    choice = random.Random(2)
    with Slots() as switch:
        if whole:
            switch.hold(*range(SLOTS))
        for slots in ranges():
            if not whole:
                switch.hold(*slots)
            assert switch.exhausted(slots, choice.choice(slots))
            for missing in {slots[0], slots[-1], choice.choice(slots)} if len(slots) > 1 else ():
                held = slots[0] if slots[0] != missing else slots[-1]
                neighbour = next(slot for slot in (missing + 1, missing - 1) if slot in slots)
                switch.free(missing, neighbour)
                switch.hold(neighbour)
                assert not switch.exhausted(slots, held)
                switch.hold(missing)
                assert switch.exhausted(slots, held)
            if not whole:
                switch.free(*slots)


def test_a_slot_that_changes_its_range_is_held_once() -> None:
    with StillSwitch(4) as switch:
        switch.give(HOLDER, 0, 3)
        switch.give(ASKER, 1, 2)
        switch.send(HOLDER, [1])
        switch.wait(IDLE_US)
        switch.send(ASKER, [0, 1])  # the first in the holder's slot
        assert (switch.count(ASKER, "reclaimed"), switch.count(ASKER, "claimed")) == (1, 1)
        switch.send(ASKER, [2])
        assert switch.count(ASKER, "exhaustion") == 1
        switch.send(ASKER, [1], Flags.ACK)
        switch.send(ASKER, [2])
        assert (switch.count(ASKER, "collision"), switch.count(ASKER, "exhaustion")) == (2, 1)


def test_a_slot_that_a_resend_takes_along_is_free() -> None:
    with StillSwitch(2) as switch:
        for job in (HOLDER, ASKER):
            switch.give(job, 0, 2)
        switch.send(HOLDER, [0, 1])
        switch.send(ASKER, [0])
        assert switch.count(ASKER, "exhaustion") == 1
        switch.send(HOLDER, [1], Flags.RESEND)
        switch.send(ASKER, [0])
        assert (switch.count(ASKER, "contention"), switch.count(ASKER, "exhaustion")) == (2, 1)
