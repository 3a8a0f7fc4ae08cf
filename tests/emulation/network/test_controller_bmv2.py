"""The southbound client against BMv2's own P4Runtime server, where that is installed."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest
from finsy.proto import p4r

from gradbed.controller.planning.plan import SwitchPlan
from gradbed.controller.planning.routing import shortest_routes
from gradbed.controller.southbound.interface import Target
from gradbed.controller.southbound.p4runtime.codec import decode_entry, decode_group
from gradbed.controller.southbound.p4runtime.p4runtime import P4RuntimeSouthbound
from gradbed.controller.southbound.p4runtime.schema import Pipeline
from gradbed.switch.program_cache import compiled_files
from gradbed.topo.generators import star
from tests.emulation.sandboxed import in_sandbox
from tests.p4.switch_under_test import BMV2, needs_bmv2
from tests.unit.controller.networks import routes_alone, shared_path_job
from tests.unit.p4runtime.client import Client

PATIENCE_S = 60.0
TOPOLOGY = star(5)
ROUTES = shortest_routes(TOPOLOGY)
BASE = routes_alone(TOPOLOGY)
WITH_JOB = BASE.merged(shared_path_job(TOPOLOGY, 1, ("h2", "h3", "h5"), "h1").plan)

pytestmark = [pytest.mark.thorough, pytest.mark.root]


class Bmv2:
    def __init__(self, directory: Path) -> None:
        self.address = f"unix:{directory}/p4rt.sock"
        self.start()

    def start(self) -> None:
        Path(self.address.removeprefix("unix:")).unlink(missing_ok=True)
        self._process = subprocess.Popen(
            [str(BMV2), "--no-p4", "--device-id", "1", "--", "--grpc-server-addr", self.address],
            stdout=subprocess.DEVNULL,
        )

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()

    def held(self, pipeline: Pipeline) -> SwitchPlan:
        """What it reports of its tables and groups."""
        client = Client(self.address)
        entries = [decode_entry(pipeline.schema, found) for found in client.read(p4r.TableEntry())]
        groups = [decode_group(found.multicast_group_entry) for found in client.read(p4r.MulticastGroupEntry())]
        client.close()
        return SwitchPlan.of(pipeline.name, [entry for entry in entries if entry is not None], groups)


@needs_bmv2
@in_sandbox
def test_bmv2_is_brought_to_plans_and_back_after_a_restart(tmp_path: Path) -> None:
    bmv2 = Bmv2(tmp_path)
    source = Path(__file__).parents[3] / "p4src" / "aggregation.p4"
    files = compiled_files(source, {"LANES": "32"})
    pipeline = Pipeline.load("aggregation", files.json, files.p4info)
    southbound = P4RuntimeSouthbound({"s1": Target(bmv2.address, 1)}, {"aggregation": pipeline})
    try:
        southbound.start(BASE)
        southbound.wait_ready(PATIENCE_S)
        assert bmv2.held(pipeline) == pipeline.schema.normalised(BASE["s1"])
        southbound.apply(WITH_JOB)
        assert bmv2.held(pipeline) == pipeline.schema.normalised(WITH_JOB["s1"])
        assert {"gradient_in", "gradient_out", "events"} <= set(southbound.counters("s1"))
        bmv2.stop()
        while southbound.status()[0].connected:
            time.sleep(0.01)
        bmv2.start()
        southbound.wait_ready(PATIENCE_S)
        assert bmv2.held(pipeline) == pipeline.schema.normalised(WITH_JOB["s1"])
        southbound.apply(BASE)
        assert bmv2.held(pipeline) == pipeline.schema.normalised(BASE["s1"])
    finally:
        southbound.stop()
        bmv2.stop()
