"""CounterEntry: cells of indirect counters. P4Runtime specification 1.4, section "CounterEntry"."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from finsy.proto import p4r

from switch.p4runtime.entities.base import EntityKind
from switch.p4runtime.pipeline.pipeline import CounterArray
from switch.p4runtime.roles import Role
from switch.p4runtime.values.status import invalid, not_found, out_of_range

INT64_GREATEST = (1 << 63) - 1


class CounterEntries(EntityKind):
    oneof = "counter_entry"

    def p4_id(self, message: Any) -> int:
        counter_id: int = message.counter_id
        return counter_id

    def modify(self, message: Any) -> None:
        counter = self._counter(message.counter_id)
        indices = self._indices(counter, message)
        if not message.HasField("data"):
            return
        packets, bytes_ = read_counter_data(message.data)
        for index in indices:
            self._device.counter_write(counter.name, index, packets, bytes_)

    def read(self, message: Any, role: Role) -> Iterable[Any]:
        if message.counter_id == 0:
            counters = [c for c in self._pipeline.counters.values() if role.reads(c.counter_id)]
            return self._encode([(c, 0, self._device.counter_read_all(c.name)) for c in counters])
        counter = self._counter(message.counter_id)
        indices = self._indices(counter, message)
        if not role.reads(counter.counter_id):
            return ()
        if message.HasField("index"):
            counts = [self._device.counter_read(counter.name, indices.start)]
        else:
            counts = self._device.counter_read_all(counter.name)
        return self._encode([(counter, indices.start, counts)])

    def export(self) -> Iterator[Any]:
        for counter in self._pipeline.counters.values():
            for index, counts in enumerate(self._device.counter_read_all(counter.name)):
                if counts != (0, 0):
                    update = p4r.Update(type=p4r.Update.MODIFY)
                    _fill(update.entity.counter_entry, counter, index, counts)
                    yield update

    def _counter(self, counter_id: int) -> CounterArray:
        counter = self._pipeline.counters.get(counter_id)
        if counter is None:
            raise not_found(f"there is no counter {counter_id}") if counter_id else invalid("counter_id is not set")
        return counter

    def _indices(self, counter: CounterArray, message: Any) -> range:
        if not message.HasField("index"):
            return range(counter.size)
        return check_index(message.index.index, counter.size, f"counter {counter.name}")

    @staticmethod
    def _encode(found: list[tuple[CounterArray, int, list[tuple[int, int]]]]) -> Iterator[Any]:
        for counter, first, counts in found:
            for index, count in enumerate(counts, first):
                entity = p4r.Entity()
                _fill(entity.counter_entry, counter, index, count)
                yield entity


def check_index(index: int, size: int, name: str) -> range:
    """The one index of an array as a range. Raises INVALID_ARGUMENT and OUT_OF_RANGE as the specification says."""
    if index < 0:
        raise invalid(f"{name}: index {index} is negative")
    if index >= size:
        raise out_of_range(f"{name} has {size} cells, there is no index {index}")
    return range(index, index + 1)


def read_counter_data(data: Any) -> tuple[int, int]:
    """Packets and bytes of a CounterData. Raises INVALID_ARGUMENT if one is negative."""
    if data.packet_count < 0 or data.byte_count < 0:
        raise invalid("a counter cannot be negative")
    return data.packet_count, data.byte_count


def fill_counter_data(data: Any, counts: tuple[int, int]) -> None:
    """CounterData has 63 bits for what the device counts with 64."""
    data.packet_count = counts[0] & INT64_GREATEST
    data.byte_count = counts[1] & INT64_GREATEST


def _fill(entry: Any, counter: CounterArray, index: int, counts: tuple[int, int]) -> None:
    entry.counter_id = counter.counter_id
    entry.index.index = index
    entry.data.SetInParent()
    fill_counter_data(entry.data, counts)
