"""What every kind of entity offers to Write, Read and the exchange of pipelines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from switch.device import Device
from switch.p4runtime.pipeline.pipeline import Pipeline
from switch.p4runtime.roles import Role
from switch.p4runtime.values.status import invalid


class EntityKind:
    """The entities of one kind in one device. Messages are those inside p4.v1.Entity's oneof.

    Calls are made one at a time; all raise RequestError.
    """

    oneof: ClassVar[str]

    def __init__(self, device: Device, pipeline: Pipeline) -> None:
        self._device = device
        self._pipeline = pipeline

    def p4_id(self, message: Any) -> int:
        """Id of the P4 object that the entity belongs to, 0 if there is none: what roles are about."""
        raise NotImplementedError

    def insert(self, message: Any) -> None:
        raise invalid(f"a {self.oneof} is always there: it is modified, never inserted")

    def modify(self, message: Any) -> None:
        raise NotImplementedError

    def delete(self, message: Any) -> None:
        raise invalid(f"a {self.oneof} is always there: it is modified, never deleted")

    def read(self, message: Any, role: Role) -> Iterable[Any]:
        """Entities that the message asks for and the role may see.

        The state is taken when called; what is returned may be iterated later, while writes go on.
        """
        raise NotImplementedError

    def clear(self) -> None:
        """Another program is taking over: undo what outlives a program on the device."""

    def export(self) -> Iterator[Any]:
        """Updates that lead from the freshly loaded program to the present state."""
        raise NotImplementedError
