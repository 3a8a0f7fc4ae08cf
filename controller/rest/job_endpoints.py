"""Endpoints for jobs: those of every system, with the models of its service, and one for all systems' jobs."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.responses import Response
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from gradbed.controller.core.controller import Controller
from gradbed.controller.rest.body_limits import OF_BODIES
from gradbed.controller.rest.description import example
from gradbed.controller.rest.errors import OF_SWITCHES, problems
from gradbed.controller.rest.strict_body import strict


def add_job_endpoints(app: FastAPI, controller: Controller) -> None:
    for system in controller.services:
        _add_endpoints_of(app, controller, system)
    listed = [
        {"system": system, **shown}
        for system, service in controller.services.items()
        if (shown := _example_of(service.Listed)) is not None
    ]

    @app.get("/jobs", tags=["jobs"], responses=example(listed))
    def get_all_jobs() -> list[dict[str, Any]]:
        """The jobs of all systems that run now."""
        return [{"system": job.system, **controller.listed(job).model_dump(mode="json")} for job in controller.jobs()]

    @app.api_route("/systems/{system}/jobs", methods=["GET", "POST"], include_in_schema=False)
    @app.delete("/systems/{system}/jobs/{job}", include_in_schema=False)
    def unknown_system(system: str) -> None:
        # The endpoints of the systems that are served come before this one.
        known = ", ".join(controller.services) or "none"
        raise HTTPException(404, f"this controller serves no system {system!r}; it serves {known}")


def _add_endpoints_of(app: FastAPI, controller: Controller, system: str) -> None:
    service, path = controller.services[system], f"/systems/{system}/jobs"

    def get_jobs() -> Any:
        return [controller.listed(job) for job in controller.jobs(system)]

    def post_job(request: Any) -> Any:
        return controller.answer(controller.add_job(system, request))

    def delete_job(job: int) -> Response:
        controller.delete_job(system, job)
        return Response(status_code=204)

    # FastAPI reads the type of a request's body here.
    post_job.__annotations__["request"] = strict(service.Request)
    get_example, post_example = _example_of(service.Listed), _example_of(service.Answer)
    app.get(
        path,
        tags=[system],
        response_model=list[service.Listed],  # type: ignore[name-defined]
        responses=example([get_example]) if get_example is not None else None,
        operation_id=f"get_jobs_of_{system}",
        summary=f"Jobs of {system}",
        description="The jobs that run now.",
    )(get_jobs)
    app.post(
        path,
        tags=[system],
        status_code=201,
        response_model=service.Answer,
        responses=(example(post_example, status=201) if post_example is not None else {})
        | problems(400, *OF_BODIES, 422, *OF_SWITCHES),
        operation_id=f"add_job_of_{system}",
        summary=f"Add a job of {system}",
        description="Plan a job and bring the switches to it; the answer is what its agents must know.",
    )(post_job)
    app.delete(
        path + "/{job}",
        tags=[system],
        status_code=204,
        responses=problems(404, 422, *OF_SWITCHES),
        operation_id=f"delete_job_of_{system}",
        summary=f"Delete a job of {system}",
        description="Take a job's entries and groups out of the switches. Its number is not used again.",
    )(delete_job)


def _example_of(model: type[BaseModel]) -> Any:
    return model.model_json_schema().get("example")
