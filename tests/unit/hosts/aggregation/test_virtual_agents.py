"""Aggregation's agents, their real code, on simulated time: losses, timers and stops without a second's wait."""

from __future__ import annotations

from typing import Any

import pytest

from common.errors import UserError
from experiments.systems.aggregation.agents import agent_specs, server_spec
from experiments.testbeds.agents import Agents
from formats.lanes import frame_bytes
from hosts.agents.description import parse_description
from hosts.learning.reference import reference, synthetic_reference
from hosts.learning.settings import SyntheticSettings, TrainingSettings
from hosts.systems.aggregation.description import JobDescription
from tests.unit.hosts.agents.virtual_network import SimulatedNetwork, by_destination, virtual_agents
from tests.unit.hosts.aggregation.frame_switch import FrameSwitch

TRAINING = {"kind": "training", "hidden_units": 8, "rounds": 4, "batch_samples": 16}
GROUP = {"ip": "239.66.0.3", "mac": "01:00:5e:42:00:03"}


def address(number: int) -> dict[str, str]:
    return {
        "name": f"h{number}",
        "ip": f"10.0.0.{number + 1}",
        "mac": f"02:00:00:00:00:{number:02x}",
        "gateway_mac": f"02:00:00:00:01:{number:02x}",
    }


def job_of(workers: int, **fields: Any) -> JobDescription:
    """The server on h0, workers on h1 and so on."""
    return parse_description(
        JobDescription,
        {
            "job": 3,
            "server": address(0),
            "workers": [{"index": index, **address(index + 1)} for index in range(workers)],
            "lanes": 64,
            **fields,
        },
    )


def hosts_of(job: JobDescription) -> dict[str, str]:
    return {agent.ip: agent.name for agent in (job.server, *job.workers)}


def routed(job: JobDescription, **links: Any) -> SimulatedNetwork:
    hosts = hosts_of(job)
    return SimulatedNetwork(hosts.values(), by_destination(hosts), **links)


def run(agents: Agents, job: JobDescription) -> tuple[list[dict[str, Any]], dict[str, dict[str, Any]]]:
    """From start to stop: the rounds' events, and final statistics by agent."""
    agents.start(agent_specs(job))
    agents.begin()
    rounds = [agents.event("round") for _ in range(len(job.workers) * job.workload.rounds)]
    return rounds, {name: statistics for (_, name), statistics in agents.stop().items()}


def assert_equals_reference(rounds: list[dict[str, Any]], job: JobDescription) -> None:
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
    ("slot_policy", "headroom_bits", "loss", "mark"),
    [("dynamic", 6, 0.03, 0.0), ("static", -2, 0.03, 0.1)],
    ids=["dynamic slots", "static slots, overflows and marks"],
)
def test_sums_in_a_switch_with_loss_and_duplicates(
    slot_policy: str, headroom_bits: int, loss: float, mark: float
) -> None:
    """Aggregation, multicast ACKs, repairs, packet numbers past 2^32; frames counted as the cards do."""
    workers = 3
    job = job_of(
        workers,
        workload={**TRAINING, "headroom_bits": headroom_bits},
        designations=[[{"switch_number": 9, "fan_in": workers}]] * workers,
        slot_policy=slot_policy,
        window_fragments=16,
        multicast=[GROUP],
        first_packet_number=(1 << 32) - 20,
    )
    switch = FrameSwitch(job, 9, slots=16, mark=mark)
    network = SimulatedNetwork(hosts_of(job).values(), switch.forward, loss=loss, duplicate=loss)
    agents, _ = virtual_agents(network)
    rounds, statistics = run(agents, job)
    assert_equals_reference(rounds, job)
    for host, name in ((0, "server"), *((index + 1, f"worker {index}") for index in range(workers))):
        for suffix, counted in (("sent", "sent"), ("received", "received")):
            frames = sum(statistics[name][f"{kind}_{suffix}"]["frames"] for kind in ("gradient", "acknowledgement"))
            assert frames == getattr(network.cards[f"h{host}-eth0"], counted)
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
        assert (worker["window"]["congestion_marks"] > 0) == (mark > 0)
    for kind in ("overflows", "requests", "shifted_acks"):
        assert (server[kind] > 0) == (headroom_bits < 0), kind
    assert (server["congestion_marks"] > 0) == (mark > 0)


@pytest.mark.parametrize("exchange", ["server", "ring"])
def test_the_same_run_again_is_the_same_to_the_last_byte(exchange: str) -> None:
    job = job_of(3, exchange=exchange, workload={"kind": "synthetic", "values": 2000, "rounds": 3})

    def once(seed: int) -> tuple[Any, ...]:
        network = routed(job, loss=0.05, duplicate=0.02, jitter_us=300, seed=seed)
        agents, _ = virtual_agents(network, compute_us=lambda job, name: 700 + 100 * int(name[-1]))
        rounds, statistics = run(agents, job)
        assert_equals_reference(rounds, job)
        return rounds, statistics, network.trace, network.now_ns

    assert once(1) == once(1)
    assert once(1) != once(2)


def test_without_losses_a_round_takes_what_links_and_computation_take() -> None:
    """One fragment: gradient there and ACK back, over two links each way; computing counts for the whole."""
    job = job_of(2, workload={"kind": "synthetic", "values": 10, "rounds": 2})
    agents, clock = virtual_agents(routed(job, delay_us=250), compute_us=lambda job, name: 5000)
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
    agents, _ = virtual_agents(routed(job), compute_us=lambda job, name: 2_000_000 if name == "worker 1" else 0)
    rounds, statistics = run(agents, job)
    assert_equals_reference(rounds, job)
    assert statistics["worker 1"]["timeout_resends"] == 0
    assert statistics["worker 0"]["timeout_resends"] > 0


@pytest.mark.parametrize("exchange", ["server", "ring"])
def test_a_worker_gives_up_when_nobody_replies(exchange: str) -> None:
    job = job_of(2, exchange=exchange, workload={"kind": "synthetic", "values": 9, "rounds": 1})
    network = SimulatedNetwork(hosts_of(job).values(), lambda frame: [])
    agents, clock = virtual_agents(network)
    agents.start(agent_specs(job))
    agents.begin()
    with pytest.raises(UserError, match=r"worker \d: no .* for 30 s in round 0 \(1 of 1 fragments missing\)"):
        agents.event("round")
    assert 30e9 <= clock.now_ns < 40e9


def test_a_job_whose_workers_sum_has_no_server() -> None:
    job = job_of(2, exchange="ring", workload=TRAINING)
    agents, _ = virtual_agents(routed(job))
    with pytest.raises(UserError, match=r"^server: job 3 has no server: its workers sum \(ring\)$"):
        agents.start([server_spec(job)])


def test_stop_in_the_middle_ends_all_without_done() -> None:
    job = job_of(2, workload=TRAINING)
    agents, _ = virtual_agents(routed(job, loss=1.0))
    agents.start(agent_specs(job))
    agents.begin()
    assert {name for _, name in agents.stop()} == {"server", "worker 0", "worker 1"}


def test_a_killed_server_is_started_again_and_the_workers_give_up_nothing() -> None:
    """Between the two, workers send into the void; the sums of the round begun must come from the new server."""
    job = job_of(2, workload={"kind": "synthetic", "values": 500, "rounds": 1})
    agents, clock = virtual_agents(routed(job), compute_us=lambda job, name: 100)
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
    monkeypatch.setattr("hosts.systems.aggregation.agents.prepare", lambda description: None)
    job = job_of(1, exchange="server", workload={"kind": "external"})
    agents, _ = virtual_agents(routed(job))
    agents.launch(agent_specs(job)[1:])
    with pytest.raises(UserError, match="needs a script for every worker"):
        agents.event()
