"""What every kind of entity offers to Write, Read and the exchange of pipelines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from finsy.proto import p4r

from gradbed.switch.p4runtime.roles import Role
from gradbed.switch.p4runtime.status import invalid, not_found, out_of_range

Described = TypeVar("Described")


class EntityKind:
    """The entities of one kind in one device. Messages are those inside p4.v1.Entity's oneof.

    Calls are made one at a time; all raise RequestError.
    """

    oneof: ClassVar[str]

    def p4_id(self, message: Any) -> int:
        """Return the id of the P4 object that the entity belongs to, which roles refer to; 0 if there is none."""
        raise NotImplementedError

    def insert(self, message: Any) -> None:
        raise invalid(f"a {self.oneof} is always there: it is modified, never inserted")

    def modify(self, message: Any) -> None:
        raise NotImplementedError

    def delete(self, message: Any) -> None:
        raise invalid(f"a {self.oneof} is always there: it is modified, never deleted")

    def read(self, message: Any, role: Role) -> Iterable[Any]:
        """Return the entities that the message asks for and the role may see.

        The state is taken when called; the result may be iterated later, while writes go on.
        """
        raise NotImplementedError

    def clear(self) -> None:
        """Undo what outlives a program on the device: another one takes over."""

    def export(self) -> Iterator[Any]:
        """Return the updates that lead from the freshly loaded program to the present state."""
        raise NotImplementedError


def known(objects: Mapping[int, Described], p4_id: int, what: str) -> Described:
    """Return the object with this id. Raises NOT_FOUND, or INVALID_ARGUMENT for no id."""
    found = objects.get(p4_id)
    if found is None:
        if not p4_id:
            raise invalid(f"{what.replace(' ', '_')}_id is not set")
        raise not_found(f"there is no {what} {p4_id}")
    return found


@dataclass(frozen=True)
class CellArray:
    """Cells that a program declares under one name, and indexes."""

    p4_id: int
    name: str
    size: int


Array = TypeVar("Array", bound=CellArray)


class CellEntries(EntityKind, Generic[Array]):
    """Entities that are cells of arrays: always there, read and written one by one or all at once."""

    what: ClassVar[str]
    """Of which the message's fields WHAT_id and index name a cell."""

    def __init__(self, arrays: Mapping[int, Array]) -> None:
        """Create the entries of these arrays, by P4Info id."""
        self._arrays = arrays

    def p4_id(self, message: Any) -> int:
        p4_id: int = getattr(message, f"{self.what}_id")
        return p4_id

    def read(self, message: Any, role: Role) -> Iterable[Any]:
        p4_id = self.p4_id(message)
        if p4_id:
            array = known(self._arrays, p4_id, self.what)
            wanted = [(array, self._indices(array, message))]
        else:
            wanted = [(array, range(array.size)) for array in self._arrays.values()]
        found = [
            (array, indices, self._cells(array, indices, message))
            for array, indices in wanted
            if role.reads(array.p4_id)
        ]
        return self._entities(found)

    def _cells(self, array: Array, indices: range, message: Any) -> Sequence[Any]:
        """Return what the cells hold now, as far as the read request wants to know."""
        raise NotImplementedError

    def _fill(self, entry: Any, array: Array, index: int, cell: Any) -> None:
        """Fill an empty message with the entity of a cell."""
        raise NotImplementedError

    def _addressed(self, message: Any) -> tuple[Array, range]:
        """Return the array and the cells that a Write means. Raises RequestError."""
        array = known(self._arrays, self.p4_id(message), self.what)
        return array, self._indices(array, message)

    def _indices(self, array: Array, message: Any) -> range:
        """Return the cells that a message means.

        Raises INVALID_ARGUMENT and OUT_OF_RANGE as the specification says.
        """
        if not message.HasField("index"):
            return range(array.size)
        index: int = message.index.index
        if index < 0:
            raise invalid(f"{self.what} {array.name}: index {index} is negative")
        if index >= array.size:
            raise out_of_range(f"{self.what} {array.name} has {array.size} cells, there is no index {index}")
        return range(index, index + 1)

    def _entities(self, found: Iterable[tuple[Array, range, Sequence[Any]]]) -> Iterator[Any]:
        for array, indices, cells in found:
            for index, cell in zip(indices, cells, strict=True):
                yield self._entity(array, index, cell)

    def _entity(self, array: Array, index: int, cell: Any) -> Any:
        entity = p4r.Entity()
        self._fill(getattr(entity, self.oneof), array, index, cell)
        return entity

    def _update(self, array: Array, index: int, cell: Any) -> Any:
        update = p4r.Update(type=p4r.Update.MODIFY)
        self._fill(getattr(update.entity, self.oneof), array, index, cell)
        return update
