"""Parser value sets, through the runtime library."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import ClassVar

from gradbed.switch.state import abi
from gradbed.switch.state.record import Access, SwitchRecord, check, number_of


class ValueSets(Access):
    functions: ClassVar[abi.Functions] = {
        "gb_value_set_replace": (ctypes.c_int, (ctypes.c_void_p, ctypes.c_uint32, abi.ConstWords, abi.ConstWords)),
    }

    def __init__(self, switch: SwitchRecord) -> None:
        super().__init__(switch)
        self._widths_bits = {name: value_set.width for name, value_set in switch.model.value_sets.items()}
        self._numbers = {name: i for i, name in enumerate(self._widths_bits)}

    def write(self, value_set: str, members: Sequence[tuple[int, int]]) -> None:
        """Replace the members: (value, mask) pairs over the select expression's fields put together."""
        number = number_of(self._numbers, value_set, "value set")
        width, what = self._widths_bits[value_set], f"value set {value_set}"
        values = abi.packed((abi.fits(value, width, what), width) for value, _ in members)
        masks = abi.packed((abi.fits(mask, width, what), width) for _, mask in members)
        with self._guard:
            pointer = self._contents.value_sets[number]
            check(self._library.gb_value_set_replace(pointer, len(members), values, masks), IndexError())
