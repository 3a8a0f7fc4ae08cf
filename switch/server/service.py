"""The P4Runtime service: its six RPCs on grpc.aio, errors turned into gRPC statuses."""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from concurrent.futures import Executor
from typing import Any

from finsy.proto import p4r

from gradbed.common.errors import unforeseen
from gradbed.switch.p4runtime.values.status import DETAILS_KEY, GRPC_CODES, BatchError, Code, RequestError, not_found
from gradbed.switch.server.stream import StreamSession
from gradbed.switch.server.target import Target
from gradbed.switch.state.pipeline import Pipelines

LOG = logging.getLogger(__name__)

API_VERSION = "1.4.1"


class P4RuntimeService:
    """Method names are those of the protocol, for add_P4RuntimeServicer_to_server."""

    def __init__(self, targets: Mapping[int, Target], pipelines: Pipelines, executor: Executor) -> None:
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

    def _target(self, device_id: int) -> Target:
        target = self._targets.get(device_id)
        if target is None:
            raise not_found(f"there is no device {device_id}")
        return target


class ControllersFirst(P4RuntimeService):
    """Where the program that a device was started with is no pipeline: only a controller sets one."""

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
    """The result of `work`, or the end of the RPC with the status of what it raised, or of a malformed request."""
    details: tuple[tuple[str, bytes], ...] = ()
    try:
        if isinstance(request, RequestError):
            raise request
        return await work(request)
    except RequestError as error:
        code, message = error.code, error.message
    except BatchError as error:
        code, message = Code.UNKNOWN, error.message
        details = ((DETAILS_KEY, error.details()),)
    except Exception as error:
        LOG.exception("unexpected %s", type(error).__name__)
        code, message = Code.INTERNAL, unforeseen(error)
    return await context.abort(GRPC_CODES[code], message, details)
