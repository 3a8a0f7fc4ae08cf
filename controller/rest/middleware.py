"""Middleware of the REST interface: access checks, limits for request bodies, and errors in one line."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError
from pydantic.functional_validators import BeforeValidator
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.routing import Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gradbed.common.errors import UserError
from gradbed.common.peer_account import LoopbackPeers
from gradbed.common.problems import problem_with_place
from gradbed.controller.core.jobs import UnknownJob
from gradbed.controller.southbound.interface import SouthboundError, SouthboundTimeout

# ---- Access ----


LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")
JSON = "application/json"


class AccessCheck:
    """ASGI middleware that refuses requests before the application sees them, each in one line of JSON.

    Only those who may open a unix socket can call it, and no browser does. The checks are for TCP. Refused are:

    - over loopback, requests of other accounts of this machine (403), where `peers` are given, one for each listener;
    - over TCP, a Host that is neither a loopback name, this machine's name, nor the address that was called (400).
      Otherwise a web page could point a name of its own at 127.0.0.1, and the reader's browser would let it command
      the switches (DNS rebinding);
    - an Origin other than the Host that was called (403): a page of another site;
    - bodies whose Content-Type is not JSON (422). A page of another site may send other types without a preflight
      request (Fetch standard, "CORS-safelisted request-header"), and not every browser sends an Origin with them.
    """

    def __init__(self, app: ASGIApp, peers: Sequence[LoopbackPeers] = ()) -> None:
        self._app = app
        self._peers = peers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = self._refusal(scope) if scope["type"] == "http" else None
        if refusal is None:
            await self._app(scope, receive, send)
        else:
            # The rest of the body is not read.
            status, detail = refusal
            await JSONResponse({"detail": detail}, status, {"Connection": "close"})(scope, receive, send)

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        headers = Headers(scope=scope)
        address, port = scope.get("server") or ("", None)
        if port is not None:
            client = scope.get("client")
            reasons = [each.refuses(client, (address, port)) for each in self._peers] if client else []
            if reasons and all(reasons):
                return 403, str(reasons[0])
            called = f"[{address}]" if ":" in address else address
            known = [*LOOPBACK_NAMES, socket.gethostname().lower(), called]
            if _name(headers.get("host", "")) not in known:
                return 400, f"the Host of a request has to be one of {', '.join(dict.fromkeys(known))}"
        origins = headers.getlist("origin")
        if any(
            origin.lower() != f"{scope.get('scheme', 'http')}://{headers.get('host', '')}".lower()
            for origin in origins
        ):
            return 403, "a page of another site cannot use this interface"
        if _has_body(headers) and headers.get("content-type", "").partition(";")[0].strip().lower() != JSON:
            return 422, f"send JSON, with Content-Type {JSON}"
        return None


def _name(host: str) -> str:
    """Return the host without its port."""
    name, colon, port = host.lower().rpartition(":")
    return name if colon and port.isdecimal() else host.lower()


def _has_body(headers: Headers) -> bool:
    return headers.get("content-length", "0").strip() != "0" or "transfer-encoding" in headers


# ---- Request bodies ----


MAX_BODY_BYTES = 16 << 20
"""A job of 10,000 workers takes a tenth of it."""
BODY_TIMEOUT_S = 30.0
BODY_STATUSES = (408, 413)
"""Status codes with which an endpoint may refuse a body."""

_HANG_UP = {"Connection": "close"}


class BodyLimits:
    """ASGI middleware that limits the length of bodies and the time they take to arrive.

    Handlers get its HTTPException when they read the body.
    """

    def __init__(self, app: ASGIApp, max_bytes: int = MAX_BODY_BYTES, timeout_s: float = BODY_TIMEOUT_S) -> None:
        self._app = app
        self._max_bytes = max_bytes
        self._timeout_s = timeout_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            receive = _Body(scope, receive, self._max_bytes, self._timeout_s).receive
        await self._app(scope, receive, send)


class _Body:
    def __init__(self, scope: Scope, receive: Receive, max_bytes: int, timeout_s: float) -> None:
        self._receive = receive
        self._max_bytes = max_bytes
        self._timeout_s = timeout_s
        self._ends_at_s = time.monotonic() + timeout_s
        content_length = Headers(scope=scope).get("content-length", "")
        self._bytes = 0
        self._content_length_bytes = int(content_length) if content_length.isdecimal() else 0
        self._complete = False

    async def receive(self) -> Message:
        if self._complete:
            return await self._receive()  # the client hangs up
        self._check(self._content_length_bytes)
        try:
            message = await asyncio.wait_for(self._receive(), max(0.0, self._ends_at_s - time.monotonic()))
        except asyncio.TimeoutError:
            text = f"the body did not arrive within {self._timeout_s:g} s"
            raise HTTPException(408, text, headers=_HANG_UP) from None
        self._bytes += len(message.get("body", b""))
        self._check(self._bytes)
        self._complete = not message.get("more_body", False)
        return message

    def _check(self, length_bytes: int) -> None:
        if length_bytes > self._max_bytes:
            text = f"the body is longer than {self._max_bytes} bytes"
            raise HTTPException(413, text, headers=_HANG_UP)


def strict(model: type[BaseModel]) -> Any:
    """Return the type of an endpoint's body: the model, without pydantic's conversions (0 to false, "2" to 2)."""

    def check(value: Any) -> BaseModel:
        if isinstance(value, bytes):
            raise RequestValidationError([{"loc": ("body",), "msg": "send JSON, with Content-Type application/json"}])
        try:
            # From JSON, strict models take lists for tuples and strings for addresses.
            return model.model_validate_json(json.dumps(value), strict=True)
        except ValidationError as error:
            problems = [{**problem, "loc": ("body", *problem["loc"])} for problem in error.errors()]
            raise RequestValidationError(problems) from None

    return Annotated[model, BeforeValidator(check)]


# ---- Errors ----


MEANINGS = {
    400: "The request makes no sense in this network.",
    404: "Not found.",
    408: "The body took too long to arrive.",
    413: "The body is too long.",
    422: "The request does not match its schema.",
    503: "A switch is not connected.",
    504: "A switch did not answer in time.",
}
SWITCH_STATUSES = (503, 504)
"""Status codes of an endpoint that asks or changes switches."""


class Problem(BaseModel):
    """Why a request was refused, in one line."""

    detail: str


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the error responses of an endpoint, for FastAPI's parameter `responses`."""
    return {status: {"model": Problem, "description": MEANINGS[status]} for status in statuses}


def errors_in_one_line(app: FastAPI) -> None:
    """Make the application answer errors with {"detail": "one line"} and the right status."""

    def response(status: int, detail: str) -> JSONResponse:
        return JSONResponse({"detail": " ".join(detail.split())}, status)

    @app.exception_handler(UserError)
    def on_user_error(_request: Request, error: UserError) -> JSONResponse:
        return response(404 if isinstance(error, UnknownJob) else 400, str(error))

    @app.exception_handler(SouthboundError)
    def on_southbound_error(_request: Request, error: SouthboundError) -> JSONResponse:
        return response(504 if isinstance(error, SouthboundTimeout) else 503, str(error))

    @app.exception_handler(RequestValidationError)
    def on_bad_request(_request: Request, error: RequestValidationError) -> JSONResponse:
        return response(422, problem_with_place(error.errors()[0], skipped=1))

    @app.exception_handler(HTTPException)
    def on_http_error(request: Request, error: HTTPException) -> JSONResponse:
        refused = response(error.status_code, str(error.detail))
        refused.headers.update(error.headers or {})
        if error.status_code == 405:
            refused.headers["Allow"] = ", ".join(sorted(_methods_at(request)))
        return refused


def _methods_at(request: Request) -> set[str]:
    """Return the methods of all endpoints at the path; Starlette knows those of the first one."""
    return {
        method
        for route in request.app.routes
        if route.matches(request.scope)[0] != Match.NONE
        for method in getattr(route, "methods", None) or ()
    }
