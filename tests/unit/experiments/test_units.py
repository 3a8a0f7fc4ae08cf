"""Numbers with units, for people."""

from __future__ import annotations

import pytest

from gradbed.experiments.tables.metric import engineering, prefix_of


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (998.0, "B", "998 B"),
        (998.4, "B", "998 B"),
        (0.0, "B", "0 B"),
        (1_234.5, "B", "1.234 kB"),
        (192_000.0, "B", "192 kB"),
        (0.0425, "s", "42.5 ms"),
        (998.4, "", "998.4"),
    ],
)
def test_bytes_have_no_parts(value: float, unit: str, text: str) -> None:
    assert engineering(value, unit) == text


def test_values_beside_each_other_share_a_prefix() -> None:
    times = [4.976e-3, 433.9e-6, None, 0.0]
    scale = prefix_of(times, "s")
    assert [engineering(each, "s", scale=scale) for each in times if each is not None] == [
        "4.976 ms",
        "0.4339 ms",
        "0 ms",
    ]
    assert prefix_of([None, 0.0], "s") == prefix_of([3.0, 4.0], "") == (1.0, "")
    assert prefix_of([1.35e9, 897.3e6], "bit/s") == (1e9, "G")
