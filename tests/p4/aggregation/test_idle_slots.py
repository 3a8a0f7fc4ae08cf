"""When a slot counts as idle, so that whoever needs it takes it over: verdict.p4 of the aggregation by the
tick."""

from __future__ import annotations

import pytest

from hosts.systems.aggregation.gradient_format import Flags
from tests.p4.aggregation.still_switch import StillSwitch

TICK_US = 1 << 17
IDLE_TICKS = 64
TICKS = 1 << 14
"""After so many the clock of the slots begins again."""
HOLDER, OTHER = 1, 2


def taken_over(switch: StillSwitch, number: int) -> bool:
    """Whether another job's fragment gets the slot."""
    before = switch.count(OTHER, "reclaimed")
    switch.send(OTHER, [number])
    return switch.count(OTHER, "reclaimed") > before


@pytest.mark.parametrize("start_ticks", [0, 1000, TICKS - 30])
@pytest.mark.parametrize(("event", "worker", "flags"), [("claimed", 0, 0), ("added", 1, 0), ("duplicate", 0, 0)])
def test_a_slot_is_idle_after_64_ticks_without_use(start_ticks: int, event: str, worker: int, flags: int) -> None:
    with StillSwitch(1) as switch:
        switch.give(HOLDER, 0, 1)
        switch.give(OTHER, 0, 1)
        switch.wait(start_ticks * TICK_US)
        switch.send(HOLDER, [0])
        if event != "claimed":
            switch.wait((IDLE_TICKS - 1) * TICK_US)
            switch.send(HOLDER, [0], flags, worker)
        assert switch.count(HOLDER, event) == 1
        switch.wait((IDLE_TICKS - 1) * TICK_US)
        assert not taken_over(switch, 7)
        switch.wait(TICK_US)
        assert taken_over(switch, 7)


def test_what_a_slot_cannot_take_does_not_keep_it() -> None:
    with StillSwitch(1) as switch:
        switch.give(HOLDER, 0, 1)
        switch.give(OTHER, 0, 1)
        switch.send(HOLDER, [0])
        switch.wait((IDLE_TICKS - 1) * TICK_US)
        switch.send(HOLDER, [1])
        switch.send(OTHER, [0])
        switch.send(OTHER, [0], Flags.RETRY)
        switch.send(HOLDER, [1], Flags.ACK)
        switch.wait(TICK_US)
        assert taken_over(switch, 7)
