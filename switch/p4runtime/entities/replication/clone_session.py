"""CloneSessionEntry. P4Runtime specification 1.4, section "CloneSessionEntry"."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

from finsy.proto import p4r

from switch.device import Device
from switch.p4runtime.entities.base import EntityKind
from switch.p4runtime.entities.replication.replicas import canonical_replicas, decode_replicas
from switch.p4runtime.pipeline.pipeline import Pipeline
from switch.p4runtime.roles import Role
from switch.p4runtime.values.status import exists_already, invalid, not_found

GREATEST_SESSION = (1 << 16) - 1
GREATEST_CLASS_OF_SERVICE = 7


class CloneSessions(EntityKind):
    oneof = "clone_session_entry"

    def __init__(self, device: Device, pipeline: Pipeline) -> None:
        super().__init__(device, pipeline)
        self._sessions: dict[int, Any] = {}

    def p4_id(self, message: Any) -> int:
        return 0

    def insert(self, message: Any) -> None:
        session_id = self._session_id(message)
        if session_id in self._sessions:
            raise exists_already(f"clone session {session_id} exists")
        self._set(session_id, message)

    def modify(self, message: Any) -> None:
        session_id = self._session_id(message)
        self._existing(session_id)
        self._set(session_id, message)

    def delete(self, message: Any) -> None:
        session_id = self._session_id(message)
        self._existing(session_id)
        self._device.clone_session_delete(session_id)
        del self._sessions[session_id]

    def read(self, message: Any, role: Role) -> Iterable[Any]:
        session_id = message.session_id
        sessions = [self._existing(session_id)] if session_id else list(self._sessions.values())
        return (_entity(session) for session in sessions)

    def clear(self) -> None:
        for session_id in self._sessions:
            # A device may have dropped its sessions by itself when it loaded the program.
            with contextlib.suppress(KeyError):
                self._device.clone_session_delete(session_id)

    def export(self) -> Iterator[Any]:
        for session in self._sessions.values():
            yield p4r.Update(type=p4r.Update.INSERT, entity=_entity(session))

    def _set(self, session_id: int, message: Any) -> None:
        if message.class_of_service > GREATEST_CLASS_OF_SERVICE:
            raise invalid(f"class_of_service is v1model's priority, 0..{GREATEST_CLASS_OF_SERVICE}")
        if message.packet_length_bytes < 0:
            raise invalid("packet_length_bytes is negative")
        replicas = decode_replicas(message.replicas, self._pipeline)
        self._device.clone_session_set(session_id, replicas, message.packet_length_bytes, message.class_of_service)
        self._sessions[session_id] = p4r.CloneSessionEntry(
            session_id=session_id,
            replicas=canonical_replicas(message.replicas),
            class_of_service=message.class_of_service,
            packet_length_bytes=message.packet_length_bytes,
        )

    def _session_id(self, message: Any) -> int:
        session_id: int = message.session_id
        if session_id == 0:
            raise invalid("session_id is not set")
        if session_id > GREATEST_SESSION:
            raise invalid(f"clone sessions are 1..{GREATEST_SESSION}, got {session_id}")
        return session_id

    def _existing(self, session_id: int) -> Any:
        session = self._sessions.get(session_id)
        if session is None:
            raise not_found(f"there is no clone session {session_id}")
        return session


def _entity(session: Any) -> Any:
    entity = p4r.Entity()
    entity.packet_replication_engine_entry.clone_session_entry.CopyFrom(session)
    return entity
