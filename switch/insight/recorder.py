"""The recorder of switch/runtime/trace.c: start it, let packets pass in this thread, take the records."""

from __future__ import annotations

import ctypes
import enum
import functools
import threading
from types import TracebackType

from switch.insight.instrumented import InstrumentedProgram
from switch.insight.records import Record, TableEntry, read_entries, read_records
from switch.runtime.library import runtime_library
from switch.runtime.state import SwitchState


class Level(enum.IntEnum):
    """enum gb_trace_level: points that were reached, or with all values."""

    POINTS = 1
    VALUES = 2


@functools.cache
def _library() -> ctypes.CDLL:
    library = runtime_library()
    signatures: dict[str, tuple[object, tuple[object, ...]]] = {
        "gb_trace_start": (None, (ctypes.c_int,)),
        "gb_trace_stop": (None, ()),
        "gb_trace_clear": (None, ()),
        "gb_trace_words": (
            ctypes.POINTER(ctypes.c_uint64),
            (ctypes.POINTER(ctypes.c_uint64), ctypes.POINTER(ctypes.c_int)),
        ),
        "gb_trace_list_entries": (None, (ctypes.c_void_p, ctypes.c_uint32)),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


_in_use = threading.local()


class Recorder:
    """A context; one at a time in a thread, since the thread has one recorder."""

    def __init__(self, program: InstrumentedProgram, level: Level) -> None:
        self._program = program
        self._level = level

    def __enter__(self) -> Recorder:
        if getattr(_in_use, "recorder", None) is not None:
            raise RuntimeError("this thread records already: leave the other recorder first")
        _in_use.recorder = self
        _library().gb_trace_start(self._level)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        _library().gb_trace_stop()
        _in_use.recorder = None

    def take(self) -> list[Record]:
        """The records since the last call. MemoryError if they were too many to keep."""
        return read_records(self._program, self._level == Level.VALUES, self._words())

    def entries(self, state: SwitchState, table: str) -> list[TableEntry]:
        """The entries of a table as they are now, by handle. Records not taken yet are lost."""
        _library().gb_trace_clear()
        number = list(self._program.model.tables).index(table)
        _library().gb_trace_list_entries(state.pointer, number)
        return read_entries(self._program, self._words())

    def _words(self) -> list[int]:
        count, lost = ctypes.c_uint64(), ctypes.c_int()
        first = _library().gb_trace_words(ctypes.byref(count), ctypes.byref(lost))
        if lost.value:
            _library().gb_trace_clear()
            raise MemoryError("too much happened to record it all: packets may be going round in circles")
        words: list[int] = first[: count.value]
        _library().gb_trace_clear()
        return words
