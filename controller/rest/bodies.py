"""Bodies of requests: bounded in bytes and in time, and as strict as their schema."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Annotated, Any

from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError
from pydantic.functional_validators import BeforeValidator
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

# ---- Bounded: what is longer is refused before it is kept ----


MAX_BODY_BYTES = 16 << 20
"""A job of 10,000 workers takes a tenth of it."""
BODY_PATIENCE_S = 30.0
OF_BODIES = (408, 413)
"""What an endpoint with a body may answer for it (controller/rest/errors.py)."""

_HANG_UP = {"Connection": "close"}


class BodyLimits:
    """Middleware that bounds bodies; handlers see its HTTPException where they read the body."""

    def __init__(self, app: ASGIApp, max_bytes: int = MAX_BODY_BYTES, patience_s: float = BODY_PATIENCE_S) -> None:
        self._app = app
        self._max_bytes = max_bytes
        self._patience_s = patience_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            receive = _Body(scope, receive, self._max_bytes, self._patience_s).receive
        await self._app(scope, receive, send)


class _Body:
    def __init__(self, scope: Scope, receive: Receive, max_bytes: int, patience_s: float) -> None:
        self._receive = receive
        self._max_bytes = max_bytes
        self._patience_s = patience_s
        self._ends_at_s = time.monotonic() + patience_s
        said = Headers(scope=scope).get("content-length", "")
        self._bytes = 0
        self._said_bytes = int(said) if said.isdecimal() else 0
        self._whole = False

    async def receive(self) -> Message:
        if self._whole:
            return await self._receive()  # what comes now is that the client hangs up
        self._check(self._said_bytes)
        try:
            message = await asyncio.wait_for(self._receive(), max(0.0, self._ends_at_s - time.monotonic()))
        except asyncio.TimeoutError:
            text = f"the body did not come within {self._patience_s:g} s"
            raise HTTPException(408, text, headers=_HANG_UP) from None
        self._bytes += len(message.get("body", b""))
        self._check(self._bytes)
        self._whole = not message.get("more_body", False)
        return message

    def _check(self, length_bytes: int) -> None:
        if length_bytes > self._max_bytes:
            text = f"the body is longer than {self._max_bytes} bytes"
            raise HTTPException(413, text, headers=_HANG_UP)


# ---- Strict: a model by itself takes 0 for a boolean, and "2" for a number ----


def strict(model: type[BaseModel]) -> Any:
    """Return the type of an endpoint's body."""

    def check(value: Any) -> BaseModel:
        if isinstance(value, bytes):
            raise RequestValidationError([{"loc": ("body",), "msg": "send JSON, with Content-Type application/json"}])
        try:
            # As JSON: there, lists stand for tuples, and texts for addresses, in a strict model too.
            return model.model_validate_json(json.dumps(value), strict=True)
        except ValidationError as error:
            problems = [{**problem, "loc": ("body", *problem["loc"])} for problem in error.errors()]
            raise RequestValidationError(problems) from None

    return Annotated[model, BeforeValidator(check)]
