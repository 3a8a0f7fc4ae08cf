"""The REST interface against its own OpenAPI document: requests drawn from it, answers held to it."""

from __future__ import annotations

import schemathesis
from hypothesis import HealthCheck, settings

from controller.core.services import ServiceConfig, load_services
from tests.unit.controller.rest.test_rest_docs import AGGREGATION, description_of

EXAMPLES = 15
ACCEPTED = ["2xx", "400", "404", "422"]
"""404: a name that is drawn is nobody's. 400: what no schema can say, such as which hosts the network has."""


(_SERVICE,) = load_services([ServiceConfig(name="aggregation", service=AGGREGATION)])
schema = schemathesis.openapi.from_asgi("/openapi.json", description_of("aggregation", _SERVICE))
schema.config.checks.positive_data_acceptance.expected_statuses = ACCEPTED


@schema.parametrize()
@settings(max_examples=EXAMPLES, derandomize=True, suppress_health_check=list(HealthCheck), deadline=None)
def test_answers_are_those_that_are_described(case: schemathesis.Case) -> None:
    case.call_and_validate()
