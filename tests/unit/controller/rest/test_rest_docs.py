"""The description of the REST interface: complete, true, and served without the internet."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from gradbed.controller.core.controller import Controller
from gradbed.controller.core.service import LoadedService, ServiceConfig, load_services
from gradbed.controller.planning.plan import TableEntry
from gradbed.controller.rest.interface import create_app
from gradbed.controller.rest.server import RestServer, listening_socket
from gradbed.controller.southbound.interface import CounterCell, SwitchStatus
from gradbed.topo.link import LinkModel
from gradbed.topo.registry import parse_topology
from tests.unit.controller.fake_southbound import FakeSouthbound
from tests.unit.controller.lamps import LAMPS, LampService

AGGREGATION = "gradbed.controller.systems.aggregation.service:AggregationService"


class AnswerableSouthbound(FakeSouthbound):
    def status(self) -> list[SwitchStatus]:
        return [SwitchStatus(name, True, "forward 1") for name in self.switches]


def description_of(program: str, service: LoadedService, topology: str = "star:2") -> FastAPI:
    """The interface of a controller of one system, whose switches run `program`, but for optical ones."""
    network = parse_topology(topology, LinkModel(rate_bps=20_000_000))
    programs = {switch.name: "optical" if switch.tier == "optical" else program for switch in network.switches}
    southbound = AnswerableSouthbound(list(programs))
    southbound.cells = {"port_in": [CounterCell(2, 5, 7270)], "port_out": []}
    southbound.register_cells = {"memory": [0, 0, 7]}
    return create_app(Controller(network, southbound, [service], programs))


@pytest.fixture(scope="module")
def app() -> FastAPI:
    return description_of("forward", replace(LAMPS, service_class=PlainLamps))


class PlainLamps(LampService):
    """Lamps in switches that only forward."""

    def plain(self, switch: str, entry: TableEntry) -> None:
        return None


@contextlib.contextmanager
def served(app: FastAPI, directory: Path) -> Iterator[httpx.Client]:
    path = str(directory / "rest.sock")
    server = RestServer(app, [listening_socket(path)])
    server.start()
    transport = httpx.HTTPTransport(uds=path)
    with httpx.Client(transport=transport, base_url="http://localhost", follow_redirects=True, timeout=60) as found:
        yield found
    server.stop()


@pytest.fixture(scope="module")
def client(app: FastAPI, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with served(app, tmp_path_factory.mktemp("rest")) as client:
        yield client


@pytest.fixture(scope="module")
def operations(app: FastAPI) -> dict[tuple[str, str], dict[str, Any]]:
    return operations_of(app)


def operations_of(app: FastAPI) -> dict[tuple[str, str], dict[str, Any]]:
    """By method and path."""
    return {
        (method, path): operation
        for path, methods in app.openapi()["paths"].items()
        for method, operation in methods.items()
    }


def examples(operation: dict[str, Any]) -> list[Any]:
    return [
        content["example"]
        for status, answer in operation["responses"].items()
        if status.startswith("2")
        for content in answer.get("content", {}).values()
        if "example" in content
    ]


def without_nulls(value: Any) -> Any:
    """FastAPI leaves them out of examples."""
    if isinstance(value, dict):
        return {name: without_nulls(each) for name, each in value.items() if each is not None}
    return [without_nulls(each) for each in value] if isinstance(value, list) else value


def test_every_endpoint_is_described_with_an_example(operations: dict[tuple[str, str], dict[str, Any]]) -> None:
    assert len(operations) >= 12
    for (method, path), operation in operations.items():
        assert operation.get("summary") and operation.get("description"), f"{method} {path} is not described"
        if "204" not in operation["responses"]:
            assert len(examples(operation)) == 1, f"{method} {path} has no example"


@pytest.mark.parametrize("system", ["lamps", "aggregation"])
def test_the_examples_are_what_is_answered(
    app: FastAPI,
    client: httpx.Client,
    operations: dict[tuple[str, str], dict[str, Any]],
    tmp_path: Path,
    system: str,
) -> None:
    """Of every endpoint on a plain network, and of those that aggregation adds."""
    if system == "aggregation":
        (service,) = load_services([ServiceConfig(name=system, service=AGGREGATION)])
        aggregation = description_of("aggregation", service)
        with served(aggregation, tmp_path) as client:
            of_jobs = {key: each for key, each in operations_of(aggregation).items() if "/jobs" in key[1]}
            check_examples(aggregation, client, of_jobs, system)
    else:
        check_examples(app, client, operations, system)


def check_examples(
    app: FastAPI, client: httpx.Client, operations: dict[tuple[str, str], dict[str, Any]], system: str
) -> None:
    def position(operation: tuple[str, str]) -> tuple[bool, bool]:
        """The lists of jobs last, after there is one."""
        method, path = operation
        return path.endswith("/jobs"), method == "get"

    schemas = app.openapi()["components"]["schemas"]
    for method, path in sorted(operations, key=position):
        if method == "delete":
            continue
        body = None
        if method == "post":
            content = operations[method, path]["requestBody"]["content"]["application/json"]
            body = schemas[content["schema"]["$ref"].split("/")[-1]]["example"]
        answer = client.request(method, path.format(name="s1", register="memory"), json=body)
        (shown,) = examples(operations[method, path])
        assert (answer.text if path.endswith(".txt") else without_nulls(answer.json())) == shown, f"{method} {path}"
    assert client.delete(f"/systems/{system}/jobs/1").status_code == 204


def test_the_root_leads_to_the_description(client: httpx.Client) -> None:
    answer = client.get("/")
    assert (answer.status_code, answer.url.path) == (200, "/docs")


@pytest.mark.parametrize("page", ["/docs", "/redoc"])
def test_pages_ask_nobody_else(client: httpx.Client, page: str) -> None:
    text = client.get(page).text
    addresses = re.findall(r'(?:src|href)="([^"]+)"', text)
    assert len(addresses) >= 2
    for address in addresses:
        assert address.startswith("/"), f"{page} loads {address}"
        assert client.get(address).status_code == 200
    assert "https://" not in text
