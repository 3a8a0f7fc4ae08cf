"""Real switches, controller and agents, some of which go in the middle of a run: the sums are bit for bit those of a
single process.

What happens in the middle happens after a certain round, not at a certain time. Losses, duplicates, reordering and
few slots are the protocol's affair, not the kernel's: tests/unit/experiments/running/.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from gradbed.common.errors import UserError
from gradbed.experiments.engine.point import run_phase
from gradbed.experiments.phases import PointResult, Progress
from gradbed.experiments.scale import Scale
from gradbed.experiments.setup import PointTask
from gradbed.experiments.systems.aggregation.counts import event_at
from gradbed.experiments.systems.aggregation.system import AggregationSystem
from gradbed.experiments.testbeds.mininet_testbed import MininetTestbed
from tests.emulation.programs import eventually
from tests.emulation.sandboxed import in_sandbox
from tests.unit.experiments.virtual_points import LANES, configuration

pytestmark = [pytest.mark.thorough, pytest.mark.root]

PATIENT_US = 20_000_000
"""No worker resends for want of an answer, however busy the machine is."""

ROUNDS, FRAGMENTS = 8, 24

Happening = Callable[[MininetTestbed], None]


class Run:
    """A network with jobs that sum in its switches; a context manager that brings it up."""

    def __init__(self, folder: Path, **sections: Any) -> None:
        """link, switches and workload change single values of their sections."""
        link = {"rate_mbps": 20, **sections.pop("link", {})}
        workload = {"rounds": ROUNDS, "values": FRAGMENTS * LANES, **sections.pop("workload", {})}
        configured = configuration(clock="real", link=link, workload=workload, **sections)
        self._task = PointTask(configured, 1, Scale(), folder)
        system = AggregationSystem()
        self.point = system.point(self._task)
        self.testbed = MininetTestbed(system, self.point.network, self._task)

    def sum(self, after: int, happening: Happening) -> PointResult:
        """Run all jobs; let something happen once all workers of the first have completed `after` rounds."""
        pending = [happening]

        def on_progress(bars: Sequence[Progress]) -> None:
            if pending and bars[0].completed >= after:
                pending.pop()(self.testbed)

        (phase,) = self.point.phases
        measured, _ = run_phase(self.testbed, phase, self._task, on_progress)
        assert pending == []
        return self.point.result([measured])

    def __enter__(self) -> Run:
        self.testbed.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        self.testbed.stop()


def exact(result: PointResult) -> bool:
    """All sums were right; the accounts are not asked for, since what restarts forgets its counts."""
    return not any("instead of the reference's" in failure for failure in result.failures)


def events_of(testbed: MininetTestbed, switch: str) -> dict[str, int]:
    """Of all jobs together."""
    found: Counter[str] = Counter()
    for cell in testbed.counters(switch)["events"]:
        found[event_at(cell["index"])[1]] += cell["packets"]
    return dict(found)


def all_connected(testbed: MininetTestbed) -> bool:
    return all(switch["connected"] for switch in testbed.client.switches())


def bmv2_or_skip(switch: str) -> None:
    from gradbed.switch.p4lang.bmv2 import find_simple_switch_grpc

    if switch == "bmv2":
        try:
            find_simple_switch_grpc()
        except UserError as error:
            pytest.skip(str(error))


@in_sandbox
@pytest.mark.parametrize(
    ("switch", "restarted"),
    [
        ("gradbed", "s1"),
        # A ToR is restarted like a spine, on the virtual clock too.
        pytest.param("gradbed", "l1", marks=pytest.mark.nightly),
        ("bmv2", "s1"),
    ],
    ids=lambda value: str(value),
)
def test_a_switch_that_is_restarted(switch: str, restarted: str, tmp_path: Path) -> None:
    bmv2_or_skip(switch)
    with Run(tmp_path, program={"model": switch}) as run:
        result = run.sum(after=2, happening=lambda testbed: testbed.restart_switch(restarted))
        assert exact(result)
        assert all_connected(run.testbed)
        # Its counters began anew with its program, so that is what it did after the restart.
        assert events_of(run.testbed, restarted)["completed"] > 0


@in_sandbox
def test_a_switch_that_was_restarted_just_now_is_asked_once_it_is_back(tmp_path: Path) -> None:
    with Run(tmp_path) as run:
        run.testbed.restart_switch("s1")
        assert "events" in run.testbed.counters("s1")


@in_sandbox
def test_a_controller_that_is_killed(tmp_path: Path) -> None:
    before: dict[str, Any] = {}

    def kill(testbed: MininetTestbed) -> None:
        before.update(jobs=testbed.client.jobs(), plan=testbed.client.plan_text())
        testbed.restart_controller()
        before["after"] = testbed.client.jobs(), testbed.client.plan_text()

    with Run(tmp_path, workload={"min_timeout_us": PATIENT_US}) as run:
        result = run.sum(after=2, happening=kill)
        assert result.failures == []
        assert before["after"] == (before["jobs"], before["plan"])
        # No switch lost a slot or a counter: every fragment of every round was summed in it, and none was resent.
        assert result.metrics["resends"] == 0
        spines = sum(events_of(run.testbed, name)["completed"] for name in ("s1", "s2"))
        assert (spines, events_of(run.testbed, "l1")["completed"]) == (ROUNDS * FRAGMENTS, ROUNDS * FRAGMENTS)
        # The job was deleted by the successor, which goes on numbering where the other stopped.
        assert run.testbed.client.jobs() == []
        assert run.testbed.client.add_job("aggregation", {"workers": ["h3"], "server": "h1"})["job"] == 2


@in_sandbox
def test_a_link_that_is_cut_and_mended(tmp_path: Path) -> None:
    """The controller hears of it: its paths leave the link, and take it again."""
    seen: dict[str, Any] = {}

    def counted(testbed: MininetTestbed) -> tuple[int, int]:
        """Over the link, there."""
        (row,) = [row for row in testbed.fabric.link_statistics() if (row.from_node, row.to_node) == ("l2", "s1")]
        return row.packets, row.losses

    def cut(testbed: MininetTestbed) -> None:
        seen["before"] = testbed.client.plan_text()
        testbed.change_link("l2", "s2", loss=0.2, delay_us=300)
        testbed.set_link_up("l2", "s1", False)
        seen["down"] = [{link["a"], link["b"]} for link in testbed.client.links() if not link["up"]]
        seen["plan"] = testbed.client.plan_text()
        seen["counted"] = counted(testbed)

    with Run(tmp_path) as run:
        without_jobs = run.testbed.client.plan_text()
        result = run.sum(after=2, happening=cut)
        assert result.failures == []
        assert seen["down"] == [{"l2", "s1"}]
        assert seen["plan"] != seen["before"]
        # Whatever leaves l2 goes to s2 now, whose link loses some.
        assert counted(run.testbed) == seen["counted"]
        assert result.metrics["resends"] > 0
        assert run.testbed.client.plan_text() != without_jobs
        run.testbed.set_link_up("l2", "s1", True)
        assert all(link["up"] for link in run.testbed.client.links())
        assert run.testbed.client.plan_text() == without_jobs


@pytest.mark.nightly  # each of it alone: the tests above, and tests/unit/experiments/running/
@in_sandbox
def test_everything_at_once(tmp_path: Path) -> None:
    """Lossy links, scarce slots, two jobs, and in the middle both a switch and the controller go."""

    def disaster(testbed: MininetTestbed) -> None:
        testbed.restart_switch("s1")
        testbed.restart_controller()

    lossy = {"loss": 0.05, "duplicate": 0.05, "jitter_us": 100, "reorder": True}
    with Run(tmp_path, link=lossy, workload={"jobs": 2, "workers": 2}, switches={"slots": 8, "named": ["s1"]}) as run:
        result = run.sum(after=2, happening=disaster)
        assert eventually(lambda: all_connected(run.testbed))
    assert exact(result)
