"""The REST interface: topology, switches, counters, jobs, plan. All bodies are JSON; errors {"detail": line}."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException

from controller import rest_examples
from controller.jobs import Jobs, UnknownJob
from controller.planning.text import plan_text
from controller.rest_docs import documented_app, example
from controller.southbound.interface import Southbound, SouthboundError, SouthboundTimeout
from controller.systems.aggregation.designation import Designation
from controller.systems.aggregation.job_plan import Acknowledgement, JobPlan
from controller.systems.aggregation.placement.planners import PlannerOptions
from controller.systems.aggregation.slots import SlotPolicy, SlotRange
from switch.errors import UserError
from topo.graph import Topology


class JobRequest(PlannerOptions):
    """A job to add. Without a placement the controller takes its own. slot_policy, slots: as for Jobs.add."""

    model_config = ConfigDict(json_schema_extra={"example": rest_examples.JOB_REQUEST})

    workers: Annotated[list[str], Field(min_length=1)]
    server: str
    slot_policy: SlotPolicy = "dynamic"
    slots: Annotated[int, Field(ge=1)] | None = None


class MulticastAddress(BaseModel):
    """A multicast group of hosts."""

    ip: str
    mac: str


class NewJob(BaseModel):
    """What a job's agents must know of the network.

    designations: for each worker, in the order of the request, the labels that its packets bear in turn.
    designated_switches: the numbers of all switches that sum. slots: the fewest that the job shares or has for itself
    at any of them, null without any. multicast: where the ACKs of fragments go, in turn; none when ACKs are unicast.
    """

    job: int
    designations: list[list[Designation]]
    designated_switches: list[int]
    slot_policy: SlotPolicy
    slots: int | None
    acknowledgement: Acknowledgement
    multicast: list[MulticastAddress]


class ListedJob(NewJob):
    """A job in the list of jobs, with the hosts that take part and its slots by switch."""

    workers: list[str]
    server: str
    slot_ranges: dict[str, SlotRange]


def _facts(plan: JobPlan) -> dict[str, Any]:
    """The fields of NewJob."""
    job = plan.job
    return {
        "job": job.number,
        "designations": [list(job.designations[worker]) for worker in job.workers],
        "designated_switches": list(job.designated_switches),
        "slot_policy": job.slot_policy,
        "slots": min((each.slots for each in job.slot_ranges.values()), default=None),
        "acknowledgement": plan.acknowledgement,
        "multicast": [{"ip": ack.ip, "mac": ack.mac} for ack in plan.ack_trees],
    }


def _listed(plan: JobPlan) -> ListedJob:
    job = plan.job
    return ListedJob(**_facts(plan), workers=list(job.workers), server=job.server, slot_ranges=dict(job.slot_ranges))


DESCRIPTION = """What the network is, what its switches hold and count, and the jobs whose gradients they sum.

Errors are `{"detail": "one line"}`: 400 and 422 for requests that make no sense, 404 for what is not there, 503 while
a switch is away, 504 when one is late. The examples are of the network `star:2`. Over TCP the Host of a request must
be `localhost`, this machine's name, or the address that was called; any other is answered with 400."""


def create_app(topology: Topology, jobs: Jobs, southbound: Southbound) -> FastAPI:
    """The interface over a controller's parts. Handlers are plain functions: FastAPI runs them in threads."""
    app = documented_app("gradbed controller", DESCRIPTION)
    numbers = {switch.name: switch.number for switch in topology.switches}

    @app.get("/topology", responses=example(rest_examples.TOPOLOGY))
    def get_topology() -> Topology:
        """Hosts, switches, and links with their rate, delay and queue."""
        return topology

    @app.get("/switches", responses=example(rest_examples.SWITCHES))
    def get_switches() -> list[dict[str, Any]]:
        """The switches: whether each is connected, and the program that it runs."""
        return [
            {
                "name": status.name,
                "number": numbers[status.name],
                "connected": status.connected,
                "pipeline": status.pipeline,
                "error": status.error or None,
            }
            for status in southbound.status()
        ]

    @app.get("/switches/{name}/counters", responses=example(rest_examples.COUNTERS))
    def get_counters(name: str) -> dict[str, list[dict[str, int]]]:
        """A switch's counters by name: those of their cells that are not zero."""
        if name not in numbers:
            raise HTTPException(404, f"there is no switch {name!r}")
        return {
            counter: [
                {"index": cell.index, "packets": cell.packets, "bytes": cell.bytes}
                for cell in cells
                if cell.packets or cell.bytes
            ]
            for counter, cells in southbound.counters(name).items()
        }

    @app.get("/jobs", responses=example([rest_examples.LISTED_JOB]))
    def get_jobs() -> list[ListedJob]:
        """The jobs that run now, with their hosts and slots."""
        return [_listed(job) for job in jobs.all()]

    @app.post("/jobs", status_code=201, responses=example(rest_examples.NEW_JOB, status=201))
    def post_job(request: JobRequest) -> NewJob:
        """Plan a job and bring the switches to it; the answer is what its agents must know of the network."""
        planner = request.planner()
        return NewJob(
            **_facts(jobs.add(request.workers, request.server, planner, request.slot_policy, request.slots))
        )

    @app.delete("/jobs/{job}", status_code=204)
    def delete_job(job: int) -> Response:
        """Take a job's entries and groups out of the switches. Its number is not used again."""
        jobs.delete(job)
        return Response(status_code=204)

    @app.get("/plan", responses=example(rest_examples.PLAN))
    def get_plan() -> Response:
        """What all switches should hold now: table entries, multicast groups, registers."""
        return Response(jobs.plan().to_json(), media_type="application/json")

    @app.get("/plan.txt", response_class=PlainTextResponse, responses=example(rest_examples.PLAN_TEXT, "text/plain"))
    def get_plan_text() -> PlainTextResponse:
        """The same, to be read."""
        return PlainTextResponse(plan_text(jobs.plan()) + "\n")

    _errors_in_one_line(app)
    return app


def _errors_in_one_line(app: FastAPI) -> None:
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
