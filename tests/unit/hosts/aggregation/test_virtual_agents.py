"""Aggregation's agents, their real code, on simulated time: losses, timers and stops without a second's wait."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network
from typing import Any

import pytest

from gradbed.common.errors import UserError
from gradbed.controller.planning.entries import congestion_threshold, ipv4_route, multicast_route
from gradbed.controller.planning.plan import MulticastGroup, Plan, SwitchPlan
from gradbed.controller.southbound.p4runtime.local import LocalSouthbound
from gradbed.controller.southbound.p4runtime.schema import Pipeline
from gradbed.controller.systems.aggregation.job_plan import SlotRange, aggregation_role
from gradbed.experiments.programs import P4_SOURCES
from gradbed.experiments.runtimes.agents import Agents
from gradbed.experiments.systems.aggregation.phase import agent_specs, server_spec
from gradbed.formats.lanes import frame_bytes
from gradbed.hosts.agents.config import parse_config
from gradbed.hosts.agents.virtual.clock import VirtualClock
from gradbed.hosts.learning.reference import reference, synthetic_reference
from gradbed.hosts.learning.settings import SyntheticSettings, TrainingSettings
from gradbed.hosts.systems.aggregation.config import AggregationJob
from gradbed.switch.program_cache import compiled_files
from gradbed.topo.link import LinkModel
from tests.unit.hosts.star import LINK, Star, virtual_agents

JOB, OWN_NUMBER, SLOTS = 3, 9, 16
TRAINING = {"kind": "training", "hidden_units": 8, "rounds": 4, "batch_samples": 16}
GROUP = {"ip": "239.66.0.3", "mac": "01:00:5e:42:00:03"}


def address(number: int) -> dict[str, str]:
    return {
        "name": f"h{number}",
        "ip": f"10.0.0.{number}",
        "mac": f"02:00:00:00:00:{number:02x}",
        "gateway_mac": f"02:00:00:00:01:{number:02x}",
    }


def job_of(workers: int, **fields: Any) -> AggregationJob:
    """The server on h1, workers on h2 and so on."""
    return parse_config(
        AggregationJob,
        {
            "job": JOB,
            "server": address(1),
            "workers": [{"index": index, **address(index + 2)} for index in range(workers)],
            "lanes": 64,
            **fields,
        },
    )


def agents_of(job: AggregationJob, link: LinkModel = LINK, **options: Any) -> tuple[Agents, VirtualClock]:
    return virtual_agents(Star(1 + len(job.workers), link), **options)


def summing_star(job: AggregationJob, link: LinkModel, threshold: int) -> Star:
    """Its switch runs p4src/aggregation.p4. threshold: as many packets that wait for the server are congestion."""
    agents = (job.server, *job.workers)
    star = Star(len(agents), link, forwards=False)
    defines = {"LANES": str(job.lanes), "SLOTS": str(SLOTS)}
    files = compiled_files(P4_SOURCES / "aggregation.p4", defines)
    pipeline = Pipeline.load("aggregation", files.json, files.p4info)
    entries = [
        *(ipv4_route(IPv4Network(f"{agent.ip}/32"), port, agent.mac) for port, agent in enumerate(agents, 1)),
        multicast_route(IPv4Address(GROUP["ip"]), 1),
        aggregation_role(JOB, OWN_NUMBER, "static" if job.span_fragments else "dynamic", SlotRange(0, SLOTS)),
        congestion_threshold(1, threshold),
    ]
    group = MulticastGroup(id=1, ports=tuple(range(2, 1 + len(agents))))
    southbound = LocalSouthbound(star, {"s1": 1}, {"aggregation": pipeline})
    southbound.start(Plan(switches={"s1": SwitchPlan.of("aggregation", entries, [group])}))
    return star


def run(agents: Agents, job: AggregationJob) -> tuple[list[dict[str, Any]], dict[str, dict[str, Any]]]:
    """From start to stop: the rounds' events, and final statistics by agent."""
    agents.start(agent_specs(job))
    agents.begin()
    rounds = [agents.event("round") for _ in range(len(job.workers) * job.workload.rounds)]
    return rounds, {name: statistics for (_, name), statistics in agents.stop().items()}


def assert_equals_reference(rounds: list[dict[str, Any]], job: AggregationJob) -> None:
    """Every worker has, after every round, the reference's weights or sums, bit for bit."""
    workers, settings = len(job.workers), job.workload
    if isinstance(settings, SyntheticSettings):
        key, expected = "sums_sha256", list(synthetic_reference(settings, workers, job.lanes))
    else:
        assert isinstance(settings, TrainingSettings)
        key, expected = "weights_sha256", [row.weights_sha256 for row in reference(settings, workers, job.lanes)]
    for index in range(workers):
        assert [event[key] for event in rounds if event["name"] == f"worker {index}"] == expected


@pytest.mark.parametrize(
    ("span_fragments", "headroom_bits", "rate_bps"),
    [(None, 6, None), (SLOTS, -2, 20_000_000)],
    ids=["dynamic slots", "static slots, overflows and marks"],
)
def test_sums_in_a_switch_with_loss_and_duplicates(
    span_fragments: int | None, headroom_bits: int, rate_bps: int | None
) -> None:
    """Aggregation, multicast ACKs, repairs, packet numbers past 2^32."""
    workers = 3
    job = job_of(
        workers,
        workload={**TRAINING, "headroom_bits": headroom_bits},
        designations=[[{"switch_number": OWN_NUMBER, "fan_in": workers}]] * workers,
        span_fragments=span_fragments,
        window_fragments=16,
        multicast=[GROUP],
        first_packet_number=(1 << 32) - 20,
    )
    link = LinkModel(rate_bps, 100, loss=0.03, duplicate=0.03)
    agents, _ = virtual_agents(summing_star(job, link, threshold=2))
    rounds, statistics = run(agents, job)
    assert_equals_reference(rounds, job)
    server, *others = (statistics[name] for name in ("server", *(f"worker {index}" for index in range(workers))))
    assert server["merged_partials"] > 0
    assert sum(worker["timeout_resends"] + worker["early_resends"] for worker in others) > 0
    merged_or_not = ("merged_singles", "merged_partials", "duplicates", "overlaps", "rejected")
    assert sum(server[kind] for kind in merged_or_not) == server["gradient_received"]["frames"]
    fragments = job.fragments_per_round * job.workload.rounds
    for worker in others:
        repeated = worker["timeout_resends"] + worker["early_resends"]
        # A fragment that the server asks for before it was sent goes directly at once.
        surplus = worker["gradient_sent"]["frames"] - fragments - repeated
        assert 0 <= surplus <= worker["direct_copies"]
        assert (worker["window"]["congestion_marks"] > 0) == (rate_bps is not None)
    for kind in ("overflows", "requests", "shifted_acks"):
        assert (server[kind] > 0) == (headroom_bits < 0), kind
    assert (server["congestion_marks"] > 0) == (rate_bps is not None)


def test_without_losses_a_round_takes_what_links_and_computation_take() -> None:
    """One fragment: gradient there and ACK back, over two links each way; computing counts for the whole."""
    job = job_of(2, workload={"kind": "synthetic", "values": 10, "rounds": 2})
    agents, clock = agents_of(job, LinkModel(delay_us=250), compute_us=lambda job, name: 5000)
    rounds, statistics = run(agents, job)
    assert_equals_reference(rounds, job)
    assert [event["seconds"] for event in rounds] == [0.001] * 4
    assert [event["total_seconds"] for event in rounds] == [0.006] * 4
    assert statistics["worker 0"]["gradient_sent"] == {"frames": 2, "bytes": 2 * frame_bytes(64)}
    # Then nobody but those who settle: the server, and after it the workers.
    assert clock.now_ns == 2 * 6_000_000 + 2 * 50_000_000


def test_what_comes_while_an_agent_computes_waits_for_it() -> None:
    """The second worker computes so long that the first one's timers would run out many times, if they ran."""
    job = job_of(2, workload={"kind": "synthetic", "values": 1000, "rounds": 2}, min_timeout_us=1000)
    agents, _ = agents_of(job, compute_us=lambda job, name: 2_000_000 if name == "worker 1" else 0)
    rounds, statistics = run(agents, job)
    assert_equals_reference(rounds, job)
    assert statistics["worker 1"]["timeout_resends"] == 0
    assert statistics["worker 0"]["timeout_resends"] > 0


@pytest.mark.parametrize("exchange", ["server", "ring"])
def test_a_worker_gives_up_when_nobody_replies(exchange: str) -> None:
    job = job_of(2, exchange=exchange, workload={"kind": "synthetic", "values": 9, "rounds": 1})
    agents, clock = virtual_agents(Star(3, forwards=False))
    agents.start(agent_specs(job))
    agents.begin()
    with pytest.raises(UserError, match=r"worker \d: no .* for 30 s in round 0 \(1 of 1 fragments missing\)"):
        agents.event("round")
    assert 30e9 <= clock.now_ns < 40e9


def test_a_job_whose_workers_sum_has_no_server() -> None:
    job = job_of(2, exchange="ring", workload=TRAINING)
    agents, _ = agents_of(job)
    with pytest.raises(UserError, match=r"^server: job 3 has no server: its workers sum \(ring\)$"):
        agents.start([server_spec(job)])


def test_stop_in_the_middle_ends_all_without_done() -> None:
    job = job_of(2, workload=TRAINING)
    agents, _ = virtual_agents(Star(3, forwards=False))
    agents.start(agent_specs(job))
    agents.begin()
    assert {name for _, name in agents.stop()} == {"server", "worker 0", "worker 1"}


def test_a_killed_server_is_started_again_and_the_workers_give_up_nothing() -> None:
    """Between the two, workers send into the void; the sums of the round begun must come from the new server."""
    job = job_of(2, workload={"kind": "synthetic", "values": 500, "rounds": 1})
    agents, clock = agents_of(job, compute_us=lambda job, name: 100)
    agents.start(agent_specs(job))
    agents.begin()
    agents.kill(3, "server")
    network_ns = clock.now_ns
    while clock.now_ns < network_ns + 2_000_000_000:
        clock.step()
    agents.start(agent_specs(job)[:1])
    rounds = [agents.event("round") for _ in range(2)]
    assert_equals_reference(rounds, job)
    assert all(event["seconds"] > 2 for event in rounds)
    agents.stop()


def test_a_job_that_needs_the_kernel_says_so_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradbed.hosts.systems.aggregation.agents.prepare", lambda config: None)
    job = job_of(1, exchange="server", workload={"kind": "external"})
    agents, _ = agents_of(job)
    agents.launch(agent_specs(job)[1:])
    with pytest.raises(UserError, match="needs a script for every worker"):
        agents.event()
