"""What an extern of this project's own is: one description for compiler, code generator and P4Runtime."""

from __future__ import annotations

import ctypes
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from gradbed.switch.bmv2_json.model import Extern
from gradbed.switch.state.record import Access, SwitchRecord

Role = Literal["key", "in", "out"]
"""Of a method's parameter: a value of any type, of which the 64-bit hash is handed over; a number; what the method
gives, at most one."""


class ExternState(Access, ABC):
    """One object's state, through the runtime library. `entry` is a p4.v1.P4Data."""

    def __init__(self, switch: SwitchRecord, number: int, extern: Extern) -> None:
        """number: of the object in the program."""
        super().__init__(switch)
        self.extern = extern
        self._number = number

    @property
    def _object(self) -> ctypes.c_void_p:
        return ctypes.c_void_p(self._contents.externs[self._number])

    @abstractmethod
    def clear(self) -> None:
        """As when the program was loaded."""

    @abstractmethod
    def read(self) -> Any:
        """All that it keeps, as an entry."""

    @abstractmethod
    def write(self, entry: Any) -> None:
        """Take over what `read` gave. ValueError for what does not fit."""


@dataclass(frozen=True)
class ExternKind:
    """name: of the type in P4. type_id: P4Runtime's, 0x81 to 0xfe. attributes: what the constructor takes, in its
    order, with the least and the greatest value. methods: the roles of their parameters. In C it is a
    `struct gb_extern_kind` named c_name, a method a function c_name_METHOD (switch/runtime/state/state.h).
    """

    name: str
    type_id: int
    c_name: str
    attributes: Mapping[str, tuple[int, int]]
    methods: Mapping[str, tuple[Role, ...]]
    state: type[ExternState]

    most_attributes: ClassVar[int] = 4
    """GB_MOST_ATTRIBUTES."""

    def operation(self, method: str) -> str:
        """The primitive of a method in BMv2 JSON."""
        return f"_{self.name}_{method}"

    def declarations(self) -> list[str]:
        """C: the kind and its functions."""
        lines = [f"extern const struct gb_extern_kind {self.c_name};"]
        for name, roles in self.methods.items():
            result = "uint64_t" if "out" in roles else "void"
            taken = ", uint64_t" * sum(role != "out" for role in roles)
            lines.append(f"{result} {self.c_name}_{name}(void *{taken});")
        return lines
