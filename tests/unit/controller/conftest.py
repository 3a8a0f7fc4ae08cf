"""A network of switches that keep what they are told, and the configuration of a controller for it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import text_format

from tests.unit.controller.fake_p4runtime import FakeP4Runtime
from tests.unit.controller.p4info import aggregation_p4info
from tests.unit.controller.process import SERVICE, TOPOLOGY


@pytest.fixture
def switches(tmp_path: Path) -> Iterator[FakeP4Runtime]:
    server = FakeP4Runtime(f"unix:{tmp_path}/p4rt", [switch.number for switch in TOPOLOGY.switches])
    server.start()
    yield server
    server.stop()


@pytest.fixture
def config(tmp_path: Path) -> dict[str, Any]:
    (tmp_path / "program.json").write_text("{}")
    (tmp_path / "program.p4info.txt").write_text(text_format.MessageToString(aggregation_p4info()))
    return {
        "topology": json.loads(TOPOLOGY.to_json()),
        "targets": {switch.name: f"unix:{tmp_path}/p4rt" for switch in TOPOLOGY.switches},
        "programs": {
            "aggregation": {
                "json": str(tmp_path / "program.json"),
                "p4info": str(tmp_path / "program.p4info.txt"),
            }
        },
        "switches": {switch.name: "aggregation" for switch in TOPOLOGY.switches},
        "services": [{"name": "aggregation", "service": SERVICE}],
        "rest_address": str(tmp_path / "rest.sock"),
    }
