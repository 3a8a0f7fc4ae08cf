"""Errors of the REST interface: {"detail": "one line"} with the right status."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.routing import Match

from gradbed.common.errors import UserError
from gradbed.common.problems import problem_with_place
from gradbed.controller.core.jobs import UnknownJob
from gradbed.controller.southbound.interface import SouthboundError, SouthboundTimeout

MEANINGS = {
    400: "It makes no sense in this network.",
    404: "It is not there.",
    408: "The body took too long to come.",
    413: "The body is too long.",
    422: "The request is not of the form that is described.",
    503: "A switch is away.",
    504: "A switch did not answer in time.",
}
OF_SWITCHES = (503, 504)


class Problem(BaseModel):
    """Why a request was refused, in one line."""

    detail: str


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return what an endpoint may answer besides, for its parameter `responses`."""
    return {status: {"model": Problem, "description": MEANINGS[status]} for status in statuses}


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
