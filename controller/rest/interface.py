"""The REST interface: topology, links, switches, counters, registers, jobs, plan.

All bodies are JSON; errors {"detail": line}. It describes itself: Swagger UI is at /docs, from files of a package,
so without the internet.
"""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.responses import PlainTextResponse, RedirectResponse, Response
from fastapi_offline import FastAPIOffline
from pydantic import BaseModel, ConfigDict
from starlette.exceptions import HTTPException

from gradbed.common.errors import UserError
from gradbed.controller.core.controller import Controller
from gradbed.controller.planning.routing import link_name
from gradbed.controller.planning.text import plan_text
from gradbed.controller.rest.middleware import BODY_STATUSES, SWITCH_STATUSES, errors_in_one_line, problems, strict
from gradbed.topo.generators import star
from gradbed.topo.graph import Topology
from gradbed.topo.link import LinkModel

# ---- Examples in the description: the answers on the network star:2 ----


_TOPOLOGY_EXAMPLE: dict[str, Any] = star(2, LinkModel(rate_bps=20_000_000)).model_dump(mode="json", by_alias=True)

_LINK_STATE_EXAMPLE: dict[str, Any] = {"a": "h2", "b": "s1", "up": True}

_LINKS_EXAMPLE = [{"a": "h1", "b": "s1", "up": True}, _LINK_STATE_EXAMPLE]

_SWITCHES_EXAMPLE = [{"name": "s1", "number": 1, "connected": True, "pipeline": "forward 1", "error": None}]

_COUNTERS_EXAMPLE = {"port_in": [{"index": 2, "packets": 5, "bytes": 7270}], "port_out": []}

_REGISTER_EXAMPLE = [{"index": 2, "value": 7}]

_DIFFERENCES_EXAMPLE: list[str] = []  # the switch holds its part of the plan

_PLAN_EXAMPLE = {
    "switches": {
        "s1": {
            "program": "forward",
            "entries": [
                {
                    "table": "ipv4_routes",
                    "match": {"hdr.ipv4.dst_addr": {"value": 167772162, "prefix_bits": 32}},
                    "action": "forward",
                    "params": {"port": 1, "dst_mac": 2199191027714},
                },
                {
                    "table": "ipv4_routes",
                    "match": {"hdr.ipv4.dst_addr": {"value": 167772163, "prefix_bits": 32}},
                    "action": "forward",
                    "params": {"port": 2, "dst_mac": 2199191027715},
                },
            ],
        }
    }
}

_PLAN_TEXT_EXAMPLE = """s1: forward (p4), 2 entries
  ipv4_routes
    ipv4.dst_addr=10.0.0.2/32 -> forward(port=1, dst_mac=02:00:0a:00:00:02)
    ipv4.dst_addr=10.0.0.3/32 -> forward(port=2, dst_mac=02:00:0a:00:00:03)
"""


# ---- The description ----


def documented_app(title: str, description: str) -> FastAPI:
    """Make an application without endpoints, whose / leads to its description."""
    app = FastAPIOffline(title=title, description=description)

    @app.get("/", include_in_schema=False)
    def show_description() -> RedirectResponse:
        return RedirectResponse("/docs")

    return app


def example(value: Any, media_type: str = "application/json", status: int = 200) -> dict[int | str, dict[str, Any]]:
    """Return what an endpoint may answer, for its parameter `responses`."""
    return {status: {"content": {media_type: {"example": value}}}}


# ---- Jobs: endpoints of every system, with the models of its service, and one for all systems ----


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
        """List the jobs of all systems that run now."""
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
        | problems(400, *BODY_STATUSES, 422, *SWITCH_STATUSES),
        operation_id=f"add_job_of_{system}",
        summary=f"Add a job of {system}",
        description="Plan a job and bring the switches to it; the answer is what its agents must know.",
    )(post_job)
    app.delete(
        path + "/{job}",
        tags=[system],
        status_code=204,
        responses=problems(404, 422, *SWITCH_STATUSES),
        operation_id=f"delete_job_of_{system}",
        summary=f"Delete a job of {system}",
        description="Take a job's entries and groups out of the switches. Its number is not used again.",
    )(delete_job)


def _example_of(model: type[BaseModel]) -> Any:
    return model.model_json_schema().get("example")


# ---- The whole interface ----


DESCRIPTION = """What the network is, what its switches hold and count, and the jobs of the systems that run in it.

Errors are `{"detail": "one line"}`: 400 and 422 for requests that make no sense, 404 for what is not there, 503 while
a switch is away, 504 when one is late. The examples are of the network `star:2`. Over TCP the Host of a request must
be `localhost`, this machine's name, or the address that was called; any other is answered with 400. Pages of other
sites, and other accounts over loopback, get 403."""


class LinkState(BaseModel):
    """A link by its two nodes, and whether the controller plans with it."""

    model_config = ConfigDict(frozen=True, extra="forbid", json_schema_extra={"example": _LINK_STATE_EXAMPLE})

    a: str
    b: str
    up: bool


def create_app(controller: Controller) -> FastAPI:
    """Make the interface of a controller. Handlers are plain functions: FastAPI runs them in threads."""
    app = documented_app("gradbed controller", DESCRIPTION)
    _add_network_endpoints(app, controller)
    _add_switch_endpoints(app, controller)
    add_job_endpoints(app, controller)
    _add_plan_endpoints(app, controller)
    errors_in_one_line(app)
    return app


def _add_network_endpoints(app: FastAPI, controller: Controller) -> None:
    topology = controller.topology

    @app.get("/topology", tags=["network"], responses=example(_TOPOLOGY_EXAMPLE))
    def get_topology() -> Topology:
        """Hosts, switches, and links with their rate, delay and queue."""
        return topology

    @app.get("/links", tags=["network"], responses=example(_LINKS_EXAMPLE))
    def get_links() -> list[LinkState]:
        """List the links, and which of them the controller plans with."""
        down = controller.links_down()
        return [LinkState(a=link.a.node, b=link.b.node, up=link_name(link) not in down) for link in topology.links]

    @app.post(
        "/links",
        tags=["network"],
        responses=example(_LINK_STATE_EXAMPLE) | problems(400, *BODY_STATUSES, 422, *SWITCH_STATUSES),
    )
    def post_link(state: strict(LinkState)) -> LinkState:  # type: ignore[valid-type]
        """Tell the controller that a link went down or came up: it plans everything anew on the links that are left.
        The link itself is not touched."""
        link: LinkState = state
        controller.link_changed(link.a, link.b, link.up)
        return link


def _add_switch_endpoints(app: FastAPI, controller: Controller) -> None:
    numbers = {switch.name: switch.number for switch in controller.topology.switches}
    southbound = controller.southbound

    def require(name: str) -> None:
        if name not in numbers:
            raise HTTPException(404, f"there is no switch {name!r}")

    @app.get("/switches", tags=["switches"], responses=example(_SWITCHES_EXAMPLE))
    def get_switches() -> list[dict[str, Any]]:
        """List the switches: whether each is connected, and the program that it runs."""
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

    @app.get(
        "/switches/{name}/counters",
        tags=["switches"],
        responses=example(_COUNTERS_EXAMPLE) | problems(404, 422, *SWITCH_STATUSES),
    )
    def get_counters(name: str) -> dict[str, list[dict[str, int]]]:
        """Return a switch's counters by name: those of their cells that are not zero."""
        require(name)
        return {
            counter: [
                {"index": cell.index, "packets": cell.packets, "bytes": cell.bytes}
                for cell in cells
                if cell.packets or cell.bytes
            ]
            for counter, cells in southbound.counters(name).items()
        }

    @app.get(
        "/switches/{name}/differences",
        tags=["switches"],
        responses=example(_DIFFERENCES_EXAMPLE) | problems(404, 422, *SWITCH_STATUSES),
    )
    def get_differences(name: str) -> list[str] | None:
        """Ask a switch what it holds otherwise than its part of the plan: a line for each change that would bring it
        there.

        Empty: it holds all. null: it cannot tell. Registers and meters are not asked for.
        """
        require(name)
        found = southbound.differences(name)
        return None if found is None else list(found)

    @app.get(
        "/switches/{name}/registers/{register}",
        tags=["switches"],
        responses=example(_REGISTER_EXAMPLE) | problems(404, 422, *SWITCH_STATUSES),
    )
    def get_register(name: str, register: str) -> list[dict[str, int | None]]:
        """Return one register array of a switch: those of its cells that are not zero.

        null: one that the switch cannot tell (BMv2: from 2^63 - 1 on).
        """
        require(name)
        try:
            cells = southbound.registers(name, register)
        except UserError as error:
            raise HTTPException(404, str(error)) from None
        return [{"index": index, "value": value} for index, value in enumerate(cells) if value != 0]


def _add_plan_endpoints(app: FastAPI, controller: Controller) -> None:
    @app.get("/plan", tags=["plan"], responses=example(_PLAN_EXAMPLE))
    def get_plan() -> Response:
        """Return what all switches should hold now: table entries, multicast groups, registers."""
        return Response(controller.plan().to_json(), media_type="application/json")

    @app.get(
        "/plan.txt",
        tags=["plan"],
        response_class=PlainTextResponse,
        responses=example(_PLAN_TEXT_EXAMPLE, "text/plain"),
    )
    def get_plan_text() -> PlainTextResponse:
        """Return the plan as text to read."""
        return PlainTextResponse(plan_text(controller.plan()) + "\n")
