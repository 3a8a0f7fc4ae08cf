"""A device under P4Runtime, whoever its controllers are: the pipeline that it runs, all its entities under that
pipeline, and what it sends of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from finsy.proto import p4r

from gradbed.switch.p4runtime.roles import Role, may_write
from gradbed.switch.p4runtime.status import RequestError, denied, failed_precondition, from_exception, invalid
from gradbed.switch.state.action_profile_entities import ActionProfileGroups, ActionProfileMembers
from gradbed.switch.state.action_profiles import ProfileState
from gradbed.switch.state.base import EntityKind
from gradbed.switch.state.device import KINDS, Device, DigestCallback
from gradbed.switch.state.digests import DigestEntries, DigestLists, Send
from gradbed.switch.state.direct_resources import DirectCounterEntries, DirectMeterEntries
from gradbed.switch.state.pipeline import ForwardingPipeline
from gradbed.switch.state.replication import PacketReplicationEngine
from gradbed.switch.state.table_entries import TableEntries

# ---- Entities under one pipeline ----


class ForwardingState:
    """Freshly loaded when made; afterwards all changes go through `write`. One call at a time."""

    def __init__(
        self,
        device: Device,
        pipeline: ForwardingPipeline,
        digest_sink: DigestCallback | None = None,
        *,
        staged: bool = False,
    ) -> None:
        """Create the state of a freshly loaded pipeline.

        `digest_sink`: where the device's digests go while one is enabled. `staged`: the device does not run the
        pipeline yet. The state is its own, no packet passes it, and the device is not notified of changes; `close`
        frees it.
        """
        self.pipeline = pipeline
        self._own_state = device.new_state(pipeline.program) if staged else None
        state = self._own_state or device.state
        replication = None if staged else device.replication

        def listen(wanted: bool) -> None:
            if not staged:
                device.on_digest(digest_sink if wanted else None)

        profiles = {
            profile_id: ProfileState(codec, state.profiles, device.has_port)
            for profile_id, codec in pipeline.profiles.items()
        }
        self.tables = TableEntries(state.tables, pipeline.tables, pipeline.direct_meters, profiles, device.clock_ns)
        self.digests = DigestEntries(pipeline.digests, listen)
        # Exported in this order: what others refer to first.
        kinds: list[EntityKind] = [
            ActionProfileMembers(profiles),
            ActionProfileGroups(profiles),
            self.tables,
            DirectCounterEntries(self.tables),
            DirectMeterEntries(self.tables),
            PacketReplicationEngine(replication, pipeline.widths_bits),
            *(kind.entities(getattr(state, name), pipeline.others[name]) for name, kind in KINDS.items()),
            self.digests,
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
        """Attempt every update, in order, and return the outcome of each, None for success.

        Nothing is rolled back: this is CONTINUE_ON_ERROR of the P4Runtime specification, "Batch Atomicity".
        """
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
        """Return the entities that one element of a ReadRequest asks for, as of now. Raises RequestError."""
        oneof = request.WhichOneof("entity")
        if oneof is None:
            raise invalid("an element of the request names no kind of entity")
        try:
            return self._kinds[oneof].read(getattr(request, oneof), role)
        except RequestError:
            raise
        except Exception as error:
            raise from_exception(error) from error

    def close(self) -> None:
        """Free what a staged state has of its own."""
        if self._own_state is not None:
            self._own_state.close()

    def clear(self) -> None:
        """Undo what outlives a program on the device: another one has been loaded."""
        for kind in self._kinds.values():
            kind.clear()

    def export(self) -> Iterator[Any]:
        """Return the updates that lead from the freshly loaded pipeline to the present state."""
        for kind in self._kinds.values():
            yield from kind.export()

    def _check_role(self, oneof: str, message: Any, role: Role, others: Iterable[Role]) -> None:
        p4_id = self._kinds[oneof].p4_id(message)
        if not may_write(role, others, p4_id):
            raise denied(f"role {role.name!r} may not write {oneof} {p4_id}")


# ---- The device ----


class RunningDevice:
    """Methods raise RequestError. One call at a time."""

    def __init__(
        self, device: Device, send_digests: Send, clock_ns: Callable[[], int], timestamp_ns: Callable[[], int]
    ) -> None:
        """Take a device without a pipeline; for the clocks see DigestLists."""
        self.device = device
        self.state: ForwardingState | None = None
        """None before the first pipeline."""
        self.digests: DigestLists | None = None
        self._digest_setting = (send_digests, clock_ns, timestamp_ns)

    def running(self) -> ForwardingState:
        """Return the state of the running pipeline. Raises FAILED_PRECONDITION before the first one."""
        if self.state is None:
            raise self.no_pipeline()
        return self.state

    def no_pipeline(self) -> RequestError:
        return failed_precondition(f"no forwarding pipeline config is set for device {self.device.device_id}")

    def run(self, pipeline: ForwardingPipeline, digest_sink: DigestCallback | None) -> ForwardingState:
        """Load its program and start with fresh state. If that fails, the old one goes on.

        `digest_sink`: where the device's digests go while one is enabled.
        """
        try:
            self.device.load(pipeline.program)
        except Exception as error:
            raise from_exception(error) from error
        if self.state is not None:
            self.state.clear()
        self.state = ForwardingState(self.device, pipeline, digest_sink)
        self.digests = DigestLists(pipeline.digests.values(), self.state.digests.configs, *self._digest_setting)
        return self.state

    def lose_everything(self) -> None:
        """Lose the program and all state, as in a power failure."""
        if self.state is not None:
            self.state.clear()
        self.state = self.digests = None
        self.device.restart()

    # ---- Packets and digests ----

    def packet_in(self, frame: bytes) -> Any | None:
        """Return the p4.v1.PacketIn of a frame from the CPU port; None if no loaded program can have made it."""
        state = self.state
        if state is None:
            return None
        try:
            return state.pipeline.packet_in.packet_in(frame)
        except ValueError:
            return None  # shorter than the header: not made by this program

    def packet_out(self, packet: Any) -> None:
        """Hand a p4.v1.PacketOut to the pipeline."""
        frame = self.running().pipeline.packet_out.frame(packet)
        try:
            self.device.packet_out(frame)
        except Exception as error:
            raise from_exception(error) from error

    def acknowledge_digest(self, digest_id: int, list_id: int) -> None:
        """Take a controller's acknowledgement of a digest list."""
        if digest_id not in self.running().pipeline.digests:
            raise invalid(f"there is no digest {digest_id}")
        if self.digests is not None:
            self.digests.acknowledge(digest_id, list_id)
