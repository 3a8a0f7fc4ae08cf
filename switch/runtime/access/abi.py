"""The C interface of state.h for ctypes."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Iterable, Sequence
from typing import Any

from switch.runtime.library import runtime_library

NO_ACTION = 2**32 - 1
NO_WATCH = 2**32 - 1

# enum gb_refusal
NO_MEMORY, EXISTS, FULL, NO_SUCH, IN_USE = -1, -2, -3, -4, -5

_WORD_MASK = (1 << 64) - 1


class Count(ctypes.Structure):
    _fields_ = (("packets", ctypes.c_uint64), ("bytes", ctypes.c_uint64))


ColourCounts = Count * 3
"""Green, yellow, red."""


class Register(ctypes.Structure):
    _fields_ = (
        ("width_bits", ctypes.c_uint32),
        ("size", ctypes.c_uint32),
        ("word_count", ctypes.c_uint32),
        ("cells", ctypes.c_void_p),
    )


class Counter(ctypes.Structure):
    _fields_ = (("size", ctypes.c_uint32), ("cells", ctypes.c_void_p))


class SwitchRecord(ctypes.Structure):
    """struct gb_switch of program.h."""

    _fields_ = (
        ("program", ctypes.c_void_p),
        ("tables", ctypes.POINTER(ctypes.c_void_p)),
        ("registers", ctypes.POINTER(Register)),
        ("counters", ctypes.POINTER(Counter)),
        ("meters", ctypes.POINTER(ctypes.c_void_p)),
        ("random_state", ctypes.c_uint64),
        ("engine", ctypes.c_void_p),
        ("digest", ctypes.c_void_p),
        ("log", ctypes.c_void_p),
        ("value_sets", ctypes.POINTER(ctypes.c_void_p)),
        ("profiles", ctypes.POINTER(ctypes.c_void_p)),
    )


_Words = ctypes.POINTER(ctypes.c_uint64)
_Numbers = ctypes.POINTER(ctypes.c_uint32)
_SIGNATURES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "gb_switch_create": (ctypes.POINTER(SwitchRecord), (ctypes.c_void_p,)),
    "gb_switch_free": (None, (ctypes.POINTER(SwitchRecord),)),
    "gb_table_insert": (
        ctypes.c_int64,
        (ctypes.c_void_p, _Words, _Words, _Words, ctypes.c_int64, ctypes.c_uint32, _Words, ctypes.c_uint32),
    ),
    "gb_table_modify": (ctypes.c_int, (ctypes.c_void_p, ctypes.c_int64, ctypes.c_uint32, _Words, ctypes.c_uint32)),
    "gb_table_delete": (ctypes.c_int, (ctypes.c_void_p, ctypes.c_int64)),
    "gb_table_count": (ctypes.c_int, (ctypes.c_void_p, ctypes.c_int64, ctypes.POINTER(Count))),
    "gb_table_count_write": (ctypes.c_int, (ctypes.c_void_p, ctypes.c_int64, ctypes.POINTER(Count))),
    "gb_table_hit": (ctypes.c_int, (ctypes.c_void_p, ctypes.c_int64, ctypes.c_uint64)),
    "gb_table_last_hit": (ctypes.c_int, (ctypes.c_void_p, ctypes.c_int64, _Words)),
    "gb_table_set_member": (
        ctypes.c_int,
        (ctypes.POINTER(SwitchRecord), ctypes.c_uint32, ctypes.c_int64, ctypes.c_uint32),
    ),
    "gb_table_set_group": (
        ctypes.c_int,
        (ctypes.POINTER(SwitchRecord), ctypes.c_uint32, ctypes.c_int64, ctypes.c_uint32),
    ),
    "gb_table_meter_cell": (ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_int64)),
    "gb_counter_get": (
        ctypes.c_int,
        (ctypes.POINTER(Counter), ctypes.c_uint32, ctypes.c_uint32, ctypes.POINTER(Count)),
    ),
    "gb_counter_set": (ctypes.c_int, (ctypes.POINTER(Counter), ctypes.c_uint32, ctypes.POINTER(Count))),
    "gb_register_get": (ctypes.c_int, (ctypes.POINTER(Register), ctypes.c_uint32, ctypes.c_uint32, _Words)),
    "gb_register_set": (ctypes.c_int, (ctypes.POINTER(Register), ctypes.c_uint32, _Words)),
    "gb_meter_cell": (ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_uint32)),
    "gb_meter_configure": (None, (ctypes.c_void_p, *(ctypes.c_double,) * 4)),
    "gb_meter_configure_single_rate": (None, (ctypes.c_void_p, *(ctypes.c_double,) * 3)),
    "gb_meter_reset": (None, (ctypes.c_void_p,)),
    "gb_meter_counts": (None, (ctypes.c_void_p, ctypes.POINTER(ColourCounts))),
    "gb_meter_counts_clear": (None, (ctypes.c_void_p,)),
    "gb_value_set_replace": (ctypes.c_int, (ctypes.c_void_p, ctypes.c_uint32, _Words, _Words)),
    "gb_profile_member_set": (
        ctypes.c_int,
        (ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint32, _Words, ctypes.c_uint32),
    ),
    "gb_profile_member_delete": (ctypes.c_int, (ctypes.c_void_p, ctypes.c_uint32)),
    "gb_profile_group_set": (
        ctypes.c_int,
        (ctypes.c_void_p, ctypes.c_uint32, _Numbers, _Numbers, ctypes.c_uint32),
    ),
    "gb_profile_group_delete": (ctypes.c_int, (ctypes.c_void_p, ctypes.c_uint32)),
}


@functools.cache
def state_library() -> ctypes.CDLL:
    """The runtime library with the signatures of state.h.

    Its functions are short and never wait, so they keep the interpreter's lock: to give it up and get it back for
    each call costs a tenth of the table writes per second.
    """
    library = ctypes.PyDLL(runtime_library()._name)
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


def word_count(width: int) -> int:
    return (width + 63) // 64


def to_words(values: Iterable[tuple[int, int]]) -> list[int]:
    """(value, width) pairs as words, value after value."""
    words: list[int] = []
    for value, width in values:
        if width <= 64:
            words.append(value)
        else:
            words.extend(value >> shift & _WORD_MASK for shift in range(0, width, 64))
    return words


def word_array(words: Sequence[int]) -> Any:
    return (ctypes.c_uint64 * max(1, len(words)))(*words)
