"""One switch's state as the runtime library keeps it, and what the ways to its kinds have in common."""

from __future__ import annotations

import ctypes
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from gradbed.switch.device import Program, StateFull, StillReferenced
from gradbed.switch.runtime.library import program_library
from gradbed.switch.state import abi


class SwitchRecord:
    """struct gb_switch with the library that works on it."""

    def __init__(self, program: Program, guard: AbstractContextManager[Any] | None = None) -> None:
        """guard: entered around each call into the state, so that an engine can keep its own thread out meanwhile.

        Raises MemoryError.
        """
        self.guard: AbstractContextManager[Any] = guard if guard is not None else nullcontext()
        library = abi.state_library()
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
                abi.state_library().gb_switch_free(self.record)
                self.record = None


class StateAccessor:
    """One kind of a switch's state. Raises KeyError for unknown names, IndexError for bad indices, ValueError for bad
    values."""

    def __init__(self, switch: SwitchRecord) -> None:
        self._switch = switch
        self._guard = switch.guard
        self._library = abi.state_library()

    @property
    def _contents(self) -> Any:
        """The switch's `struct gb_switch`."""
        return self._switch.record.contents


def check(outcome: int, no_such: Exception) -> None:
    """Raise what an answer of the library means; `no_such` if it found nothing."""
    if outcome >= 0:
        return
    if outcome == abi.NO_MEMORY:
        raise MemoryError("out of memory for a switch's state")
    if outcome == abi.FULL:
        raise StateFull("the action profile is full")
    if outcome == abi.IN_USE:
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
