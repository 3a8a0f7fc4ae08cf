"""The recorder of switch/runtime/trace.c: let packets pass in a thread that uses it, take the records."""

from __future__ import annotations

import contextlib
import ctypes
import enum
import functools
import threading
from collections.abc import Iterator, Sequence

from gradbed.switch.runtime.library import runtime_library
from gradbed.switch.state.switch_state import SwitchState


class Level(enum.IntEnum):
    """enum gb_trace_level: points that were reached, or with all values."""

    POINTS = 1
    VALUES = 2


@functools.cache
def _library() -> ctypes.CDLL:
    library = runtime_library()
    pointer = ctypes.c_void_p
    signatures: dict[str, tuple[object, tuple[object, ...]]] = {
        "open": (pointer, (ctypes.c_int,)),
        "close": (None, (pointer,)),
        "use": (None, (pointer,)),
        "words": (pointer, (pointer, ctypes.POINTER(ctypes.c_uint64), ctypes.POINTER(ctypes.c_int))),
        "clear": (None, (pointer,)),
        "list_entries": (None, (pointer, pointer, ctypes.c_uint32)),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(library, f"gb_recorder_{name}")
        function.restype, function.argtypes = result, arguments
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
            _library().gb_recorder_list_entries(self.pointer, state.pointer, number)
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
