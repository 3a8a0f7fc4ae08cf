"""What a shuffle's numbers are made of, by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gradbed.controller.systems.shuffle.messages import ShuffleJob, ShuffleRequest
from gradbed.controller.systems.shuffle.service import ShuffleService
from gradbed.experiments.configuration.faults import AgentFault, stopped_agents
from gradbed.experiments.runtimes.agents import AgentSpec
from gradbed.experiments.systems.shuffle.metrics import ShuffleLinkLoad, load_metrics, max_over_mean
from gradbed.experiments.systems.shuffle.phase import ShufflePhase
from gradbed.hosts.agents.virtual.context import VirtualContext
from gradbed.topo.registry import parse_topology
from tests.unit.trials import virtual_trial


def test_the_most_over_the_mean() -> None:
    assert max_over_mean([1, 2, 6, 3]) == 2
    assert max_over_mean([5, 5]) == 1 and max_over_mean([0, 0]) is None and max_over_mean([]) is None


def test_loads_of_the_fabric_and_of_the_switches_farthest_from_hosts() -> None:
    topology = parse_topology("leaf-spine:2,2,1")
    counted = {
        pair: ShuffleLinkLoad()
        for link in topology.links
        for pair in [(link.a.node, link.b.node), (link.b.node, link.a.node)]
    }
    counted["s1", "l1"], counted["s2", "l2"] = ShuffleLinkLoad(1, 6), ShuffleLinkLoad(1, 2)
    counted["l1", "s1"], counted["h1", "l1"] = ShuffleLinkLoad(1, 4), ShuffleLinkLoad(1, 12)
    found = load_metrics(topology, counted)
    assert found["top_switch_share"] == 6 / 8
    assert found["fabric_load_max_over_mean"] == 6 / (12 / 8)
    assert found["load_max_over_mean"] == 12 / (24 / 12)


class _Job:
    """Of a phase, as far as it asks."""

    def agents(self) -> list[AgentSpec]:
        return [AgentSpec(f"h{place}", "a:b", f"worker {place}", {}) for place in range(3)]


def phase(*stopped: str) -> ShufflePhase:
    request = ShuffleRequest(workers=("h1",), sizes_bytes=(), stored=((),), needed=((),))
    made = ShufflePhase("shuffle 1", request, lambda answer: _Job(), stopped)  # type: ignore[arg-type,return-value]
    made.agents([{}])
    return made


def tell(made: ShufflePhase, name: str, event: str = "shuffled", **times: int) -> None:
    fields: dict[str, Any] = {"waits_us": {}, **times}
    made.take({"event": event, "name": name, **fields})


def test_a_shuffle_lasts_from_the_first_beginning_to_the_last_end() -> None:
    made = phase()
    for place, (begun_us, shuffled_us) in enumerate(((100, 900), (70, 500), (120, 800))):
        assert not made.complete
        tell(made, f"worker {place}", begun_us=begun_us, shuffled_us=shuffled_us)
    assert made.complete and made.time_us == 900 - 70


def test_nobody_waits_for_those_that_were_stopped_and_everybody_for_those_that_begin_anew() -> None:
    made = phase("worker 2")
    for name in ("worker 0", "worker 1"):
        tell(made, name, begun_us=0, shuffled_us=10)
    assert made.complete
    tell(made, "worker 1", "begun")
    assert not made.complete
    tell(made, "worker 1", begun_us=20, shuffled_us=30)
    assert made.complete and made.time_us == 30


def test_the_last_fault_says_whether_an_agent_is_there() -> None:
    def at(at_ms: float, fault: Any) -> AgentFault:
        return AgentFault(at_ms=at_ms, fault=fault, agent="worker 1")

    assert stopped_agents([at(1, "agent-stop")]) == {"worker 1"}
    assert stopped_agents([at(1, "agent-stop"), at(2, "agent-start")]) == frozenset()
    assert stopped_agents([at(2, "agent-start"), at(1, "agent-stop")]) == frozenset()
    assert stopped_agents([at(2, "agent-start"), at(1, "agent-stop"), at(3, "agent-stop")]) == {"worker 1"}


@pytest.mark.parametrize("sample_bytes", [500, 5000])
def test_a_coded_packet_is_summed_once_and_decoded_by_each_receiver(
    sample_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many fragments it has; samples that go alone are neither."""
    computed, jobs = [], []
    compute, admit = VirtualContext.compute, ShuffleService.admit

    def counted(self: VirtualContext, work: Any) -> Any:
        computed.append(self.name)
        return compute(self, work)

    def admitted(self: ShuffleService, *arguments: Any) -> ShuffleJob:
        jobs.append(admit(self, *arguments))
        return jobs[-1]

    monkeypatch.setattr(VirtualContext, "compute", counted)
    monkeypatch.setattr(ShuffleService, "admit", admitted)
    found = virtual_trial(
        "shuffle",
        tmp_path,
        topology={"kind": "star:5"},
        samples={"data": "synthetic", "samples": 40, "sample_bytes": sample_bytes, "storage": 0.5},
        shuffle={"scheduler": "coded-largest"},
    )
    assert found.failures == []
    coded = [sent for sent in jobs[0].schedule.transmissions if len(sent.samples) > 1]
    assert 0 < len(coded) < len(jobs[0].schedule.transmissions)
    assert len(computed) == sum(1 + len(sent.receivers) for sent in coded)
