"""Errors of the REST interface: {"detail": "one line"} with the right status."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from controller.core.jobs import UnknownJob
from controller.southbound.interface import SouthboundError, SouthboundTimeout
from switch.errors import UserError


def errors_in_one_line(app: FastAPI) -> None:
    """Have the application answer so."""

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
        return response(422, _first_problem(error.errors()))

    @app.exception_handler(HTTPException)
    def on_http_error(_request: Request, error: HTTPException) -> JSONResponse:
        return response(error.status_code, str(error.detail))


def _first_problem(problems: Sequence[Any]) -> str:
    """The first complaint about a request, with the field it is about ("workers: Field required")."""
    place = ".".join(str(part) for part in problems[0]["loc"][1:])
    return f"{place}: {problems[0]['msg']}" if place else str(problems[0]["msg"])
