"""One table of one device: its entries by key, its default entry, and what the device knows them by."""

from __future__ import annotations

from typing import NamedTuple

from gradbed.switch.device import Counts, EntryCall, GroupReference, MeterCounts
from gradbed.switch.p4runtime.pipeline.calls import ActionSet, AnyCall, Call
from gradbed.switch.p4runtime.pipeline.keys import Key
from gradbed.switch.state.meters.codec import MeterConfig, MeterSpec
from gradbed.switch.state.profiles.profile_state import ProfileState
from gradbed.switch.state.tables.access import Tables
from gradbed.switch.state.tables.codec import TableCodec

NO_COUNT: Counts = (0, 0)


class Entry(NamedTuple):
    """An entry as it was written, in canonical values; replaced, never changed.

    `installed`: the one-shot group that the entry refers to in the device.
    """

    key: Key
    priority: int
    call: AnyCall
    handle: int
    metadata: bytes = b""
    controller_metadata: int = 0
    meter: MeterConfig | None = None
    idle_timeout_ns: int = 0
    is_const: bool = False
    installed: EntryCall | None = None


class DefaultEntry(NamedTuple):
    """`call` None: what the program declares."""

    call: Call | None = None
    metadata: bytes = b""
    controller_metadata: int = 0


class TableState:
    def __init__(
        self, codec: TableCodec, tables: Tables, profile: ProfileState | None, meter_spec: MeterSpec | None
    ) -> None:
        """`profile`: the table's implementation. `meter_spec`: of its direct meter."""
        self.codec = codec
        self._tables = tables
        self.profile = profile
        self.meter_spec = meter_spec
        self.default = DefaultEntry()
        self.initial = {(entry.key, entry.priority): entry for entry in self._initial_entries()}
        self.entries = dict(self.initial)

    def _initial_entries(self) -> list[Entry]:
        codec = self.codec
        if not codec.initial_entries:
            return []
        handles = self._tables.initial_handles(codec.name)
        return [
            Entry(entry.key, entry.priority, entry.call, handle, is_const=entry.is_const)
            for entry, handle in zip(codec.initial_entries, handles, strict=True)
        ]

    # ---- What entries do ----

    def device_call(self, call: AnyCall) -> EntryCall:
        """For the device. A one-shot group is made; `release` undoes it. Raises NOT_FOUND for other references."""
        if isinstance(call, Call):
            return self.codec.device_call(call)
        assert self.profile is not None
        if isinstance(call, ActionSet):
            return self.profile.install(call)
        return self.profile.reference(call)

    def release(self, device_call: EntryCall, call: AnyCall) -> None:
        """What `device_call` returned is not used, or not any more."""
        if isinstance(call, ActionSet):
            assert self.profile is not None and isinstance(device_call, GroupReference)
            self.profile.uninstall(device_call)

    def put(self, entry: Entry) -> None:
        """Remember an entry that is new or takes the place of the one with its key."""
        place = entry.key, entry.priority
        self._refer(entry.call, 1)
        old = self.entries.get(place)
        self.entries[place] = entry
        if old is not None:
            self._refer(old.call, -1)

    def remove(self, entry: Entry) -> None:
        del self.entries[entry.key, entry.priority]
        self._refer(entry.call, -1)

    def _refer(self, call: AnyCall, by: int) -> None:
        if not isinstance(call, Call | ActionSet):
            assert self.profile is not None
            self.profile.refer(call, by)

    # ---- Direct resources ----

    def count(self, entry: Entry) -> Counts:
        """Packets and bytes of an entry's direct counter."""
        return self._tables.count(self.codec.name, entry.handle)

    def default_count(self) -> Counts:
        return self._tables.count(self.codec.name, None)

    def set_count(self, entry: Entry, counts: Counts) -> None:
        self._tables.write_count(self.codec.name, entry.handle, *counts)

    def set_default_count(self, counts: Counts) -> None:
        self._tables.write_count(self.codec.name, None, *counts)

    def meter_counts(self, entry: Entry) -> MeterCounts:
        """Of an entry's direct meter."""
        return self._tables.meter_counts(self.codec.name, entry.handle)

    def clear_meter_counts(self, entry: Entry) -> None:
        self._tables.clear_meter_counts(self.codec.name, entry.handle)

    def set_meter(self, handle: int, config: MeterConfig | None) -> None:
        """Configure an entry's direct meter; None makes everything green."""
        assert self.meter_spec is not None
        rates = None if config is None else self.meter_spec.rates(config)
        self._tables.write_meter(self.codec.name, handle, rates)
