"""Fragments whose gradients are summed at the same switches take the same path."""

from __future__ import annotations

import pytest

from gradbed.hosts.systems.aggregation.config import aggregation_paths


def test_paths_are_those_of_all_workers_together() -> None:
    assert aggregation_paths([["a", "b", "a", "c"], ["b", "a", "a", "c"], []]) == (0, 0, 1, 2)


@pytest.mark.parametrize("nothing", [[], [[], []]])
def test_straight_to_the_server_is_one_path(nothing: list[list[str]]) -> None:
    assert aggregation_paths(nothing) == (0,)


def test_workers_take_turns_together() -> None:
    with pytest.raises(ValueError, match="longer"):
        aggregation_paths([["a"], ["a", "b"]])
