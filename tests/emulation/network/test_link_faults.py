"""Links of every kind are cut, mended and changed in a network that runs: in memory, of the kernel, between switches
of gradbed, bridges of Open vSwitch and hosts."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from gradbed.common.errors import UserError
from gradbed.experiments.runtimes.real import RealRuntime
from gradbed.experiments.scale import Scale
from gradbed.experiments.setup import TrialTask
from gradbed.experiments.systems.aggregation.configuration import AggregationConfiguration
from gradbed.experiments.systems.aggregation.system import AggregationSystem
from tests.emulation.sandboxed import in_sandbox

pytestmark = [pytest.mark.thorough, pytest.mark.root]

PATH = ("h1", "l1", "s1", "l2", "h2")
"""The only one in the network."""

DELAY_US = 50_000


def ping(runtime: RealRuntime, wait_s: float) -> float | None:
    """From end to end: the round trip in ms, None if there was no answer."""
    said = runtime.network.mininet["h1"].cmd(f"ping -c 1 -W {wait_s} {runtime.topology.host('h2').ip}")
    return float(said.split("rtt min/avg/max/mdev = ")[1].split("/")[0]) if "1 received" in said else None


def losses(runtime: RealRuntime, a: str, b: str) -> int:
    return sum(row.losses for row in runtime.backend.link_statistics() if (row.from_node, row.to_node) == (a, b))


@in_sandbox
@pytest.mark.parametrize(("links", "legacy"), [("memory", "none"), ("veth", "none"), ("memory", "openflow")])
def test_links_are_cut_mended_and_changed(links: str, legacy: str, tmp_path: Path) -> None:
    from gradbed.emulation.switches.open_vswitch import require_open_vswitch

    if legacy == "openflow":
        try:
            require_open_vswitch()
        except UserError as error:
            pytest.skip(str(error))
    plain: dict[str, Any] = {
        "topology": {"kind": "leaf-spine:2,1,1", "link": {"rate_mbps": None, "delay_us": 0}},
        # With bridges there are wires: from s1 to l2, and from l2 to h2.
        "switches": {"placement": "explicit", "named": ["l1"], "legacy": legacy, "links": links},
        "workload": {"workers": 1, "lanes": 32},
    }
    system = AggregationSystem()
    task = TrialTask(AggregationConfiguration.model_validate(plain), 1, Scale(), tmp_path)
    with RealRuntime(system, system.trial(task).network, task) as runtime:
        backend = runtime.backend
        assert ping(runtime, 20) is not None
        for a, b in pairwise(PATH):
            before = losses(runtime, a, b)
            backend.set_link_up(a, b, False)
            assert ping(runtime, 0.2) is None
            backend.set_link_up(a, b, True)
            assert losses(runtime, a, b) == before + 1
            assert ping(runtime, 20) is not None

            backend.change_link(a, b, delay_us=DELAY_US)
            round_trip_ms = ping(runtime, 20)
            assert round_trip_ms is not None and round_trip_ms >= 2 * DELAY_US / 1000
            # Fields that are not named stay; in both directions.
            backend.change_link(a, b, loss=0.999999)
            assert ping(runtime, 0.2) is None
            assert losses(runtime, a, b) + losses(runtime, b, a) == before + 2
            backend.change_link(a, b, loss=0.0)
            again_ms = ping(runtime, 20)
            assert again_ms is not None and again_ms >= 2 * DELAY_US / 1000
            backend.change_link(a, b, delay_us=0)
        with pytest.raises(UserError, match="no link between 'h1' and 'h2'"):
            backend.set_link_up("h1", "h2", False)
