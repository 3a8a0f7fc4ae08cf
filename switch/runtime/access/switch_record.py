"""One switch's state as the runtime library keeps it: its creation, and how the library's answers become errors."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from switch.device import Program, StateFull, StillReferenced
from switch.runtime.access import abi


class SwitchRecord:
    """struct gb_switch with the library that works on it."""

    def __init__(
        self,
        program: Program,
        guard: AbstractContextManager[Any] | None = None,
        clock_us: Callable[[], int] = lambda: 0,
    ) -> None:
        """guard: entered around each call into the state, so that an engine can keep its own thread out meanwhile.

        clock_us: the clock by which packets are timed. Raises MemoryError.
        """
        self.program = program
        self._clock_us = clock_us
        self._guard: AbstractContextManager[Any] = guard if guard is not None else nullcontext()
        self._library = abi.state_library()
        # The program's library must stay loaded as long as the state refers to its layout.
        self._program_library = ctypes.CDLL(str(program.library))
        address = ctypes.addressof(ctypes.c_char.in_dll(self._program_library, "gb_program"))
        record = self._library.gb_switch_create(address)
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
        with self._guard:
            if self.record:
                self._library.gb_switch_free(self.record)
                self.record = None

    @staticmethod
    def _check(outcome: int, no_such: Exception) -> None:
        if outcome >= 0:
            return
        if outcome == abi.NO_MEMORY:
            raise MemoryError("out of memory for a switch's state")
        if outcome == abi.FULL:
            raise StateFull("the action profile is full")
        if outcome == abi.IN_USE:
            raise StillReferenced("still referred to by a table entry or a group")
        raise no_such

    @staticmethod
    def _number(numbers: dict[str, int], name: str, what: str) -> int:
        try:
            return numbers[name]
        except KeyError:
            raise KeyError(f"no {what} named {name}") from None

    @staticmethod
    def _index(index: int) -> int:
        if not 0 <= index < 2**32:
            raise IndexError(f"index {index} is out of range")
        return index


def fits(value: int, width: int, what: str) -> int:
    """The value; ValueError unless it is an unsigned number of `width` bits. what: the subject of the sentence."""
    if not 0 <= value < 1 << width:
        raise ValueError(f"{what}: {value} does not fit {width} bits")
    return value
