"""The C interface of state.h for ctypes: what all kinds of state share."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Iterable
from typing import Any

from gradbed.switch.bmv2_json.model import Action, Table, words_of
from gradbed.switch.device import ActionCall
from gradbed.switch.runtime.library import runtime_library

# enum gb_refusal
NO_MEMORY, EXISTS, FULL, NO_SUCH, IN_USE = -1, -2, -3, -4, -5

WORD_BYTES = 8
RECENTS = 4
"""GB_RECENTS of program.h."""


class Count(ctypes.Structure):
    _fields_ = (("packets", ctypes.c_uint64), ("bytes", ctypes.c_uint64))


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
        ("recents", ctypes.c_void_p),
        ("drop_caller", ctypes.c_uint32),
        ("drop_site", ctypes.c_uint32),
        ("recent_tables", ctypes.c_void_p * RECENTS),
        ("drop_port", ctypes.c_uint64),
        ("random_state", ctypes.c_uint64),
        ("meters", ctypes.POINTER(ctypes.c_void_p)),
        ("value_sets", ctypes.POINTER(ctypes.c_void_p)),
        ("profiles", ctypes.POINTER(ctypes.c_void_p)),
        ("externs", ctypes.POINTER(ctypes.c_void_p)),
        ("digest", ctypes.c_void_p),
        ("log", ctypes.c_void_p),
        ("engine", ctypes.c_void_p),
        ("drop_counts", ctypes.POINTER(ctypes.c_uint64)),
    )


Words = ctypes.POINTER(ctypes.c_uint64)
ConstWords = ctypes.c_char_p
"""Words that C only reads: bytes."""
Numbers = ctypes.POINTER(ctypes.c_uint32)
Functions = dict[str, tuple[Any, tuple[Any, ...]]]
"""Result and arguments of the library's functions, by name."""


def library_with(functions: Functions) -> ctypes.CDLL:
    """The runtime library with these functions of state.h.

    They are short and never wait, so they keep the interpreter's lock: to give it up and get it back for each call
    costs a tenth of the table writes per second.
    """
    library = ctypes.PyDLL(runtime_library()._name)
    for name, (result, arguments) in functions.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


def packed(values: Iterable[tuple[int, int]]) -> bytes:
    """The words of (value, width in bits) pairs, value after value, the least significant word of each first.

    ctypes hands bytes over as they are, without an array for each key.
    """
    return b"".join([value.to_bytes(bytes_of(width), "little") for value, width in values])


@functools.cache
def bytes_of(width: int) -> int:
    """Bytes of the words of a value of `width` bits."""
    return WORD_BYTES * words_of(width)


def fits(value: int, width: int, what: str) -> int:
    """The value; ValueError unless it is an unsigned number of `width` bits. what: the subject of the sentence."""
    if value >> width:
        raise misfit(value, width, what)
    return value


def misfit(value: int, width: int, what: str) -> ValueError:
    return ValueError(f"{what}: {value} does not fit {width} bits")


def action_words(table: Table, call: ActionCall) -> tuple[int, bytes]:
    """Id of an action of the table, and words of its arguments. Raises KeyError and ValueError."""
    action: Action = table.action(call.action)
    if len(call.arguments) != len(action.parameters):
        raise ValueError(f"action {action.name} takes {len(action.parameters)} arguments, got {len(call.arguments)}")
    pairs = []
    for value, parameter in zip(call.arguments, action.parameters, strict=True):
        width = parameter.width
        if value >> width:
            raise misfit(value, width, f"argument {parameter.name} of {action.name}")
        pairs.append((value, width))
    return action.id, packed(pairs)
