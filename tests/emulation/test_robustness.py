"""Whatever goes wrong while jobs train, their weights are bit for bit those of a single process.

What happens in the middle happens after a certain round, not at a certain time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from experiments.config import AggregationConfig

from switch.errors import UserError
from tests.emulation.programs import eventually
from tests.emulation.sandboxed import in_sandbox

if TYPE_CHECKING:
    from experiments.systems.aggregation.counts import ModeOutcome
    from experiments.testbed import Testbed

pytestmark = pytest.mark.root

PATIENT_MS = 20_000
"""No worker resends for want of an answer, however busy the machine is."""

Happening = Callable[["Testbed"], None]


class Run:
    """A network with jobs that sum in its switches; a context manager that brings it up."""

    def __init__(self, folder: Path, **options: Any) -> None:
        from experiments.aggregation import make_testbed, make_trainings

        from experiments.run_folder import RunFolder
        from experiments.systems.aggregation.programmable import choose_programmable
        from topo.registry import parse_topology

        common = {
            "topology": "leaf-spine:3,2,2", "workers": 4, "rounds": 8, "hidden_units": 0, "lanes": 32, "window": 16,
            "delay_us": 100, "placement": "explicit", "switches": ("s1", "s2"), "output": folder,
        }  # fmt: skip
        self.config = config = AggregationConfig(**{**common, **options})
        topology = parse_topology(config.topology, config.link_model)
        hosts = hosts_of(config)
        choice = choose_programmable(topology, hosts, config.planner_options)
        self.trainings = make_trainings(config, hosts, choice.requests)
        self._run_folder = RunFolder(folder, "robustness")
        self.testbed = make_testbed(config, topology, choice, self._run_folder)

    def train(self, after: int | None = None, happening: Happening = lambda testbed: None) -> list[ModeOutcome]:
        """Train all jobs; let something happen once the first job has completed `after` rounds."""
        from experiments.training_run import run_trainings

        from experiments.agents import Agents

        def on_round(place: int, outcome: Any) -> None:
            if place == 0 and outcome.round + 1 == after:
                happening(self.testbed)

        with Agents(self._run_folder.logs, self.testbed.network) as agents:
            return run_trainings(
                self.testbed,
                agents,
                mode="in-network",
                trainings=self.trainings,
                config=self.config,
                on_round=on_round,
            )

    def __enter__(self) -> Run:
        self.testbed.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        self.testbed.stop()


def hosts_of(config: AggregationConfig) -> Any:
    from controller.planning.hosts import choose_hosts_of_jobs
    from topo.registry import parse_topology

    return choose_hosts_of_jobs(parse_topology(config.topology), config.jobs, config.workers)


def check_exact(outcomes: list[ModeOutcome], rounds: int) -> None:
    """All weights were right; run_trainings compares each worker's after each round."""
    for outcome in outcomes:
        assert outcome.mismatches == ()
        assert outcome.rounds == rounds


def check_accounts(outcomes: list[ModeOutcome]) -> None:
    from experiments.accounting import disagreements

    assert [line for outcome in outcomes for line in disagreements(outcome.accounts)] == []


def events_of(testbed: Testbed, switch: str) -> dict[str, int]:
    """Of all jobs together."""
    from experiments.systems.aggregation.counts import event_at

    found: Counter[str] = Counter()
    for cell in testbed.client.counters(switch)["events"]:
        found[event_at(cell["index"])[1]] += cell["packets"]
    return dict(found)


def all_connected(testbed: Testbed) -> bool:
    return all(switch["connected"] for switch in testbed.client.switches())


@in_sandbox
def test_losses_duplicates_and_reordering_on_every_link(tmp_path: Path) -> None:
    with Run(tmp_path, loss=0.05, duplicate=0.05, jitter_us=100, reorder=True) as run:
        outcomes = run.train()
    check_exact(outcomes, 8)
    check_accounts(outcomes)
    (outcome,) = outcomes
    assert outcome.resends > 0
    assert outcome.events["duplicate"] > 0
    assert outcome.events["resend_summed"] + outcome.events["resend_single"] > 0
    assert outcome.events["completed"] > 0


def bmv2_or_skip(switch: str) -> None:
    from switch.nodes.bmv2_node import find_simple_switch_grpc

    if switch == "bmv2":
        try:
            find_simple_switch_grpc()
        except UserError as error:
            pytest.skip(str(error))


@in_sandbox
@pytest.mark.parametrize(
    ("switch", "restarted"), [("gradbed", "s1"), ("gradbed", "l1"), ("bmv2", "s1")], ids=lambda value: str(value)
)
def test_a_switch_that_is_restarted(switch: str, restarted: str, tmp_path: Path) -> None:
    bmv2_or_skip(switch)
    delay = {"delay_us": 0} if switch == "bmv2" else {}
    with Run(tmp_path, switch=switch, **delay) as run:
        outcomes = run.train(after=2, happening=lambda testbed: testbed.network.restart_switch(restarted))
        check_exact(outcomes, 8)
        assert all_connected(run.testbed)
        # Its counters began anew with its program, so that is what it did after the restart.
        assert events_of(run.testbed, restarted)["completed"] > 0
        assert run.trainings[0].reference[-1].weights_sha256 == outcomes[0].per_round[-1].weights_sha256


@in_sandbox
def test_a_controller_that_is_killed(tmp_path: Path) -> None:
    before: dict[str, Any] = {}

    def kill(testbed: Testbed) -> None:
        before.update(jobs=testbed.client.jobs(), plan=testbed.client.plan_text())
        testbed.restart_controller()
        before["after"] = testbed.client.jobs(), testbed.client.plan_text()

    with Run(tmp_path, min_timeout_ms=PATIENT_MS) as run:
        outcomes = run.train(after=2, happening=kill)
        check_exact(outcomes, 8)
        check_accounts(outcomes)
        assert before["after"] == (before["jobs"], before["plan"])
        # No switch lost a slot or a counter: every fragment of every round was summed in it, and none was resent.
        fragments = 8 * -(-650 // 32)
        assert outcomes[0].resends == 0
        first_level = sum(events_of(run.testbed, name)["completed"] for name in ("s1", "s2"))
        assert (first_level, events_of(run.testbed, "l1")["completed"]) == (fragments, fragments)
        # The job was deleted by the successor, which goes on numbering where the other stopped.
        assert run.testbed.client.jobs() == []
        assert run.testbed.client.add_job("aggregation", {"workers": ["h3"], "server": "h1"})["job"] == 2


@in_sandbox
@pytest.mark.parametrize("policy", ["dynamic", "static"])
def test_two_jobs_with_a_quarter_of_the_slots_that_they_need(policy: str, tmp_path: Path) -> None:
    # Two windows of 16 fragments, 8 slots.
    scarce: dict[str, Any] = {"jobs": 2, "workers": 2, "slots": 8, "switches": ("s1",), "slot_policy": policy}
    with Run(tmp_path, congestion_control="none", **scarce) as run:
        outcomes = run.train()
        events = events_of(run.testbed, "s1")
    check_exact(outcomes, 8)
    check_accounts(outcomes)
    assert events["completed"] > 0
    unusable = events.get("collision", 0) + events.get("contention", 0)
    if policy == "dynamic":
        assert unusable > 0
    else:
        assert unusable == 0


@in_sandbox
def test_everything_at_once(tmp_path: Path) -> None:
    """Lossy links, scarce slots, two jobs, and in the middle both a switch and the controller go."""

    def disaster(testbed: Testbed) -> None:
        testbed.network.restart_switch("s1")
        testbed.restart_controller()

    options: dict[str, Any] = {"jobs": 2, "workers": 2, "slots": 8, "switches": ("s1",)}
    with Run(tmp_path, loss=0.05, duplicate=0.05, jitter_us=100, reorder=True, **options) as run:
        outcomes = run.train(after=2, happening=disaster)
        eventually(lambda: all_connected(run.testbed))
    check_exact(outcomes, 8)
