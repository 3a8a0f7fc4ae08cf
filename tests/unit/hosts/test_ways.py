"""Fragments whose gradients are summed at the same switches go the same way."""

from __future__ import annotations

import pytest

from hosts.transport.ways import ways


def test_ways_are_those_of_all_workers_together() -> None:
    assert ways([["a", "b", "a", "c"], ["b", "a", "a", "c"], []]) == (0, 0, 1, 2)


@pytest.mark.parametrize("nothing", [[], [[], []]])
def test_straight_to_the_server_is_one_way(nothing: list[list[str]]) -> None:
    assert ways(nothing) == (0,)


def test_workers_take_turns_together() -> None:
    with pytest.raises(ValueError, match="longer"):
        ways([["a"], ["a", "b"]])
