"""The REST interface against its own OpenAPI document, with the endpoints of every system: requests drawn from it,
each by itself and one after the other, and answers held to it."""

from __future__ import annotations

import importlib
import pkgutil
from collections import Counter
from typing import Any

import pytest
import schemathesis
from fastapi import FastAPI
from hypothesis import HealthCheck, Phase, given, settings
from starlette.types import ASGIApp, Receive, Scope, Send

from gradbed.controller import systems
from gradbed.controller.core.service import LoadedService
from tests.unit.controller.rest.test_rest_docs import description_of

EXAMPLES, WALKS, STEPS = 8, 8, 6
NIGHTLY_EXAMPLES, NIGHTLY_WALKS = 100, 200
ACCEPTED = ["2xx", "400", "404", "422"]
"""404: a name that is drawn is nobody's. 400: what no schema can say, such as which hosts the network has."""

SYSTEMS = sorted(module.name for module in pkgutil.iter_modules(systems.__path__))
each_system = pytest.mark.parametrize("system", SYSTEMS)


def app_of(system: str) -> FastAPI:
    module = importlib.import_module(f"gradbed.controller.systems.{system}.service")
    [service] = [
        value
        for name, value in vars(module).items()
        if name.endswith("Service") and value.__module__ == module.__name__
    ]
    loaded = LoadedService(system, service, service.Settings())
    return description_of(system, loaded, "optical-electrical:2" if system == "interconnect" else "star:2")


def schema_of(app: ASGIApp) -> Any:
    schema = schemathesis.openapi.from_asgi("/openapi.json", app)
    schema.config.checks.positive_data_acceptance.expected_statuses = ACCEPTED
    return schema


def drawn(examples: int, **more: Any) -> settings:
    return settings(
        max_examples=examples, derandomize=True, suppress_health_check=list(HealthCheck), deadline=None, **more
    )


def check_each_operation(system: str, examples: int) -> int:
    """How many operations there are."""
    operations = [found.ok() for found in schema_of(app_of(system)).get_all_operations()]
    for operation in operations:

        @drawn(examples)
        @given(case=operation.as_strategy())
        def call(case: schemathesis.Case) -> None:
            case.call_and_validate()

        call()
    return len(operations)


class Anew:
    """An interface whose controller begins anew: what is drawn depends on what was answered, and must come again."""

    def __init__(self, system: str) -> None:
        self._system = system
        self.begin()

    def begin(self) -> None:
        self._app = app_of(self._system)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)


def check_walks(system: str, walks: int) -> Counter[tuple[str, int]]:
    """Methods and statuses of all that was asked."""
    app = Anew(system)
    seen: Counter[tuple[str, int]] = Counter()

    class Walk(schema_of(app).as_state_machine()):  # type: ignore[misc]
        def setup(self) -> None:
            app.begin()

        def after_call(self, response: Any, case: Any) -> None:
            seen[case.operation.method.upper(), response.status_code] += 1

    Walk.run(settings=drawn(walks, stateful_step_count=STEPS, phases=[Phase.generate]))
    return seen


@pytest.mark.commit_cases(1)
@each_system
def test_answers_are_those_that_are_described(system: str) -> None:
    assert check_each_operation(system, EXAMPLES) >= 10


@pytest.mark.commit_cases(1)
@each_system
def test_one_request_after_the_other(system: str) -> None:
    """What one has made, the next ones ask for."""
    seen = check_walks(system, WALKS)
    assert sum(seen.values()) > WALKS
    assert {method for method, _ in seen} >= {"GET", "POST"}


@pytest.mark.nightly
@each_system
def test_many_requests(system: str) -> None:
    check_each_operation(system, NIGHTLY_EXAMPLES)
    assert {method for method, _ in check_walks(system, NIGHTLY_WALKS)} == {"DELETE", "GET", "POST"}
