"""Kinds of entity that this server knows of and does not carry."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NoReturn

from switch.device import Device
from switch.p4runtime.entities.base import EntityKind
from switch.p4runtime.pipeline import Pipeline
from switch.p4runtime.roles import Role
from switch.p4runtime.status import RequestError, not_found, unimplemented


class UnsupportedKind(EntityKind):
    """Answers UNIMPLEMENTED, except where there is an answer: a program without such objects has no entities."""

    def __init__(
        self, device: Device, pipeline: Pipeline, oneof: str, objects: str | None, id_field: str | None
    ) -> None:
        """`objects` names the list in P4Info, `id_field` the field of the entity that holds an object's id."""
        super().__init__(device, pipeline)
        self._name = oneof
        self._has_objects = objects is None or len(getattr(pipeline.info, objects)) > 0
        self._id_field = id_field

    def p4_id(self, message: Any) -> int:
        return getattr(message, self._id_field) if self._id_field else 0

    def insert(self, message: Any) -> NoReturn:
        raise self._refusal()

    def modify(self, message: Any) -> NoReturn:
        raise self._refusal()

    def delete(self, message: Any) -> NoReturn:
        raise self._refusal()

    def read(self, message: Any, role: Role) -> Iterable[Any]:
        if self._has_objects:
            raise self._refusal()
        if self.p4_id(message):
            raise not_found(f"the program has no {self._name} {self.p4_id(message)}")
        return ()

    def export(self) -> Iterator[Any]:
        return iter(())

    def _refusal(self) -> RequestError:
        return unimplemented(f"this switch does not support {self._name}")


UNSUPPORTED_KINDS: tuple[tuple[str, str | None, str | None], ...] = (
    ("extern_entry", "externs", "extern_id"),
    ("action_profile_member", "action_profiles", "action_profile_id"),
    ("action_profile_group", "action_profiles", "action_profile_id"),
    ("meter_entry", "meters", "meter_id"),
    ("direct_meter_entry", "direct_meters", None),
    ("value_set_entry", "value_sets", "value_set_id"),
    ("digest_entry", "digests", "digest_id"),
)
