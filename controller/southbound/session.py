"""One switch: stream, arbitration, pipeline, and a plan that it is kept to."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import grpc
from finsy.proto import U128, p4r, p4r_grpc, rpc_code

from controller.planning.diff import switch_diff
from controller.planning.plan import MulticastGroup, RegisterValue, SwitchPlan, TableEntry
from controller.planning.text import entry_text
from controller.southbound.codec import (
    decode_entry,
    decode_group,
    encode_entry,
    encode_group,
    encode_register,
)
from controller.southbound.interface import CounterCell, SouthboundError, SwitchStatus
from controller.southbound.pipeline import Pipeline
from controller.southbound.rpc_errors import describe
from controller.southbound.target import Target
from switch.errors import UserError

CALL_TIMEOUT_S = 30.0
PUSH_TIMEOUT_S = 120.0
"""A switch may have to compile the program first."""

FIRST_RETRY_S = 0.1
LAST_RETRY_S = 2.0
UPDATES_PER_WRITE = 1000

_AWAY = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED, grpc.StatusCode.DEADLINE_EXCEEDED)
_NO_PIPELINE = (
    grpc.StatusCode.FAILED_PRECONDITION,
    grpc.StatusCode.NOT_FOUND,
    grpc.StatusCode.UNIMPLEMENTED,
)


@dataclass(frozen=True)
class _Update:
    """One P4Runtime update, and how to name it in an error."""

    type: int
    entity: Any
    subject: str


class _Unreadable(SouthboundError):
    """The switch does not implement reading something."""


class SwitchSession:
    """Keeps one switch connected and at its plan. All methods run on one event loop.

    `refused` is set when the switch is there but does not accept pipeline or plan: trying again will not help
    a person who waits, though the session does.
    """

    def __init__(
        self,
        name: str,
        target: Target,
        channel: grpc.aio.Channel,
        pipelines: Mapping[str, Pipeline],
        keep_pipeline: bool,
        on_change: Callable[[SwitchStatus], None],
    ) -> None:
        self.name = name
        self.target = target
        self.refused = False
        self.status = SwitchStatus(name, False, error=f"no answer from {target.address}")
        self._stub = p4r_grpc.P4RuntimeStub(channel)
        self._pipelines = pipelines
        self._may_keep_pipeline = keep_pipeline
        self._on_change = on_change
        self._lock = asyncio.Lock()
        self._election_id = U128.encode(0)
        self._wanted = SwitchPlan(program="")
        # What the switch holds, normalised; None when that has to be read first.
        self._held: SwitchPlan | None = None
        self._cells_written: tuple[RegisterValue, ...] = ()

    async def run(self, plan: SwitchPlan) -> None:
        """Connect, bring the switch to the plan, and stay; start over when the switch goes away. Never returns."""
        self._wanted = plan
        retry_s = FIRST_RETRY_S
        while True:
            try:
                await self._serve()
                reason, self.refused = "the switch closed the stream", False
            except grpc.aio.AioRpcError as error:
                reason = describe(error, "stream")
                self.refused = error.code() not in _AWAY
            except SouthboundError as error:
                reason = str(error).removeprefix(f"{self.name}: ")
            except UserError as error:
                reason, self.refused = str(error), True
            if self.status.connected:
                retry_s = FIRST_RETRY_S
            self._set_status(SwitchStatus(self.name, False, error=reason))
            await asyncio.sleep(retry_s)
            retry_s = min(2 * retry_s, LAST_RETRY_S)

    async def apply(self, plan: SwitchPlan) -> None:
        """Bring the connected switch to another plan. After a SouthboundError call `restore`: some of it may
        have been written."""
        async with self._lock:
            self._require_connected()
            self._wanted = plan
            await self._reconcile()

    async def restore(self, plan: SwitchPlan) -> None:
        """Make `plan` the one that the switch is kept to: now if it is there, else as soon as it is."""
        async with self._lock:
            self._wanted = plan
            if self.status.connected:
                # If even that fails, the session is about to start over, with this plan.
                with contextlib.suppress(SouthboundError):
                    await self._reconcile()

    async def counters(self) -> dict[str, list[CounterCell]]:
        """All counter arrays by short name, every cell."""
        self._require_connected()
        arrays = self._pipeline.schema.counters
        cells: dict[str, list[CounterCell]] = {array.short: [] for array in arrays}
        wanted = [p4r.Entity(counter_entry=p4r.CounterEntry(counter_id=array.id)) for array in arrays]
        for entity in await self._read("read counters", wanted):
            entry = entity.counter_entry
            array = arrays.by_id(entry.counter_id)
            if array is not None:
                cells[array.short].append(
                    CounterCell(entry.index.index, entry.data.packet_count, entry.data.byte_count)
                )
        return cells

    @property
    def plan(self) -> SwitchPlan:
        """What the switch is kept to."""
        return self._wanted

    @property
    def _pipeline(self) -> Pipeline:
        return self._pipelines[self._wanted.program]

    def _require_connected(self) -> None:
        if not self.status.connected:
            raise SouthboundError(f"{self.name} is not connected: {self.status.error}")

    async def _serve(self) -> None:
        stream = self._stub.StreamChannel(wait_for_ready=True)
        try:
            await self._bid(stream)
            async for message in stream:
                if message.WhichOneof("update") == "arbitration":
                    await self._arbitrated(stream, message.arbitration)
        finally:
            stream.cancel()

    async def _bid(self, stream: Any) -> None:
        """Ask to be primary. The time as election id lets a later controller take over from one that hangs."""
        self._election_id = U128.encode(time.time_ns())
        await stream.write(
            p4r.StreamMessageRequest(
                arbitration=p4r.MasterArbitrationUpdate(
                    device_id=self.target.device_id, election_id=self._election_id
                )
            )
        )

    async def _arbitrated(self, stream: Any, update: Any) -> None:
        if update.status.code == rpc_code.OK:
            if not self.status.connected:
                async with self._lock:
                    await self._adopt()
            return
        self._set_status(SwitchStatus(self.name, False, error="another controller is in charge"))
        if update.status.code == rpc_code.NOT_FOUND:
            await self._bid(stream)  # the primary has left

    async def _adopt(self) -> None:
        """The switch is ours: see to its pipeline, then to its plan."""
        if self._wanted.program not in self._pipelines:
            raise UserError(f"{self.name}: no pipeline is named {self._wanted.program!r}")
        if not (self._may_keep_pipeline and await self._running_cookie() == self._pipeline.cookie):
            await self._push_pipeline()
        else:
            self._held = None
        # From now on what runs there is ours, and so is the state in it.
        self._may_keep_pipeline = True
        await self._reconcile()
        self.refused = False
        self._set_status(SwitchStatus(self.name, True, self._pipeline.label))

    async def _running_cookie(self) -> int:
        request = p4r.GetForwardingPipelineConfigRequest(
            device_id=self.target.device_id,
            response_type=p4r.GetForwardingPipelineConfigRequest.COOKIE_ONLY,
        )
        try:
            response = await self._stub.GetForwardingPipelineConfig(request, timeout=CALL_TIMEOUT_S)
        except grpc.aio.AioRpcError as error:
            if error.code() in _NO_PIPELINE:
                return 0
            raise self._failure(error, "read pipeline") from None
        return int(response.config.cookie.cookie)

    async def _push_pipeline(self) -> None:
        request = p4r.SetForwardingPipelineConfigRequest(
            device_id=self.target.device_id,
            election_id=self._election_id,
            action=p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT,
            config=self._pipeline.config(),
        )
        try:
            await self._stub.SetForwardingPipelineConfig(request, timeout=PUSH_TIMEOUT_S)
        except grpc.aio.AioRpcError as error:
            raise self._failure(error, "push pipeline") from None
        self._cells_written = ()
        self._held = SwitchPlan(program=self._wanted.program)

    async def _reconcile(self) -> None:
        """Write the difference between what the switch holds and what it should."""
        wanted = self._pipeline.schema.normalised(self._wanted)
        held = self._held if self._held is not None else await self._read_back_or_clear(wanted)
        # Should a write fail half-way, only the switch knows how far it came.
        self._held = None
        diff = switch_diff(held, wanted)
        schema = self._pipeline.schema

        def entries(kind: int, items: Sequence[TableEntry]) -> list[_Update]:
            return [_Update(kind, encode_entry(schema, e), f"{e.table}: {entry_text(e)}") for e in items]

        def groups(kind: int, items: Sequence[MulticastGroup]) -> list[_Update]:
            return [_Update(kind, encode_group(g), f"multicast group {g.id}") for g in items]

        # Updates of one Write may take effect in any order: what must be there first goes in an earlier one.
        insert, modify, delete = p4r.Update.INSERT, p4r.Update.MODIFY, p4r.Update.DELETE
        await self._write(
            [
                *entries(delete, diff.entries.delete),
                *groups(insert, diff.groups.insert),
                *groups(modify, diff.groups.modify),
                *(
                    _Update(modify, encode_register(schema, cell), f"{cell.register_name}[{cell.index}]")
                    for cell in diff.registers
                ),
            ]
        )
        await self._write([*entries(insert, diff.entries.insert), *entries(modify, diff.entries.modify)])
        await self._write(groups(delete, diff.groups.delete))
        self._held = wanted
        self._cells_written = wanted.registers

    async def _read_back_or_clear(self, wanted: SwitchPlan) -> SwitchPlan:
        """What the switch holds; one that cannot tell (not every target reads groups) is made to start afresh."""
        try:
            return await self._read_back(wanted)
        except _Unreadable:
            await self._push_pipeline()
            return SwitchPlan(program=wanted.program)

    async def _read_back(self, wanted: SwitchPlan) -> SwitchPlan:
        """What the switch holds. Register cells are taken as we wrote them: programs change them rightfully."""
        schema = self._pipeline.schema
        entries = [
            decode_entry(schema, entity.table_entry)
            for entity in await self._read("read tables", [p4r.Entity(table_entry=p4r.TableEntry(table_id=0))])
        ]
        every_group = p4r.Entity(
            packet_replication_engine_entry=p4r.PacketReplicationEngineEntry(
                multicast_group_entry=p4r.MulticastGroupEntry()
            )
        )
        groups = [
            decode_group(entity.packet_replication_engine_entry.multicast_group_entry)
            for entity in await self._read("read multicast groups", [every_group])
        ]
        return SwitchPlan.of(
            wanted.program, [entry for entry in entries if entry is not None], groups, self._cells_written
        )

    async def _read(self, what: str, entities: Sequence[Any]) -> list[Any]:
        request = p4r.ReadRequest(device_id=self.target.device_id, entities=entities)
        found: list[Any] = []
        try:
            async for response in self._stub.Read(request, timeout=CALL_TIMEOUT_S):
                found += response.entities
        except grpc.aio.AioRpcError as error:
            if error.code() == grpc.StatusCode.UNIMPLEMENTED:
                raise _Unreadable(f"{self.name}: {describe(error, what)}") from None
            raise self._failure(error, what) from None
        return found

    async def _write(self, updates: Sequence[_Update]) -> None:
        for first in range(0, len(updates), UPDATES_PER_WRITE):
            batch = updates[first : first + UPDATES_PER_WRITE]
            request = p4r.WriteRequest(
                device_id=self.target.device_id,
                election_id=self._election_id,
                updates=[p4r.Update(type=update.type, entity=update.entity) for update in batch],
            )
            try:
                await self._stub.Write(request, timeout=CALL_TIMEOUT_S)
            except grpc.aio.AioRpcError as error:
                raise self._failure(error, "write", [update.subject for update in batch]) from None

    def _failure(self, error: grpc.aio.AioRpcError, what: str, subjects: Sequence[str] = ()) -> SouthboundError:
        self.refused = error.code() not in _AWAY
        return SouthboundError(f"{self.name}: {describe(error, what, subjects)}")

    def _set_status(self, status: SwitchStatus) -> None:
        changed = status != self.status
        self.status = status
        if changed:
            self._on_change(status)
