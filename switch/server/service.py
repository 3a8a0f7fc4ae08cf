"""The P4Runtime service: its six RPCs on grpc.aio, errors turned into gRPC statuses, and the sessions of
StreamChannel."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from concurrent.futures import Executor
from typing import Any

from finsy.proto import p4r

from gradbed.common.errors import unforeseen
from gradbed.switch.p4runtime.status import (
    DETAILS_KEY,
    GRPC_CODES,
    BatchError,
    RequestError,
    StatusCode,
    denied,
    not_found,
    unimplemented,
)
from gradbed.switch.server.arbitration import Controller, Election
from gradbed.switch.server.target import SLOW_CONTROLLER, P4RuntimeTarget
from gradbed.switch.state.pipeline import Pipelines

# ---- StreamChannel: one controller's session on one device ----


# What waits for a slow controller, at most; further messages are dropped, and counted (Target.drops).
PENDING_MESSAGES = 2048
PENDING_BYTES = 32 << 20
# Arbitration is never dropped: a controller for which so much more waits has asked for it and does not read.
SPARE = 2
# Of a stream that ends, for the message that is being written.
LAST_WRITE_S = 5.0


class StreamSession:
    def __init__(self, targets: Mapping[int, P4RuntimeTarget], context: Any) -> None:
        """Create the session of a stream, whose grpc.aio.ServicerContext is `context`."""
        self._targets = targets
        self._context = context
        self._pending: asyncio.Queue[Any] = asyncio.Queue()
        self._pending_bytes = 0
        self._controller = Controller(self._send, self._end)
        self._ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._target: P4RuntimeTarget | None = None
        self._election: Election | None = None

    async def run(self, requests: AsyncIterator[Any]) -> None:
        """Serve until the controller closes the stream. Raises RequestError if the server has to close it."""
        writer = asyncio.create_task(self._write_pending())
        reader = asyncio.create_task(self._handle_all(requests))
        try:
            await asyncio.wait({reader, self._ended}, return_when=asyncio.FIRST_COMPLETED)
            await (self._ended if self._ended.done() else reader)
        finally:
            reader.cancel()
            if self._election is not None:
                self._leave(self._election)
            # The status that ends the stream must not overtake a message that is being written.
            self._pending.put_nowait(None)
            # A controller that does not read would keep the stream for ever.
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(writer, LAST_WRITE_S)

    def _leave(self, election: Election) -> None:
        before = election.primary
        election.leave(self._controller)
        if self._target is not None and election.primary is not before:
            self._target.primary_changed()

    async def _handle_all(self, requests: AsyncIterator[Any]) -> None:
        async for request in requests:
            await self._handle(request)

    def _end(self, reason: RequestError) -> None:
        if not self._ended.done():
            self._ended.set_exception(reason)

    async def _write_pending(self) -> None:
        # Writing fails when the controller is gone, which ends the reading side as well.
        with contextlib.suppress(Exception):
            while (response := await self._pending.get()) is not None:
                self._pending_bytes -= response.ByteSize()
                await self._context.write(response)

    def _send(self, response: Any) -> None:
        kind = response.WhichOneof("update")
        size = response.ByteSize()
        if kind == "arbitration":
            if self._is_full(size, SPARE):
                self._drop(kind)
                reason = f"{self._pending.qsize()} messages wait to be read on this stream"
                self._end(RequestError(StatusCode.RESOURCE_EXHAUSTED, reason))
                return
        elif self._is_full(size):
            self._drop(kind)
            return
        self._pending_bytes += size
        self._pending.put_nowait(response)

    def _is_full(self, size_bytes: int, times: int = 1) -> bool:
        messages = self._pending.qsize() >= times * PENDING_MESSAGES
        return messages or self._pending_bytes + size_bytes > times * PENDING_BYTES

    def _drop(self, kind: str) -> None:
        if self._target is not None:
            self._target.count_drop(kind, SLOW_CONTROLLER)

    async def _handle(self, request: Any) -> None:
        if isinstance(request, RequestError):
            raise request
        kind = request.WhichOneof("update")
        if kind == "arbitration":
            await self._arbitrate(request.arbitration)
        elif kind == "packet":
            self._packet_out(request.packet)
        elif kind == "digest_ack":
            self._digest_ack(request.digest_ack)
        else:
            error = _stream_error(unimplemented("this switch has no stream messages of this kind"))
            error.other.SetInParent()
            if kind == "other":
                error.other.other.CopyFrom(request.other)
            self._send(p4r.StreamMessageResponse(error=error))

    async def _arbitrate(self, message: Any) -> None:
        target = self._targets.get(message.device_id)
        if self._target is None or self._election is None:
            if target is None:
                raise not_found(f"there is no device {message.device_id}")
            election = target.elections.get(message.role.name) or target.new_election(message.role.name)
        else:
            election = self._election
            if target is not self._target:
                raise _fixed(f"this stream belongs to device {self._target.device.device_id}")
            if message.role.name != election.role.name:
                raise _fixed(f"this stream belongs to role {election.role.name!r}")
        before = election.primary
        is_primary = election.update(self._controller, message)
        self._target, self._election = target, election
        target.elections[election.role.name] = election
        if election.primary is not before:
            target.primary_changed()
        if is_primary:
            await target.writes_done()
            if election.primary is self._controller:
                election.notify(self._controller)

    def _target_as_primary(self, what: str) -> P4RuntimeTarget:
        """Return the device; raise PERMISSION_DENIED unless this controller is its primary."""
        if self._target is None or self._election is None:
            raise denied(f"{what} needs arbitration first")
        if self._election.primary is not self._controller:
            raise denied(f"only the primary controller may send {what}")
        return self._target

    def _digest_ack(self, ack: Any) -> None:
        try:
            self._target_as_primary("a digest acknowledgement").acknowledge_digest(ack.digest_id, ack.list_id)
        except RequestError as failure:
            error = _stream_error(failure)
            error.digest_list_ack.digest_list_ack.CopyFrom(ack)
            self._send(p4r.StreamMessageResponse(error=error))

    def _packet_out(self, packet: Any) -> None:
        try:
            self._target_as_primary("a packet-out").packet_out(packet)
        except RequestError as failure:
            error = _stream_error(failure)
            error.packet_out.packet_out.CopyFrom(packet)
            self._send(p4r.StreamMessageResponse(error=error))


def _fixed(message: str) -> RequestError:
    return RequestError(StatusCode.FAILED_PRECONDITION, f"{message}: open another stream")


def _stream_error(failure: RequestError) -> Any:
    return p4r.StreamError(canonical_code=failure.code, message=failure.message)


# ---- The six RPCs ----


LOG = logging.getLogger(__name__)

API_VERSION = "1.4.1"


class P4RuntimeService:
    """Method names are those of the protocol, for add_P4RuntimeServicer_to_server."""

    def __init__(self, targets: Mapping[int, P4RuntimeTarget], pipelines: Pipelines, executor: Executor) -> None:
        self._targets = targets
        self._pipelines = pipelines
        self._executor = executor

    async def Write(self, request: Any, context: Any) -> Any:
        return await _answer(context, self._write, request)

    async def Read(self, request: Any, context: Any) -> None:
        await _answer(context, functools.partial(self._read, context), request)

    async def SetForwardingPipelineConfig(self, request: Any, context: Any) -> Any:
        return await _answer(context, self._set_pipeline, request)

    async def GetForwardingPipelineConfig(self, request: Any, context: Any) -> Any:
        return await _answer(context, self._get_pipeline, request)

    async def StreamChannel(self, requests: AsyncIterator[Any], context: Any) -> None:
        await _answer(context, StreamSession(self._targets, context).run, requests)

    async def Capabilities(self, request: Any, context: Any) -> Any:
        return await _answer(context, self._capabilities, request)

    async def _write(self, request: Any) -> Any:
        await self._target(request.device_id).write(request)
        return p4r.WriteResponse()

    async def _read(self, context: Any, request: Any) -> None:
        responses = await self._target(request.device_id).read(request)
        loop = asyncio.get_running_loop()
        while (response := await loop.run_in_executor(self._executor, next, responses, None)) is not None:
            await context.write(response)

    async def _set_pipeline(self, request: Any) -> Any:
        await self._target(request.device_id).set_pipeline(request, self._pipelines)
        return p4r.SetForwardingPipelineConfigResponse()

    async def _get_pipeline(self, request: Any) -> Any:
        return self._target(request.device_id).get_pipeline(request.response_type)

    async def _capabilities(self, request: Any) -> Any:
        if request.device_id:
            self._target(request.device_id)
        return p4r.CapabilitiesResponse(p4runtime_api_version=API_VERSION)

    def _target(self, device_id: int) -> P4RuntimeTarget:
        target = self._targets.get(device_id)
        if target is None:
            raise not_found(f"there is no device {device_id}")
        return target


class ControllersFirst(P4RuntimeService):
    """Service of devices whose initial program is no pipeline: only a controller sets one."""

    async def _write(self, request: Any) -> Any:
        self._target(request.device_id).check_not_preset()
        return await super()._write(request)

    async def _read(self, context: Any, request: Any) -> None:
        self._target(request.device_id).check_not_preset()
        await super()._read(context, request)

    async def _get_pipeline(self, request: Any) -> Any:
        if self._target(request.device_id).is_preset:
            return p4r.GetForwardingPipelineConfigResponse()
        return await super()._get_pipeline(request)


async def _answer(context: Any, work: Callable[[Any], Awaitable[Any]], request: Any) -> Any:
    """Return the result of `work`, or end the RPC with the status of what it raised, or of a malformed request.

    A failed batch has code UNKNOWN and a p4.v1.Error for each element (P4Runtime specification 1.4, "Error
    Reporting").
    """
    details: tuple[tuple[str, bytes], ...] = ()
    try:
        if isinstance(request, RequestError):
            raise request
        return await work(request)
    except RequestError as error:
        code, message = error.code, error.message
    except BatchError as error:
        code, message = StatusCode.UNKNOWN, error.message
        details = ((DETAILS_KEY, error.details()),)
    except Exception as error:
        LOG.exception("unexpected %s", type(error).__name__)
        code, message = StatusCode.INTERNAL, unforeseen(error)
    return await context.abort(GRPC_CODES[code], message, details)
