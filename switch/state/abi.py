"""The C interface of program.h and state.h for ctypes: what all kinds of state share."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from gradbed.common.c_headers import DeclaredPyDLL
from gradbed.switch.bmv2_json.model import Action, Table, words_of
from gradbed.switch.device import ActionCall, Program, StateFull, StillReferenced
from gradbed.switch.runtime.library import STATE_HEADERS, program_library, runtime_library

NO_MEMORY, EXISTS, FULL, NO_SUCH, IN_USE = (
    STATE_HEADERS.constant(f"GB_{name}") for name in ("NO_MEMORY", "EXISTS", "FULL", "NO_SUCH", "IN_USE")
)
"""What calls that change state return when they refuse."""
NO_ACTION = STATE_HEADERS.constant("GB_NO_ACTION")
NO_WATCH = STATE_HEADERS.constant("GB_NO_WATCH")
RECENTS = STATE_HEADERS.constant("GB_RECENTS")
WORD_BYTES = 8


@STATE_HEADERS.declare("gb_count")
class CountStruct(ctypes.Structure):
    """Packets and bytes."""


@STATE_HEADERS.declare("gb_register")
class RegisterStruct(ctypes.Structure):
    """A register array."""


@STATE_HEADERS.declare("gb_counter")
class CounterStruct(ctypes.Structure):
    """An array of counters."""


@STATE_HEADERS.declare("gb_switch")
class SwitchStruct(ctypes.Structure):
    """The state that the P4 code of one switch reads and writes."""


@functools.cache
def state_library() -> ctypes.CDLL:
    """Return the runtime library with the functions of state.h declared.

    They are short and never wait, so they keep the interpreter's lock: to give it up and get it back for each call
    costs a tenth of the table writes per second.
    """
    library = DeclaredPyDLL(runtime_library()._name)
    STATE_HEADERS.bind(library)
    return library


def packed(values: Iterable[tuple[int, int]]) -> bytes:
    """Return the words of (value, width in bits) pairs, value after value, the least significant word of each first.

    ctypes takes bytes as they are, without an array for each key.
    """
    return b"".join([value.to_bytes(bytes_of(width), "little") for value, width in values])


@functools.cache
def bytes_of(width: int) -> int:
    """Return the size in bytes of the words of a value of `width` bits."""
    return WORD_BYTES * words_of(width)


def fits(value: int, width: int, what: str) -> int:
    """Return the value; raise ValueError unless it is an unsigned number of `width` bits.

    `what`: the subject of the error's sentence.
    """
    if value >> width:
        raise misfit(value, width, what)
    return value


def misfit(value: int, width: int, what: str) -> ValueError:
    return ValueError(f"{what}: {value} does not fit {width} bits")


def action_words(table: Table, call: ActionCall) -> tuple[int, bytes]:
    """Return the id of an action of the table, and the words of its arguments. Raises KeyError and ValueError."""
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


# ---- The state of one switch, and the base of the accessors of its kinds ----


class SwitchRecord:
    """struct gb_switch with the library that works on it."""

    def __init__(self, program: Program, guard: AbstractContextManager[Any] | None = None) -> None:
        """Create the state of a program. Raises MemoryError.

        `guard`: entered around each call into the state, so that an engine can keep its own thread out meanwhile.
        """
        self.guard: AbstractContextManager[Any] = guard if guard is not None else nullcontext()
        library = state_library()
        # The program's library, which needs that one, must stay loaded as long as the state refers to its layout.
        self._program_library = program_library(program.library)
        address = ctypes.addressof(ctypes.c_char.in_dll(self._program_library, "gb_program"))
        record = library.gb_switch_create(address)
        if not record:
            raise MemoryError("out of memory for a switch's tables and registers")
        self.record: Any = record
        self.model = program.model

    @property
    def pointer(self) -> int:
        """The address of struct gb_switch."""
        return ctypes.addressof(self.record.contents)

    def close(self) -> None:
        """Free everything; the object cannot be used afterwards."""
        with self.guard:
            if self.record:
                state_library().gb_switch_free(self.record)
                self.record = None


class StateAccessor:
    """Access to one kind of a switch's state.

    Raises KeyError for unknown names, IndexError for bad indices and ValueError for bad values.
    """

    def __init__(self, switch: SwitchRecord) -> None:
        self._switch = switch
        self._guard = switch.guard
        self._library = state_library()

    @property
    def _contents(self) -> Any:
        """The switch's `struct gb_switch`."""
        return self._switch.record.contents


def check(outcome: int, no_such: Exception) -> None:
    """Raise what an answer of the library means; `no_such` if it found nothing."""
    if outcome >= 0:
        return
    if outcome == NO_MEMORY:
        raise MemoryError("out of memory for a switch's state")
    if outcome == FULL:
        raise StateFull("the action profile is full")
    if outcome == IN_USE:
        raise StillReferenced("still referred to by a table entry or a group")
    raise no_such


def number_of(numbers: dict[str, int], name: str, what: str) -> int:
    try:
        return numbers[name]
    except KeyError:
        raise KeyError(f"no {what} named {name}") from None


def checked_index(index: int) -> int:
    if not 0 <= index < 2**32:
        raise IndexError(f"index {index} is out of range")
    return index
