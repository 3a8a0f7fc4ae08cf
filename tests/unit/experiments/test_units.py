"""Numbers with units, for people."""

from __future__ import annotations

import pytest

from gradbed.experiments.tables.metric import engineering


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
