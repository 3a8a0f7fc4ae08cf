"""CounterEntry: cells of indirect counters. P4Runtime specification 1.4, section "CounterEntry"."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from finsy.proto import p4r

from gradbed.switch.device import Counts
from gradbed.switch.p4runtime.values.status import invalid
from gradbed.switch.state.base import CellArray, CellEntries
from gradbed.switch.state.counters.access import Counters

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
    """Those of cells that have counted nothing, as most have: made once, and copied into each answer. Nobody may
    change them."""
    kept = p4r.ReadResponse()  # one message has them all: one by one they would take several times as much memory
    for index in range(page * _CELLS_PER_PAGE, (page + 1) * _CELLS_PER_PAGE):
        _fill_counter(kept.entities.add().counter_entry, counter_id, index, _ZERO)
    return list(kept.entities)


def _fill_counter(entry: Any, counter_id: int, index: int, counts: Counts) -> None:
    entry.counter_id = counter_id
    entry.index.index = index
    fill_counter_data(entry.data, counts)


def read_counter_data(data: Any) -> Counts:
    """Packets and bytes of a CounterData. Raises INVALID_ARGUMENT if one is negative."""
    if data.packet_count < 0 or data.byte_count < 0:
        raise invalid("a counter cannot be negative")
    return data.packet_count, data.byte_count


def fill_counter_data(data: Any, counts: Counts) -> None:
    """CounterData has 63 bits for what the device counts with 64. It is there then, if only with zeros."""
    packets, bytes_ = counts
    data.packet_count = packets & INT64_GREATEST
    data.byte_count = bytes_ & INT64_GREATEST
