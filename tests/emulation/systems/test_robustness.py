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
from gradbed.experiments.engine.trial import run_phase
from gradbed.experiments.phases import Progress, TrialResult
from gradbed.experiments.runtimes.real import RealRuntime
from gradbed.experiments.scale import Scale
from gradbed.experiments.setup import TrialTask
from gradbed.experiments.systems.aggregation.metrics import event_at
from gradbed.experiments.systems.aggregation.system import AggregationSystem
from tests.emulation.programs import eventually
from tests.emulation.sandboxed import in_sandbox
from tests.unit.experiments.virtual_trials import LANES, configuration

pytestmark = [pytest.mark.thorough, pytest.mark.root]

PATIENT_US = 20_000_000
"""No worker resends for want of an answer, however busy the machine is."""

ROUNDS, FRAGMENTS = 8, 24

Happening = Callable[[RealRuntime], None]


class Run:
    """A network with jobs that sum in its switches; a context manager that brings it up."""

    def __init__(self, folder: Path, **sections: Any) -> None:
        """link, switches and workload change single values of their sections."""
        link = {"rate_mbps": 20, **sections.pop("link", {})}
        workload = {"rounds": ROUNDS, "values": FRAGMENTS * LANES, **sections.pop("workload", {})}
        configured = configuration(clock="real", link=link, workload=workload, **sections)
        self._task = TrialTask(configured, 1, Scale(), folder)
        system = AggregationSystem()
        self.trial = system.trial(self._task)
        self.runtime = RealRuntime(system, self.trial.network, self._task)

    def sum(self, after: int, happening: Happening) -> TrialResult:
        """Run all jobs; let something happen once all workers of the first have completed `after` rounds."""
        pending = [happening]

        def on_progress(bars: Sequence[Progress]) -> None:
            if pending and bars[0].completed >= after:
                pending.pop()(self.runtime)

        (phase,) = self.trial.phases
        measured, _ = run_phase(self.runtime, phase, self._task, on_progress)
        assert pending == []
        return self.trial.result([measured])

    def __enter__(self) -> Run:
        self.runtime.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        self.runtime.stop()


def exact(result: TrialResult) -> bool:
    """All sums were right; the accounts are not asked for, since what restarts forgets its counts."""
    return not any("instead of the reference's" in failure for failure in result.failures)


def events_of(runtime: RealRuntime, switch: str) -> dict[str, int]:
    """Of all jobs together."""
    found: Counter[str] = Counter()
    for cell in runtime.counters(switch)["events"]:
        found[event_at(cell["index"])[1]] += cell["packets"]
    return dict(found)


def all_connected(runtime: RealRuntime) -> bool:
    return all(switch["connected"] for switch in runtime.client.switches())


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
        result = run.sum(after=2, happening=lambda runtime: runtime.restart_switch(restarted))
        assert exact(result)
        assert all_connected(run.runtime)
        # Its counters began anew with its program, so that is what it did after the restart.
        assert events_of(run.runtime, restarted)["completed"] > 0


@in_sandbox
def test_a_switch_that_was_restarted_just_now_is_asked_once_it_is_back(tmp_path: Path) -> None:
    with Run(tmp_path) as run:
        run.runtime.restart_switch("s1")
        assert "events" in run.runtime.counters("s1")


@in_sandbox
def test_a_controller_that_is_killed(tmp_path: Path) -> None:
    before: dict[str, Any] = {}

    def kill(runtime: RealRuntime) -> None:
        before.update(jobs=runtime.client.jobs(), plan=runtime.client.plan_text())
        runtime.restart_controller()
        before["after"] = runtime.client.jobs(), runtime.client.plan_text()

    with Run(tmp_path, workload={"min_timeout_us": PATIENT_US}) as run:
        result = run.sum(after=2, happening=kill)
        assert result.failures == []
        assert before["after"] == (before["jobs"], before["plan"])
        # No switch lost a slot or a counter: every fragment of every round was summed in it, and none was resent.
        assert result.metrics["resends"] == 0
        spines = sum(events_of(run.runtime, name)["completed"] for name in ("s1", "s2"))
        assert (spines, events_of(run.runtime, "l1")["completed"]) == (ROUNDS * FRAGMENTS, ROUNDS * FRAGMENTS)
        # The job was deleted by the successor, which goes on numbering where the other stopped.
        assert run.runtime.client.jobs() == []
        assert run.runtime.client.add_job("aggregation", {"workers": ["h3"], "server": "h1"})["job"] == 2


@in_sandbox
def test_a_link_that_is_cut_and_mended(tmp_path: Path) -> None:
    """The controller hears of it: its paths leave the link, and take it again."""
    seen: dict[str, Any] = {}

    def counted(runtime: RealRuntime) -> tuple[int, int]:
        """Over the link, there."""
        (row,) = [row for row in runtime.backend.link_statistics() if (row.from_node, row.to_node) == ("l2", "s1")]
        return row.packets, row.losses

    def cut(runtime: RealRuntime) -> None:
        seen["before"] = runtime.client.plan_text()
        runtime.backend.change_link("l2", "s2", loss=0.2, delay_us=300)
        runtime.set_link_up("l2", "s1", False)
        seen["down"] = [{link["a"], link["b"]} for link in runtime.client.links() if not link["up"]]
        seen["plan"] = runtime.client.plan_text()
        seen["counted"] = counted(runtime)

    with Run(tmp_path) as run:
        without_jobs = run.runtime.client.plan_text()
        result = run.sum(after=2, happening=cut)
        assert result.failures == []
        assert seen["down"] == [{"l2", "s1"}]
        assert seen["plan"] != seen["before"]
        # Whatever leaves l2 goes to s2 now, whose link loses some.
        assert counted(run.runtime) == seen["counted"]
        assert result.metrics["resends"] > 0
        assert run.runtime.client.plan_text() != without_jobs
        run.runtime.set_link_up("l2", "s1", True)
        assert all(link["up"] for link in run.runtime.client.links())
        assert run.runtime.client.plan_text() == without_jobs


@pytest.mark.nightly  # each of it alone: the tests above, and tests/unit/experiments/running/
@in_sandbox
def test_everything_at_once(tmp_path: Path) -> None:
    """Lossy links, scarce slots, two jobs, and in the middle both a switch and the controller go."""

    def disaster(runtime: RealRuntime) -> None:
        runtime.restart_switch("s1")
        runtime.restart_controller()

    lossy = {"loss": 0.05, "duplicate": 0.05, "jitter_us": 100, "reorder": True}
    with Run(tmp_path, link=lossy, workload={"jobs": 2, "workers": 2}, switches={"slots": 8, "named": ["s1"]}) as run:
        result = run.sum(after=2, happening=disaster)
        assert eventually(lambda: all_connected(run.runtime))
    assert exact(result)
