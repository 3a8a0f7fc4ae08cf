"""The description of the REST interface: complete, true, and served without the internet."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from controller.jobs import Jobs
from controller.rest import create_app
from controller.rest_server import RestServer, listening_socket
from controller.southbound.interface import CounterCell, SwitchStatus
from tests.unit.controller.fake_southbound import FakeSouthbound
from topo.star import star


class AnswerableSouthbound(FakeSouthbound):
    def status(self) -> list[SwitchStatus]:
        return [SwitchStatus(name, True, "aggregation 1") for name in self.switches]


@pytest.fixture(scope="module")
def app() -> FastAPI:
    topology = star(2, rate_bps=20_000_000)
    southbound = AnswerableSouthbound(["s1"])
    southbound.cells = {"gradient_in": [CounterCell(2, 5, 7270)], "events": []}
    return create_app(topology, Jobs(topology, southbound), southbound)


@pytest.fixture(scope="module")
def client(app: FastAPI, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    path = str(tmp_path_factory.mktemp("rest") / "rest.sock")
    server = RestServer(app, [listening_socket(path)])
    server.start()
    transport = httpx.HTTPTransport(uds=path)
    with httpx.Client(transport=transport, base_url="http://localhost", follow_redirects=True, timeout=60) as found:
        yield found
    server.stop()


@pytest.fixture(scope="module")
def operations(app: FastAPI) -> dict[tuple[str, str], dict[str, Any]]:
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
    assert len(operations) >= 8
    for (method, path), operation in operations.items():
        assert operation.get("description"), f"{method} {path} is not described"
        if "204" not in operation["responses"]:
            assert len(examples(operation)) == 1, f"{method} {path} has no example"


def test_the_examples_are_what_is_answered(
    app: FastAPI, client: httpx.Client, operations: dict[tuple[str, str], dict[str, Any]]
) -> None:
    request = app.openapi()["components"]["schemas"]["JobRequest"]["example"]
    order = sorted(operations, key=lambda each: (each[1] == "/jobs", each[0] == "get"))  # jobs last, POST before GET
    for method, path in order:
        if method == "delete":
            continue
        answer = client.request(method, path.replace("{name}", "s1"), json=request if method == "post" else None)
        (shown,) = examples(operations[method, path])
        assert (answer.text if path.endswith(".txt") else without_nulls(answer.json())) == shown, f"{method} {path}"
    assert client.delete("/jobs/1").status_code == 204


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
