"""How a worker picks rows of its arrays."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hosts.systems.aggregation.server_exchange import as_slice


@given(st.lists(st.integers(0, 9), min_size=1, max_size=6))
def test_rows_are_the_same_by_slice_and_by_number(numbers: list[int]) -> None:
    rows = np.arange(10)
    chosen = as_slice(numbers)
    assert rows[chosen].tolist() == numbers
    assert isinstance(chosen, slice) == (numbers == list(range(numbers[0], numbers[0] + len(numbers))))
