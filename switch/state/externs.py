"""Externs of this project's own: one description of each for compiler, code generator and P4Runtime.

A new one is an ExternKind with its state, and is listed in EXTERNS. P4Runtime knows nothing of them but that they
are there (specification 1.4, section "ExternEntry"). An entry is a p4.v1.P4Data with all that the object keeps;
written without an entry, the object starts afresh.
"""

from __future__ import annotations

import ctypes
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

from finsy.proto import p4d, p4r

from gradbed.switch.bmv2_json.model import Extern, ProgramModel
from gradbed.switch.p4runtime.roles import Role
from gradbed.switch.p4runtime.status import invalid, not_found, unimplemented
from gradbed.switch.p4runtime.values import Translations
from gradbed.switch.runtime.library import STATE_HEADERS
from gradbed.switch.state.abi import StateAccessor, SwitchRecord
from gradbed.switch.state.base import EntityKind

# ---- What an extern is ----


ParameterRole = Literal["key", "in", "out"]
"""Of a method's parameter: a value of any type, of which the 64-bit hash is handed over; a number; what the method
gives, at most one."""


class ExternState(StateAccessor, ABC):
    """State of one object, through the runtime library. `entry` is a p4.v1.P4Data."""

    def __init__(self, switch: SwitchRecord, number: int, extern: Extern) -> None:
        """Refer to the object of this number in the program."""
        super().__init__(switch)
        self.extern = extern
        self._number = number

    @property
    def _object(self) -> ctypes.c_void_p:
        return ctypes.c_void_p(self._contents.externs[self._number])

    @abstractmethod
    def clear(self) -> None:
        """Clear it to what it was when the program was loaded."""

    @abstractmethod
    def read(self) -> Any:
        """Return all that it keeps, as an entry."""

    @abstractmethod
    def write(self, entry: Any) -> None:
        """Take over what `read` gave. ValueError for what does not fit."""


@dataclass(frozen=True)
class ExternKind:
    """Kind of extern objects. In C it is a `struct gb_extern_kind` (switch/runtime/state/state.h)."""

    name: str
    """Name of the type in P4."""
    type_id: int
    """Type id of P4Runtime, 0x81 to 0xfe."""
    c_name: str
    """Name of the struct in C; a method is a function c_name_METHOD."""
    attributes: Mapping[str, tuple[int, int]]
    """Arguments of the constructor in its order, each with the least and the greatest value."""
    methods: Mapping[str, tuple[ParameterRole, ...]]
    """Methods, with the roles of their parameters."""
    state: type[ExternState]

    most_attributes: ClassVar[int] = STATE_HEADERS.constant("GB_MOST_ATTRIBUTES")
    """Of one kind: as many as `struct gb_extern_layout` has places for."""
    type_ids: ClassVar[range] = range(0x81, 0xFF)
    """Those that P4Runtime leaves to architectures (P4Ids.Prefix in p4info.proto)."""

    def __post_init__(self) -> None:
        """Raise ValueError for what compiler, C or P4Runtime have no place for."""
        count = len(self.attributes)
        if count > self.most_attributes:
            raise ValueError(
                f"extern {self.name} has {count} attributes: at most {self.most_attributes} are possible"
            )
        if self.type_id not in self.type_ids:
            raise ValueError(f"extern {self.name}: type id {self.type_id:#x} is outside 0x81 to 0xfe")
        for method, roles in self.methods.items():
            if roles.count("out") > 1:
                raise ValueError(f"{self.name}.{method} has {roles.count('out')} results: at most one is possible")

    def operation(self, method: str) -> str:
        """Return the primitive of a method in BMv2 JSON."""
        return f"_{self.name}_{method}"

    def declarations(self) -> list[str]:
        """Return the declarations of the kind and its functions in C."""
        lines = [f"extern const struct gb_extern_kind {self.c_name};"]
        for name, roles in self.methods.items():
            result = "uint64_t" if "out" in roles else "void"
            taken = ", uint64_t" * sum(role != "out" for role in roles)
            lines.append(f"{result} {self.c_name}_{name}(void *{taken});")
        return lines


# ---- CountMinSketch ----


CELL_BYTES = 4


class CountMinSketch(ExternState):
    """An entry is a tuple of the rows: each the counts of its columns, of four bytes in network byte order."""

    def clear(self) -> None:
        with self._guard:
            self._library.gb_count_min_sketch_clear(self._object)

    def read(self) -> Any:
        counts = ctypes.create_string_buffer(self._rows * self._row_bytes)
        with self._guard:
            self._library.gb_count_min_sketch_read(self._object, counts)
        entry = p4d.P4Data()
        for row in range(self._rows):
            entry.tuple.members.add(bitstring=counts.raw[row * self._row_bytes : (row + 1) * self._row_bytes])
        return entry

    def write(self, entry: Any) -> None:
        rows = [row.bitstring for row in entry.tuple.members]
        if [len(row) for row in rows] != self._rows * [self._row_bytes]:
            raise ValueError(
                f"{self.extern.name} takes a tuple of {self._rows} rows of {self._row_bytes} bytes, each a bitstring"
            )
        with self._guard:
            self._library.gb_count_min_sketch_write(self._object, b"".join(rows))

    @property
    def _rows(self) -> int:
        return self.extern.attributes["rows"]

    @property
    def _row_bytes(self) -> int:
        return CELL_BYTES * self.extern.attributes["columns"]


COUNT_MIN_SKETCH = ExternKind(
    name="CountMinSketch",
    type_id=0x81,
    c_name="gb_count_min_sketch",
    attributes={"rows": (1, 16), "columns": (1, 1 << 24)},
    methods={"update": ("key", "in", "out"), "estimate": ("key", "out")},
    state=CountMinSketch,
)


# ---- The list ----


def by_name(*kinds: ExternKind) -> dict[str, ExternKind]:
    """Return kinds by name. ValueError if two have the same name or type id."""
    names: dict[str, ExternKind] = {}
    owners: dict[int, str] = {}
    for kind in kinds:
        if kind.name in names:
            raise ValueError(f"extern {kind.name} is listed twice")
        if kind.type_id in owners:
            raise ValueError(
                f"externs {owners[kind.type_id]} and {kind.name} have the same type id {kind.type_id:#x}"
            )
        names[kind.name], owners[kind.type_id] = kind, kind.name
    return names


EXTERNS = by_name(COUNT_MIN_SKETCH)
"""By name."""


# ---- P4Info and BMv2 JSON ----


class ExternEntity(NamedTuple):
    p4_id: int
    name: str
    type_id: int


def extern_object(instance: Any, info: Any, program: ProgramModel, names: Translations) -> ExternEntity:
    """Return the codec of a p4.config.v1.ExternInstance.

    Raises ValueError where P4Info and BMv2 JSON do not fit together.
    """
    name = instance.preamble.name
    extern = program.externs.get(name)
    if extern is None:
        raise ValueError(f"extern {name!r} of the P4Info is not in the BMv2 JSON")
    type_id = EXTERNS[extern.kind].type_id
    if not any(type_.extern_type_id == type_id and instance in type_.instances for type_ in info.externs):
        raise ValueError(f"extern {name!r} is a {extern.kind} in the BMv2 JSON: P4Info has it with another type")
    return ExternEntity(instance.preamble.id, name, type_id)


# ---- ExternEntry ----


class ExternEntries(EntityKind):
    oneof = "extern_entry"

    def __init__(self, states: Mapping[str, ExternState], objects: Mapping[int, ExternEntity]) -> None:
        """Create the entries of these states, by name, and of these objects, by P4Info id."""
        self._states = states
        self._objects = objects

    def p4_id(self, message: Any) -> int:
        extern_id: int = message.extern_id
        return extern_id

    def modify(self, message: Any) -> None:
        if not self._objects:
            raise unimplemented("the program has no externs but v1model's")
        if not message.extern_id:
            raise invalid("extern_id is not set")
        [found] = self._wanted(message)
        state = self._states[found.name]
        if not message.HasField("entry"):
            state.clear()
            return
        entry = p4d.P4Data()
        if not message.entry.Unpack(entry):
            raise invalid(f"the entry of extern {found.name} is a p4.v1.P4Data, not {message.entry.type_url}")
        state.write(entry)

    def read(self, message: Any, role: Role) -> Iterable[Any]:
        found = [each for each in self._wanted(message) if role.reads(each.p4_id)]
        return [p4r.Entity(extern_entry=self._entry(each, self._states[each.name].read())) for each in found]

    def export(self) -> Iterator[Any]:
        for each in self._objects.values():
            update = p4r.Update(type=p4r.Update.MODIFY)
            update.entity.extern_entry.CopyFrom(self._entry(each, self._states[each.name].read()))
            yield update

    def _wanted(self, message: Any) -> list[ExternEntity]:
        """Return one object, or all of a type, or all. Raises NOT_FOUND."""
        found = [
            each
            for each in self._objects.values()
            if message.extern_type_id in (0, each.type_id) and message.extern_id in (0, each.p4_id)
        ]
        if message.extern_id and not found:
            raise not_found(f"there is no extern {message.extern_id} of type {message.extern_type_id}")
        return found

    @staticmethod
    def _entry(extern: ExternEntity, data: Any) -> Any:
        entry = p4r.ExternEntry(extern_type_id=extern.type_id, extern_id=extern.p4_id)
        entry.entry.Pack(data)
        return entry
