"""All entities of one device under one pipeline."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from finsy.proto import p4r

from switch.device import Device
from switch.p4runtime.entities.base import EntityKind
from switch.p4runtime.entities.counter_entry import CounterEntries
from switch.p4runtime.entities.digest_entry import DigestEntries, DigestSink
from switch.p4runtime.entities.extern_entry import ExternEntries
from switch.p4runtime.entities.meter_entry import MeterEntries
from switch.p4runtime.entities.profiles.action_profile_group import ActionProfileGroups
from switch.p4runtime.entities.profiles.action_profile_member import ActionProfileMembers
from switch.p4runtime.entities.profiles.profile_state import ProfileState
from switch.p4runtime.entities.register_entry import RegisterEntries
from switch.p4runtime.entities.replication.packet_replication import PacketReplicationEngine
from switch.p4runtime.entities.tables.direct_counter_entry import DirectCounterEntries
from switch.p4runtime.entities.tables.direct_meter_entry import DirectMeterEntries
from switch.p4runtime.entities.tables.table_entry import TableEntries
from switch.p4runtime.entities.value_set_entry import ValueSetEntries
from switch.p4runtime.pipeline.pipeline import Pipeline
from switch.p4runtime.roles import Role, may_write
from switch.p4runtime.values.status import RequestError, denied, from_exception, invalid


class ForwardingState:
    """Freshly loaded when made; afterwards all changes go through `write`. One call at a time."""

    def __init__(self, device: Device, pipeline: Pipeline, digest_sink: DigestSink | None = None) -> None:
        """`digest_sink`: where the device's digests go while one is enabled."""
        self.device = device
        self.pipeline = pipeline
        profiles = {profile_id: ProfileState(codec, device) for profile_id, codec in pipeline.profiles.items()}
        self.tables = TableEntries(device, pipeline, profiles)
        self.digests = DigestEntries(device, pipeline, digest_sink)
        # Exported in this order: what others refer to first.
        kinds: list[EntityKind] = [
            ActionProfileMembers(device, pipeline, profiles),
            ActionProfileGroups(device, pipeline, profiles),
            self.tables,
            DirectCounterEntries(device, pipeline, self.tables),
            DirectMeterEntries(device, pipeline, self.tables),
            PacketReplicationEngine(device, pipeline),
            CounterEntries(device, pipeline),
            MeterEntries(device, pipeline),
            RegisterEntries(device, pipeline),
            ValueSetEntries(device, pipeline),
            self.digests,
            ExternEntries(device, pipeline),
        ]
        self._kinds: dict[str | None, EntityKind] = {kind.oneof: kind for kind in kinds}
        self._operations = {
            (oneof, update_type): operation
            for oneof, kind in self._kinds.items()
            for update_type, operation in (
                (p4r.Update.INSERT, kind.insert),
                (p4r.Update.MODIFY, kind.modify),
                (p4r.Update.DELETE, kind.delete),
            )
        }

    def write(
        self, updates: Iterable[Any], role: Role, other_roles: Iterable[Role] = ()
    ) -> list[RequestError | None]:
        """Attempt every update, in order; the outcome of each, None for success."""
        operations = self._operations
        others = list(other_roles)
        restricted = role.writable_ids is not None or any(other.exclusive_ids for other in others)
        outcomes: list[RequestError | None] = []
        for update in updates:
            entity = update.entity
            oneof = entity.WhichOneof("entity")
            try:
                if restricted and oneof is not None:
                    self._check_role(oneof, getattr(entity, oneof), role, others)
                operation = operations.get((oneof, update.type))
                if operation is None:
                    raise invalid("the update has no entity" if oneof is None else "the update has no type")
                operation(getattr(entity, oneof))
                outcomes.append(None)
            except Exception as error:
                outcomes.append(from_exception(error))
        return outcomes

    def read(self, request: Any, role: Role) -> Iterable[Any]:
        """Entities that one element of a ReadRequest asks for, as of now. Raises RequestError."""
        oneof = request.WhichOneof("entity")
        if oneof is None:
            raise invalid("an element of the request names no kind of entity")
        try:
            return self._kinds[oneof].read(getattr(request, oneof), role)
        except RequestError:
            raise
        except Exception as error:
            raise from_exception(error) from error

    def clear(self) -> None:
        """Another program has been loaded: undo what outlives a program on the device."""
        for kind in self._kinds.values():
            kind.clear()

    def export(self) -> Iterator[Any]:
        """Updates that lead from the freshly loaded pipeline to the present state."""
        for kind in self._kinds.values():
            yield from kind.export()

    def _check_role(self, oneof: str, message: Any, role: Role, others: Iterable[Role]) -> None:
        p4_id = self._kinds[oneof].p4_id(message)
        if not may_write(role, others, p4_id):
            raise denied(f"role {role.name!r} may not write {oneof} {p4_id}")
