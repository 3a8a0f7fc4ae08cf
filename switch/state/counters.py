"""Counters that programs index: their cells, their descriptions in P4Info and BMv2 JSON, and their P4Runtime entity.

Counters of table entries belong to the tables. P4Runtime specification 1.4, section "CounterEntry".
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from finsy.proto import p4r

from gradbed.switch.bmv2_json.model import ProgramModel
from gradbed.switch.device import Counts
from gradbed.switch.p4runtime.status import invalid
from gradbed.switch.p4runtime.values import Translations
from gradbed.switch.state import abi
from gradbed.switch.state.abi import StateAccessor, SwitchRecord, check, checked_index, number_of
from gradbed.switch.state.base import CellArray, CellEntries

# ---- Cells in the runtime library ----


class Counters(StateAccessor):
    def __init__(self, switch: SwitchRecord) -> None:
        super().__init__(switch)
        self._numbers = {name: i for i, name in enumerate(switch.model.indirect_counters)}

    def read(self, counter: str, index: int) -> Counts:
        return self._read(counter, index, 1)[0]

    def read_all(self, counter: str) -> list[Counts]:
        return self._read(counter, 0, self._counter(counter).size)

    def write(self, counter: str, index: int, packets: int, bytes_: int) -> None:
        cells = self._counter(counter)
        count = abi.CountStruct(abi.fits(packets, 64, "packets"), abi.fits(bytes_, 64, "bytes"))
        with self._guard:
            check(
                self._library.gb_counter_set(ctypes.byref(cells), checked_index(index), ctypes.byref(count)),
                IndexError(f"counter {counter} has {cells.size} cells, no index {index}"),
            )

    def _counter(self, name: str) -> Any:
        return self._contents.counters[number_of(self._numbers, name, "indirect counter")]

    def _read(self, name: str, first: int, count: int) -> list[Counts]:
        cells = self._counter(name)
        counts = (abi.CountStruct * max(1, count))()
        with self._guard:
            check(
                self._library.gb_counter_get(ctypes.byref(cells), checked_index(first), count, counts),
                IndexError(f"counter {name} has {cells.size} cells, no index {first}"),
            )
        numbers = memoryview(counts).cast("B").cast("Q").tolist()[: 2 * count]
        return list(zip(numbers[::2], numbers[1::2], strict=True))


# ---- P4Info and BMv2 JSON ----


def counter_array(counter: Any, info: Any, program: ProgramModel, names: Translations) -> CellArray:
    """Build it from a p4.config.v1.Counter. Raises ValueError where the BMv2 JSON has no such counter."""
    name = counter.preamble.name
    if name not in program.indirect_counters:
        raise ValueError(f"counter {name!r} of the P4Info is not in the BMv2 JSON")
    return CellArray(counter.preamble.id, name, program.counters[name].size)


# ---- CounterEntry ----


INT64_GREATEST = (1 << 63) - 1
_ZERO = (0, 0)
_CELLS_PER_PAGE = 1024
_PAGES = 64


class CounterEntries(CellEntries[CellArray]):
    oneof = "counter_entry"
    what = "counter"

    def __init__(self, counters: Counters, arrays: Mapping[int, CellArray]) -> None:
        super().__init__(arrays)
        self._counters = counters

    def modify(self, message: Any) -> None:
        counter, indices = self._addressed(message)
        if not message.HasField("data"):
            return
        counts = read_counter_data(message.data)
        for index in indices:
            self._counters.write(counter.name, index, *counts)

    def export(self) -> Iterator[Any]:
        for counter in self._arrays.values():
            for index, counts in enumerate(self._counters.read_all(counter.name)):
                if counts != _ZERO:
                    yield self._update(counter, index, counts)

    def _cells(self, array: CellArray, indices: range, message: Any) -> Sequence[Counts]:
        if len(indices) == 1:
            return [self._counters.read(array.name, indices.start)]
        return self._counters.read_all(array.name)

    def _entity(self, array: CellArray, index: int, cell: Counts) -> Any:
        if cell == _ZERO:
            return _zero_entities(array.p4_id, index // _CELLS_PER_PAGE)[index % _CELLS_PER_PAGE]
        return super()._entity(array, index, cell)

    def _fill(self, entry: Any, array: CellArray, index: int, cell: Counts) -> None:
        _fill_counter(entry, array.p4_id, index, cell)


@lru_cache(_PAGES)
def _zero_entities(counter_id: int, page: int) -> Sequence[Any]:
    """Return the entities of cells that have counted nothing, as most have: made once, and copied into each answer.

    Callers must not change them.
    """
    kept = p4r.ReadResponse()  # one message has them all: one by one they would take several times as much memory
    for index in range(page * _CELLS_PER_PAGE, (page + 1) * _CELLS_PER_PAGE):
        _fill_counter(kept.entities.add().counter_entry, counter_id, index, _ZERO)
    return list(kept.entities)


def _fill_counter(entry: Any, counter_id: int, index: int, counts: Counts) -> None:
    entry.counter_id = counter_id
    entry.index.index = index
    fill_counter_data(entry.data, counts)


def read_counter_data(data: Any) -> Counts:
    """Return the packets and bytes of a CounterData. Raises INVALID_ARGUMENT if one is negative."""
    if data.packet_count < 0 or data.byte_count < 0:
        raise invalid("a counter cannot be negative")
    return data.packet_count, data.byte_count


def fill_counter_data(data: Any, counts: Counts) -> None:
    """Fill a CounterData, which has 63 bits for what the device counts with 64. It is set even if it is all zeros."""
    packets, bytes_ = counts
    data.packet_count = packets & INT64_GREATEST
    data.byte_count = bytes_ & INT64_GREATEST
