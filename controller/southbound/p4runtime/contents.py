"""The contents of one switch over P4Runtime: its pipeline, entries, groups and counters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import grpc
from finsy.proto import p4r, p4r_grpc, rpc_code

from gradbed.common.errors import UserError
from gradbed.controller.planning.diff import switch_diff
from gradbed.controller.planning.plan import SwitchPlan
from gradbed.controller.southbound.interface import CounterCell, SouthboundError, SouthboundTimeout
from gradbed.controller.southbound.p4runtime.codec import (
    Update,
    batches,
    decode_clone,
    decode_entry,
    decode_group,
    encode_digest_config,
    number,
)
from gradbed.controller.southbound.p4runtime.schema import Pipeline
from gradbed.switch.p4runtime.status import update_errors

# ---- Failed calls in one line ----


_AWAY = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED, grpc.StatusCode.DEADLINE_EXCEEDED)


def is_away(error: grpc.aio.AioRpcError) -> bool:
    """Return whether the other side did not answer, as opposed to answering that it will not."""
    return error.code() in _AWAY


def describe(error: grpc.aio.AioRpcError, what: str, subjects: Sequence[str] = ()) -> str:
    """`what` failed and why. For a Write, subjects names each update; the first that failed is shown."""
    failed = [
        (index, item)
        for index, item in enumerate(update_errors(error.trailing_metadata()))
        if item.canonical_code != rpc_code.OK
    ]
    if failed:
        index, item = failed[0]
        subject = f" ({subjects[index]})" if index < len(subjects) else ""
        more = f", and {len(failed) - 1} more" if len(failed) > 1 else ""
        return _one_line(f"{what}{subject}: {rpc_code.Code.Name(item.canonical_code)} {item.message}{more}")
    return _one_line(f"{what}: {error.code().name} {error.details() or ''}")


def _one_line(text: str) -> str:
    return " ".join(text.split())


# ---- The contents of a switch ----


CALL_TIMEOUT_S = 30.0
PUSH_TIMEOUT_S = 120.0
"""A switch may have to compile the program first."""

UPDATES_PER_WRITE = 1000
PUSH = "push pipeline"

_NO_PIPELINE = (
    grpc.StatusCode.FAILED_PRECONDITION,
    grpc.StatusCode.NOT_FOUND,
    grpc.StatusCode.UNIMPLEMENTED,
)


_EVERY_GROUP = p4r.Entity(
    packet_replication_engine_entry=p4r.PacketReplicationEngineEntry(multicast_group_entry=p4r.MulticastGroupEntry())
)
_EVERY_CLONE_SESSION = p4r.Entity(
    packet_replication_engine_entry=p4r.PacketReplicationEngineEntry(clone_session_entry=p4r.CloneSessionEntry())
)


class WriteRefused(SouthboundError):
    """Raised when a switch rejects a write; sending it again will not help."""


class AlreadyThere(SouthboundError):
    """Raised when an entry to insert exists already."""


class _PipelineLost(SouthboundError):
    """Raised when a switch has lost its pipeline, though its stream goes on."""


class _Unreadable(SouthboundError):
    """Raised when a switch does not implement a read."""


class SwitchContents:
    """Bring one switch to plans by writing only what differs. Calls must not overlap, except `counters`.

    election_id: the bid that made us primary; the switch takes writes under that one alone.
    """

    def __init__(
        self, name: str, stub: p4r_grpc.P4RuntimeStub, device_id: int, pipelines: Mapping[str, Pipeline]
    ) -> None:
        self.election_id: Any = None
        self._name = name
        self._stub = stub
        self._device_id = device_id
        self._pipelines = pipelines
        self._running_cookie = 0
        # Normalised; None when it has to be read first.
        self._held: SwitchPlan | None = None
        self._brought_to: SwitchPlan | None = None
        # Of the plan that was written last, what is not read back: see _read_back.
        self._written = SwitchPlan(program="")
        self._digests_enabled = False

    def pipeline(self, plan: SwitchPlan) -> Pipeline:
        """Return the pipeline that a plan names.

        Raises:
            UserError: There is none.
        """
        if plan.program not in self._pipelines:
            raise UserError(f"{self._name}: no pipeline is named {plan.program!r}")
        return self._pipelines[plan.program]

    async def rediscover(self, keep_pipeline: bool) -> None:
        """Another connection: the switch may have lost what it held, or another controller changed it. Without
        keep_pipeline whatever runs there is as good as nothing."""
        self._held = None
        self._digests_enabled = False
        self._running_cookie = await self._read_cookie() if keep_pipeline else 0

    async def bring_to(self, plan: SwitchPlan) -> None:
        """Make the switch run the plan's program and hold the plan.

        After a failure it may hold part of the plan, which the next call reads back. A switch that has lost its
        pipeline gets it again.
        """
        try:
            await self._bring_to(plan)
        except _PipelineLost:
            self._running_cookie = 0
            await self._bring_to(plan)

    async def _bring_to(self, plan: SwitchPlan) -> None:
        pipeline = self.pipeline(plan)
        complete = self._held is not None and self._running_cookie == pipeline.cookie and self._digests_enabled
        if complete and plan == self._brought_to:
            return  # as most switches, when a job comes or goes
        self._brought_to = None
        wanted = pipeline.schema.normalised(plan)
        if self._running_cookie != pipeline.cookie:
            await self._push(pipeline)
        held = self._held if self._held is not None else await self._read_back_or_clear(pipeline)
        # Should a write fail half-way, only the switch knows how far it came.
        self._held = None
        for batch in batches(pipeline.schema, held, wanted):
            await self._write(batch)
        self._held = wanted
        self._written = wanted
        self._brought_to = plan
        if not self._digests_enabled:
            await self._enable_digests(pipeline)

    async def counters(self, plan: SwitchPlan) -> dict[str, list[CounterCell]]:
        """Return all counter arrays of the plan's program by short name, every cell."""
        arrays = self.pipeline(plan).schema.counters
        cells: dict[str, list[CounterCell]] = {array.short: [] for array in arrays}
        by_id = {array.id: cells[array.short] for array in arrays}
        wanted = [p4r.Entity(counter_entry=p4r.CounterEntry(counter_id=array.id)) for array in arrays]
        for entity in await self._read("read counters", wanted):
            entry = entity.counter_entry
            found = by_id.get(entry.counter_id)
            if found is not None:
                data = entry.data
                found.append(CounterCell(entry.index.index, data.packet_count, data.byte_count))
        return cells

    async def differences(self, plan: SwitchPlan) -> list[str] | None:
        """Read the switch and return the differences from a plan, a line for each change.

        None: the switch cannot report its contents.
        """
        pipeline = self.pipeline(plan)
        if await self._read_cookie() != pipeline.cookie:
            return [f"program: not {plan.program}"]
        try:
            held = await self._read_back(pipeline)
        except _Unreadable:
            return None
        return str(switch_diff(held, pipeline.schema.normalised(plan))).splitlines()

    async def register(self, plan: SwitchPlan, name: str) -> list[int]:
        """Return every cell of a register array of the plan's program.

        Raises:
            UserError: It has none of that name.
        """
        array = self.pipeline(plan).schema.registers[name]
        wanted = [p4r.Entity(register_entry=p4r.RegisterEntry(register_id=array.id))]
        try:
            found = await self._read(f"read register {array.name}", wanted)
        except _Unreadable as error:
            raise SouthboundError(str(error)) from None
        cells = {entity.register_entry.index.index: entity.register_entry.data for entity in found}
        return [number(cells[index].bitstring) for index in sorted(cells)]

    async def _read_cookie(self) -> int:
        request = p4r.GetForwardingPipelineConfigRequest(
            device_id=self._device_id,
            response_type=p4r.GetForwardingPipelineConfigRequest.COOKIE_ONLY,
        )
        try:
            response = await self._stub.GetForwardingPipelineConfig(request, timeout=CALL_TIMEOUT_S)
        except grpc.aio.AioRpcError as error:
            if error.code() in _NO_PIPELINE:
                return 0
            raise self._failure(error, "read pipeline") from None
        return int(response.config.cookie.cookie)

    async def _push(self, pipeline: Pipeline) -> None:
        request = p4r.SetForwardingPipelineConfigRequest(
            device_id=self._device_id,
            election_id=self.election_id,
            action=p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT,
            config=pipeline.config(),
        )
        # Should it fail half-way, or be cancelled, only the switch knows what it runs.
        self._running_cookie, self._held = 0, None
        try:
            await self._stub.SetForwardingPipelineConfig(request, timeout=PUSH_TIMEOUT_S)
        except grpc.aio.AioRpcError as error:
            raise self._failure(error, PUSH) from None
        self._running_cookie = pipeline.cookie
        self._held = SwitchPlan(program=pipeline.name)
        self._written = self._held
        self._digests_enabled = False

    async def _enable_digests(self, pipeline: Pipeline) -> None:
        """Have the switch send every digest of its program; a predecessor may have done so already."""
        wanted = {digest.id: digest for digest in pipeline.schema.digests}
        enabled = await self._enabled_digests() if wanted else {}
        for digest_id, digest in wanted.items():
            entity = encode_digest_config(digest)
            if enabled.get(digest_id) == entity.digest_entry.config:
                continue
            kind = p4r.Update.MODIFY if digest_id in enabled else p4r.Update.INSERT
            try:
                request = self._write_request([p4r.Update(type=kind, entity=entity)])
                await self._stub.Write(request, timeout=CALL_TIMEOUT_S)
            except AlreadyThere:
                continue
            except grpc.aio.AioRpcError as error:
                if [each.canonical_code for each in update_errors(error.trailing_metadata())] != [
                    rpc_code.ALREADY_EXISTS
                ]:
                    raise self._failure(error, "write", [f"digest {digest.name}"]) from None
        self._digests_enabled = True

    async def _enabled_digests(self) -> dict[int, Any]:
        """Return how each digest is sent, by its number; none of a switch that cannot tell."""
        try:
            found = await self._read("read digests", [p4r.Entity(digest_entry=p4r.DigestEntry())])
        except _Unreadable:
            return {}
        return {entity.digest_entry.digest_id: entity.digest_entry.config for entity in found}

    async def _read_back_or_clear(self, pipeline: Pipeline) -> SwitchPlan:
        """Return what the switch holds; one that cannot tell (not every target reads groups) starts afresh."""
        try:
            return await self._read_back(pipeline)
        except _Unreadable:
            await self._push(pipeline)
            return SwitchPlan(program=pipeline.name)

    async def _read_back(self, pipeline: Pipeline) -> SwitchPlan:
        """Return what the switch holds, registers, meter arrays and default actions as we wrote them.

        Programs change registers rightfully, and the others cannot be told from the program's own.
        """
        every_entry = p4r.Entity(table_entry=p4r.TableEntry(table_id=0))
        if any(table.has_meter for table in pipeline.schema.tables):
            every_entry.table_entry.meter_config.SetInParent()
        entries = [
            decode_entry(pipeline.schema, entity.table_entry)
            for entity in await self._read("read tables", [every_entry])
        ]
        replicated = [
            entity.packet_replication_engine_entry
            for entity in await self._read("read multicast groups", [_EVERY_GROUP, _EVERY_CLONE_SESSION])
        ]
        return SwitchPlan.of(
            pipeline.name,
            [entry for entry in entries if entry is not None],
            [decode_group(e.multicast_group_entry) for e in replicated if e.HasField("multicast_group_entry")],
            self._written.registers,
            defaults=self._written.defaults,
            clones=[decode_clone(e.clone_session_entry) for e in replicated if e.HasField("clone_session_entry")],
            meters=self._written.meters,
        )

    async def _read(self, what: str, entities: Sequence[Any]) -> list[Any]:
        request = p4r.ReadRequest(device_id=self._device_id, entities=entities)
        found: list[Any] = []
        try:
            async for response in self._stub.Read(request, timeout=CALL_TIMEOUT_S):
                found += response.entities
        except grpc.aio.AioRpcError as error:
            if error.code() == grpc.StatusCode.UNIMPLEMENTED:
                raise _Unreadable(f"{self._name}: {describe(error, what)}") from None
            raise self._failure(error, what) from None
        return found

    async def _write(self, updates: Sequence[Update]) -> None:
        for first in range(0, len(updates), UPDATES_PER_WRITE):
            batch = updates[first : first + UPDATES_PER_WRITE]
            try:
                request = self._write_request([update.message for update in batch])
                await self._stub.Write(request, timeout=CALL_TIMEOUT_S)
            except grpc.aio.AioRpcError as error:
                raise self._failure(error, "write", [update.subject for update in batch]) from None

    def _write_request(self, updates: Sequence[Any]) -> Any:
        return p4r.WriteRequest(device_id=self._device_id, election_id=self.election_id, updates=updates)

    def _failure(self, error: grpc.aio.AioRpcError, what: str, subjects: Sequence[str] = ()) -> SouthboundError:
        kind = SouthboundError if is_away(error) else WriteRefused
        if error.code() == grpc.StatusCode.DEADLINE_EXCEEDED:
            kind = SouthboundTimeout
        if error.code() == grpc.StatusCode.FAILED_PRECONDITION and what != PUSH:
            kind = _PipelineLost
        return kind(f"{self._name}: {describe(error, what, subjects)}")
