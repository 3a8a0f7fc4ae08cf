"""Requests that are no protobuf messages of their kind: INTERNAL, as gRPC for C++ (and so BMv2) answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import grpc
from google.protobuf.message import DecodeError

from gradbed.switch.p4runtime.values.status import Code, RequestError


class MalformedRequests(grpc.aio.ServerInterceptor):  # type: ignore[misc]
    """Hands the error on in place of the request. By itself gRPC for Python says UNKNOWN and names a class."""

    async def intercept_service(self, continuation: Callable[[Any], Awaitable[Any]], details: Any) -> Any:
        handler = await continuation(details)
        parse = handler and handler.request_deserializer
        if parse is None:
            return handler
        name = parse(b"").DESCRIPTOR.full_name

        def parse_or_say(body: bytes) -> Any:
            try:
                return parse(body)
            except DecodeError:
                return RequestError(Code.INTERNAL, f"the request is no {name}")

        return handler._replace(request_deserializer=parse_or_say)
