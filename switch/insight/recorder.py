"""Programs built to report what they do, the recorder of it (switch/runtime/trace.c), and its records.

Packets pass in a thread that uses a recorder. Where the data plane is a thread of its own, records are kept while it
runs and handed over as a file."""

from __future__ import annotations

import contextlib
import ctypes
import enum
import functools
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradbed.common.c_library import shared_library
from gradbed.switch.bmv2_json.load import load_program
from gradbed.switch.bmv2_json.model import Table, words_of
from gradbed.switch.codegen.emit.probes import RecordingProbes, Site, TableApplied
from gradbed.switch.codegen.layout import REQUEST_FIELDS, STANDARD_FIELDS, Layout
from gradbed.switch.codegen.program import BuiltProgram, generate
from gradbed.switch.engine import Engine, EngineDevice
from gradbed.switch.runtime.library import RUNTIME_DIR, TRACE_HEADERS, runtime_library
from gradbed.switch.state.device import SwitchState

# ---- Instrumented programs ----


@dataclass(frozen=True)
class InstrumentedProgram(BuiltProgram):
    """A gradbed.switch.device.Program whose records refer to `sites` by number."""

    sites: tuple[Site, ...]
    layout: Layout


def build_instrumented(bmv2_json: Mapping[str, Any]) -> InstrumentedProgram:
    """Generate and compile. Raises as gradbed.switch.codegen.build_program does."""
    model = load_program(bmv2_json)
    probes = RecordingProbes()
    text = generate(model, probes=probes)
    # Packets are few here, and the text is long since its loops are unrolled: compiling is what a person waits for.
    library = shared_library("instrumented", (), text, include_dirs=(RUNTIME_DIR,), optimise="-O0")
    return InstrumentedProgram(dict(bmv2_json), library, model, tuple(probes.sites), Layout(model))


# ---- Recorders ----


class Level(enum.IntEnum):
    """Detail of recording: points that were reached, or these with all values."""

    POINTS = TRACE_HEADERS.constant("GB_TRACE_POINTS")
    VALUES = TRACE_HEADERS.constant("GB_TRACE_VALUES")


@functools.cache
def _library() -> ctypes.CDLL:
    library = runtime_library()
    TRACE_HEADERS.bind(library, "gb_recorder_")
    return library


class Recorder:
    """Keeps records as the words that they are, until `close`, when it is not in use any more."""

    def __init__(self, level: Level) -> None:
        found = _library().gb_recorder_open(level)
        if not found:
            raise MemoryError("there is no memory for a recorder")
        self.pointer: int = found
        self.level = level

    def close(self) -> None:
        _library().gb_recorder_close(self.pointer)

    def take(self) -> bytes:
        """Return the words since the last call, 8 bytes each (as_words).

        Raises MemoryError if they were too many to keep.
        """
        count, lost = ctypes.c_uint64(), ctypes.c_int()
        first = _library().gb_recorder_words(self.pointer, ctypes.byref(count), ctypes.byref(lost))
        words = ctypes.string_at(first, 8 * count.value) if count.value else b""
        _library().gb_recorder_clear(self.pointer)
        if lost.value:
            raise MemoryError("too much happened to record it all: packets may be going round in circles")
        return words

    def entries(self, state: SwitchState, tables: int) -> bytes:
        """Return words (read_entries) of the entries of a switch's tables as they are now, by table and handle.

        Records not taken yet are lost. `tables`: how many the program has.
        """
        _library().gb_recorder_clear(self.pointer)
        for number in range(tables):
            _library().gb_recorder_list_entries(self.pointer, state.record, number)
        return self.take()


def as_words(data: bytes) -> Sequence[int]:
    return memoryview(data).cast("Q")


_in_use = threading.local()


@contextlib.contextmanager
def recording(level: Level) -> Iterator[Recorder]:
    """Record what instrumented programs do in this thread, which has one recorder at a time."""
    if getattr(_in_use, "recorder", None) is not None:
        raise RuntimeError("this thread records already: leave the other recorder first")
    recorder = _in_use.recorder = Recorder(level)
    _library().gb_recorder_use(recorder.pointer)
    try:
        yield recorder
    finally:
        _library().gb_recorder_use(None)
        _in_use.recorder = None
        recorder.close()


# ---- Networks whose data plane is a thread of its own ----


class NetworkRecorder:
    """The recorder of an engine that does not run yet; closed after it."""

    def __init__(self, engine: Engine, devices: Mapping[int, EngineDevice], level: Level) -> None:
        self._engine = engine
        self._devices = devices
        self._recorder = Recorder(level)
        self._addresses: dict[int, int] = {}
        """Device ids by the addresses of their states, the last that each address had."""
        self._parts: list[tuple[bytes, dict[int, int]]] = []
        """Words, and what addresses meant in them."""
        self._lost = False
        engine.record(self._recorder.pointer)

    def close(self) -> None:
        self._recorder.close()

    def before_restart(self) -> None:
        """Take records before a switch loses its state, whose address may become another one's."""
        with self._engine.guard:
            self._take()

    def _take(self) -> None:
        running = {device.state.pointer: number for number, device in self._devices.items() if device.program}
        self._addresses = {**self._addresses, **running}
        try:
            self._parts.append((self._recorder.take(), dict(self._addresses)))
        except MemoryError:
            self._lost = True

    def write(self, file: Path) -> dict[str, Any]:
        """Write the words since the last call, and behind them those of the entries of each switch as they are now;
        what is to be known to read them (read_recording). MemoryError if they were too many."""
        devices = []
        with self._engine.guard, file.open("wb") as target:
            self._take()
            if self._lost:
                raise MemoryError("more was recorded than can be kept")
            taken, self._parts = self._parts, []
            parts = [{"words": target.write(words) // 8, "devices": list(of.items())} for words, of in taken]
            for device_id, device in self._devices.items():
                entries = 0
                if isinstance(device.program, InstrumentedProgram):
                    found = self._recorder.entries(device.state, len(device.program.model.tables))
                    entries = target.write(found) // 8
                devices.append({"device_id": device_id, "start_ns": device.start_ns, "entry_words": entries})
        return {"parts": parts, "devices": devices}


@dataclass(frozen=True)
class TraceRecording:
    """Records of many switches."""

    parts: Sequence[tuple[Sequence[int], Mapping[int, int]]]
    """Words, and device ids by the addresses of states in them."""
    entries: Mapping[int, Sequence[int]]
    """Words by device id."""
    start_us: Mapping[int, int]
    """When each switch came up, after the first one."""


def read_recording(file: Path, written: Mapping[str, Any]) -> TraceRecording:
    """Read a file; `written` is what NetworkRecorder.write returned."""
    every, at = as_words(file.read_bytes()), 0
    parts, entries = [], {}
    for part in written["parts"]:
        parts.append((every[at : at + part["words"]], dict(part["devices"])))
        at += part["words"]
    for each in written["devices"]:
        entries[each["device_id"]] = every[at : at + each["entry_words"]]
        at += each["entry_words"]
    first_ns = min(each["start_ns"] for each in written["devices"])
    start_us = {each["device_id"]: (each["start_ns"] - first_ns) // 1000 for each in written["devices"]}
    return TraceRecording(parts, entries, start_us)


# ---- Records (switch/runtime/trace.h) ----


STANDARD_WORDS = len(STANDARD_FIELDS)
REQUEST_WORDS = len(REQUEST_FIELDS)
_NONE = 2**64 - 1
_KIND_BEGIN, _KIND_END, _KIND_STEP, _KIND_TABLE, _KIND_ACCESS, _KIND_CELL, _KIND_ENTRY = range(1, 8)
_ARRAYS = ("register", "counter", "meter")

Changes = tuple[tuple[int, int], ...]
"""(place, word): places count words of standard metadata, requests and PHV together."""


@dataclass(frozen=True)
class FieldMatch:
    """An entry's match of one key field: value under mask; in range fields low to high (else None)."""

    value: int
    mask: int
    low: int | None = None
    high: int | None = None


@dataclass(frozen=True)
class RecordedEntry:
    """A table entry, or a table's default entry."""

    table: str
    handle: int | None
    """Handle; None for the default entry."""
    priority: int
    match: tuple[FieldMatch, ...]
    """Match of each key field; empty without a handle."""
    member: int | None
    group: int | None
    packets: int
    bytes: int
    action_id: int | None
    """Action that it runs; None for none."""
    arguments: tuple[int, ...]

    @property
    def identity(self) -> tuple[str, int, tuple[FieldMatch, ...]]:
        """Return what makes it this entry, even if it is deleted and inserted again."""
        return self.table, self.priority, self.match


@dataclass(frozen=True)
class Begin:
    """Begin of a pass."""

    site: Site
    number: int
    parent: int
    packet: int
    instance_type: int
    switch: int
    """Address of its state."""
    state: Sequence[int]
    """Words of standard metadata, requests and PHV; empty where values are not recorded."""
    frame: bytes
    """What the parser is given; empty where values are not recorded."""


@dataclass(frozen=True)
class End:
    site: Site
    packet: int
    state: Sequence[int]
    frame: bytes


@dataclass(frozen=True)
class Step:
    """A point that was reached."""

    site: Site
    offset: int
    """Bytes of the frame that the parser has taken."""
    changes: Changes


@dataclass(frozen=True)
class Lookup:
    site: TableApplied
    hit: bool
    entry: RecordedEntry
    key: tuple[int, ...]
    changes: Changes


@dataclass(frozen=True)
class CellBefore:
    """A cell before it is used."""

    site: Site
    kind: str
    array: int
    """Index among the program's arrays of that kind."""
    index: int
    words: tuple[int, ...]
    """Words that the cell holds; none for a meter."""


@dataclass(frozen=True)
class CellAfter:
    site: Site
    words: tuple[int, ...]


Record = Begin | End | Step | Lookup | CellBefore | CellAfter


def split_records(words: Sequence[int]) -> Iterator[tuple[int, int, Sequence[int]]]:
    """Yield (kind, site, words) of each record."""
    at = 0
    while at < len(words):
        head = words[at]
        length = head & 0xFFFFFF
        yield head >> 24 & 0xFF, head >> 32, words[at + 1 : at + 1 + length]
        at += 1 + length


def read_records(program: InstrumentedProgram, with_values: bool, words: Sequence[int]) -> list[Record]:
    return [_record(program, kind, site, body, with_values) for kind, site, body in split_records(words)]


@dataclass(frozen=True)
class SwitchPass:
    """Records of one pass of a packet through a parser or pipeline of a switch."""

    device_id: int
    program: InstrumentedProgram
    records: Sequence[Record]


def switch_passes(
    switches: Mapping[int, tuple[int, InstrumentedProgram]], with_values: bool, words: Sequence[int]
) -> Iterator[SwitchPass]:
    """Yield the records of many switches, pass by pass.

    `switches`: device id and program, by the address of the state.
    """
    device: tuple[int, InstrumentedProgram] | None = None
    records: list[Record] = []
    for kind, site, body in split_records(words):
        if kind == _KIND_BEGIN:
            if device is not None:
                yield SwitchPass(*device, records)
            device, records = switches.get(body[4]), []
        if device is not None:
            records.append(_record(device[1], kind, site, body, with_values))
    if device is not None:
        yield SwitchPass(*device, records)


def read_entries(program: InstrumentedProgram, words: Sequence[int]) -> list[RecordedEntry]:
    tables = list(program.model.tables.values())
    return [_entry(tables[body[0]], body[1:])[0] for _, _, body in split_records(words)]


def _record(
    program: InstrumentedProgram, kind: int, site_number: int, body: Sequence[int], with_values: bool
) -> Record:
    site = program.sites[site_number]
    if kind == _KIND_STEP:
        return Step(site, body[0], _changes(body[1:]))
    if kind == _KIND_TABLE:
        assert isinstance(site, TableApplied)
        table = program.model.tables[site.table]
        entry, rest = _entry(table, body[1:])
        key_words = [words_of(k.width) for k in table.key]
        total = sum(key_words)
        return Lookup(site, bool(body[0]), entry, tuple(_numbers(rest[:total], key_words)), _changes(rest[total:]))
    if kind == _KIND_BEGIN:
        state, frame = _state_and_frame(program, body[5:]) if with_values else ((), b"")
        return Begin(site, body[0], body[1], body[2], body[3], body[4], state, frame)
    if kind == _KIND_END:
        if not with_values:
            return End(site, body[0], (), b"")
        return End(site, body[0], *_state_and_frame(program, body[1:]))
    if kind == _KIND_ACCESS:
        return CellBefore(site, _ARRAYS[body[0]], body[1], body[2], tuple(body[3:]))
    assert kind == _KIND_CELL
    return CellAfter(site, tuple(body))


def _state_and_frame(program: InstrumentedProgram, words: Sequence[int]) -> tuple[Sequence[int], bytes]:
    count = STANDARD_WORDS + REQUEST_WORDS + program.layout.words + 1
    state, frame = words[:count], words[count:]
    return state, b"".join(word.to_bytes(8, "little") for word in frame[1:])[: frame[0]]


def _changes(words: Sequence[int]) -> Changes:
    return tuple(zip(words[::2], words[1::2], strict=True))


def _numbers(words: Sequence[int], counts: Sequence[int]) -> list[int]:
    """Return runs of words, least significant first, as numbers."""
    numbers, at = [], 0
    for count in counts:
        numbers.append(sum(word << 64 * i for i, word in enumerate(words[at : at + count])))
        at += count
    return numbers


def _entry(table: Table, body: Sequence[int]) -> tuple[RecordedEntry, Sequence[int]]:
    """Return an entry, and the words behind it."""
    handle, priority, member, group, packets, bytes_, action_id = body[:7]
    action = next((a for a in table.actions if a.id == action_id), None)
    data_words = max((sum(words_of(p.width) for p in a.parameters) for a in table.actions), default=0)
    parameter_words = [words_of(p.width) for p in action.parameters] if action else []
    arguments = _numbers(body[7:], parameter_words)
    key_words = [words_of(k.width) for k in table.key]
    total, at = sum(key_words), 7 + data_words
    columns = []
    for _ in range(4 if table.match == "range" else 2):
        columns.append(_numbers(body[at : at + total], key_words))
        at += total
    match = []
    for i, part in enumerate(table.key):
        ends = (columns[2][i], columns[3][i]) if part.match == "range" else (None, None)
        match.append(FieldMatch(columns[0][i], columns[1][i], *ends))
    entry = RecordedEntry(
        table=table.name,
        handle=_optional(handle),
        priority=priority - (1 << 64) if priority >> 63 else priority,
        match=tuple(match) if handle != _NONE else (),
        member=_optional(member),
        group=_optional(group),
        packets=packets,
        bytes=bytes_,
        action_id=_optional(action_id),
        arguments=tuple(arguments),
    )
    return entry, body[at:]


def _optional(word: int) -> int | None:
    return None if word == _NONE else word
