"""When a peer asks for what did not come: after RFC 6298's timeout over past gaps, by hand here."""

from __future__ import annotations

from gradbed.hosts.systems.ndn.reception import ProbeTimer

FIRST_US, LEAST_US, MOST_US = 100_000, 5_000, 1_000_000


def started(*gaps_us: int | None, at_us: int = 1_000_000) -> int | None:
    """How long the timer runs after these gaps."""
    timer = ProbeTimer(FIRST_US, LEAST_US, MOST_US)
    for gap_us in gaps_us:
        timer.start(0)
        timer.stop(gap_us)
        assert timer.deadline_us is None
    timer.start(at_us)
    return None if timer.deadline_us is None else timer.deadline_us - at_us


def test_it_learns_how_long_a_push_takes() -> None:
    assert started() == FIRST_US
    assert started(8_000) == 8_000 + 4 * 4_000
    assert started(8_000, 8_000) == 8_000 + 4 * 3_000
    assert started(8_000, 16_000) == 9_000 + 4 * (3_000 + 2_000)
    assert started(1_000) == 1_000 + LEAST_US, "no margin below the least silence"
    assert started(-400) == LEAST_US, "a push that came before the own one"


def test_it_learns_nothing_of_what_had_to_be_asked_for() -> None:
    assert started(None, None) == FIRST_US
    assert started(8_000, None) == started(8_000)


def test_silence_is_doubled_until_something_comes() -> None:
    timer = ProbeTimer(FIRST_US, LEAST_US, MOST_US)
    timer.start(0)
    silences_us = []
    for _ in range(9):
        timer.expired(0)
        silences_us.append(timer.deadline_us)
    assert silences_us == [10_000, 20_000, 40_000, 80_000, 160_000, 320_000, 640_000, MOST_US, MOST_US]
    timer.arrived(7)
    assert timer.deadline_us == 7 + LEAST_US
    timer.expired(0)
    assert timer.deadline_us == 2 * LEAST_US
