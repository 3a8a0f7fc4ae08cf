"""When a slot counts as idle, so that whoever needs it takes it over: verdict.p4 of the aggregation by the
tick."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from gradbed.formats.aggregation import Flags
from tests.emulation.sandboxed import in_sandbox
from tests.p4.aggregation.aggregation_packets import (
    DEFINES,
    Run,
    colliding_numbers,
    failures_of_one_switch,
    gradient,
    resend,
)
from tests.p4.aggregation.still_switch import StillSwitch
from tests.p4.switch_under_test import on_every_pair

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


def an_idle_slot_goes_to_who_needs_it(run: Run) -> None:
    first, second = colliding_numbers()
    run.consumed(gradient(0, first))
    time.sleep(0.3)  # the clock ticks every 131 ms
    run.consumed(gradient(0, second))
    run.sum_to_server(resend(1, second), 0, 1)
    assert run.events() == {"claimed": 1, "reclaimed": 1, "added": 1, "resend_summed": 1}


@pytest.mark.root
@on_every_pair
@in_sandbox
def test_idle_slots(kind: str, compiler: str, tmp_path: Path) -> None:
    """By the wall clock."""
    defines = {**DEFINES, "RECLAIM_IDLE_TICKS": "2"}
    assert failures_of_one_switch(__name__, kind, compiler, tmp_path, defines) == []
