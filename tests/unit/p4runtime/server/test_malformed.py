"""Requests that are no messages, whichever way protobuf is built: by its Python classes or those in C."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest
from finsy.proto import p4r

from switch.p4runtime.values.malformed import MalformedRequests
from switch.p4runtime.values.status import RequestError


@pytest.mark.parametrize("parse", [p4r.WriteRequest.FromString, lambda body: p4r.WriteRequest.FromString(body)])
def test_what_cannot_be_parsed_is_told_by_name(parse: Any) -> None:
    async def continuation(details: Any) -> Any:
        return grpc.unary_unary_rpc_method_handler(lambda request, context: None, request_deserializer=parse)

    handler = asyncio.run(MalformedRequests().intercept_service(continuation, None))
    request = p4r.WriteRequest(device_id=7)
    assert handler.request_deserializer(request.SerializeToString()) == request
    error = handler.request_deserializer(b"\xff")
    assert isinstance(error, RequestError) and "p4.v1.WriteRequest" in str(error)
