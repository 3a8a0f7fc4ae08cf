"""CountMinSketch: how often keys were counted, in little memory, never too low."""

from __future__ import annotations

import ctypes
from typing import Any, ClassVar

from finsy.proto import p4d

from gradbed.switch.state import abi
from gradbed.switch.state.externs.kind import ExternKind, ExternState

CELL_BYTES = 4


class CountMinSketch(ExternState):
    """An entry is a tuple of the rows: each the counts of its columns, of four bytes in network byte order."""

    functions: ClassVar[abi.Functions] = {
        "gb_count_min_sketch_clear": (None, (ctypes.c_void_p,)),
        "gb_count_min_sketch_read": (None, (ctypes.c_void_p, ctypes.c_char_p)),
        "gb_count_min_sketch_write": (None, (ctypes.c_void_p, ctypes.c_char_p)),
    }

    def clear(self) -> None:
        with self._guard:
            self._library.gb_count_min_sketch_clear(self._object)

    def read(self) -> Any:
        counts = ctypes.create_string_buffer(self._rows * self._row_bytes)
        with self._guard:
            self._library.gb_count_min_sketch_read(self._object, counts)
        entry = p4d.P4Data()
        for row in range(self._rows):
            entry.tuple.members.add(bitstring=counts.raw[row * self._row_bytes : (row + 1) * self._row_bytes])
        return entry

    def write(self, entry: Any) -> None:
        rows = [row.bitstring for row in entry.tuple.members]
        if [len(row) for row in rows] != self._rows * [self._row_bytes]:
            raise ValueError(
                f"{self.extern.name} takes a tuple of {self._rows} rows of {self._row_bytes} bytes, each a bitstring"
            )
        with self._guard:
            self._library.gb_count_min_sketch_write(self._object, b"".join(rows))

    @property
    def _rows(self) -> int:
        return self.extern.attributes["rows"]

    @property
    def _row_bytes(self) -> int:
        return CELL_BYTES * self.extern.attributes["columns"]


COUNT_MIN_SKETCH = ExternKind(
    name="CountMinSketch",
    type_id=0x81,
    c_name="gb_count_min_sketch",
    attributes={"rows": (1, 16), "columns": (1, 1 << 24)},
    methods={"update": ("key", "in", "out"), "estimate": ("key", "out")},
    state=CountMinSketch,
)
