"""Programs built so that they report what they do, and the recorder of it (switch/runtime/trace.c).

Packets pass in a thread that uses a recorder. Where the data plane is a thread of its own, records are kept while it
runs and handed over as a file.
"""

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
from gradbed.switch.codegen.emit.probes import RecordingProbes, Site
from gradbed.switch.codegen.layout import Layout
from gradbed.switch.codegen.program import BuiltProgram, generate
from gradbed.switch.engine import Engine, EngineDevice
from gradbed.switch.runtime.library import RUNTIME_DIR, TRACE_HEADERS, runtime_library
from gradbed.switch.state.switch_state import SwitchState

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
    """What is recorded: points that were reached, or these with all values."""

    POINTS = TRACE_HEADERS.constant("GB_TRACE_POINTS")
    VALUES = TRACE_HEADERS.constant("GB_TRACE_VALUES")


@functools.cache
def _library() -> ctypes.CDLL:
    library = runtime_library()
    TRACE_HEADERS.bind(library, "gb_recorder_")
    return library


class Recorder:
    """Keeps records as the words that they are, until `close`, when nobody uses it any more."""

    def __init__(self, level: Level) -> None:
        found = _library().gb_recorder_open(level)
        if not found:
            raise MemoryError("there is no memory for a recorder")
        self.pointer: int = found
        self.level = level

    def close(self) -> None:
        _library().gb_recorder_close(self.pointer)

    def take(self) -> bytes:
        """The words since the last call, 8 bytes each (as_words). MemoryError if they were too many to keep."""
        count, lost = ctypes.c_uint64(), ctypes.c_int()
        first = _library().gb_recorder_words(self.pointer, ctypes.byref(count), ctypes.byref(lost))
        words = ctypes.string_at(first, 8 * count.value) if count.value else b""
        _library().gb_recorder_clear(self.pointer)
        if lost.value:
            raise MemoryError("too much happened to record it all: packets may be going round in circles")
        return words

    def entries(self, state: SwitchState, tables: int) -> bytes:
        """Words that tell the entries of a switch's tables as they are now (records.read_entries), by table and
        handle. Records not taken yet are lost. tables: how many the program has."""
        _library().gb_recorder_clear(self.pointer)
        for number in range(tables):
            _library().gb_recorder_list_entries(self.pointer, state.record, number)
        return self.take()


def as_words(data: bytes) -> Sequence[int]:
    return memoryview(data).cast("Q")


_in_use = threading.local()


@contextlib.contextmanager
def recording(level: Level) -> Iterator[Recorder]:
    """A recorder of what instrumented programs do in this thread, which has one at a time."""
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


# ---- Fabrics whose data plane is a thread of its own ----


class FabricRecorder:
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
        """A switch is about to lose its state, whose address may become another one's."""
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
    """parts: words, and device ids by the addresses of states in them. entries: words by device id. start_us: when
    each switch came up, after the first one."""

    parts: Sequence[tuple[Sequence[int], Mapping[int, int]]]
    entries: Mapping[int, Sequence[int]]
    start_us: Mapping[int, int]


def read_recording(file: Path, written: Mapping[str, Any]) -> TraceRecording:
    """written: what FabricRecorder.write returned."""
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
