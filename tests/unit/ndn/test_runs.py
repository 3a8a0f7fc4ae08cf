"""Whole runs on the virtual clock: traffic, training, losses."""

from __future__ import annotations

import pytest

from gradbed.experiments.systems.ndn import phase as phase_module
from gradbed.hosts.systems.ndn import node as node_module
from gradbed.topo.registry import parse_topology
from tests.unit.ndn.runs import lossy, recoveries, run


@pytest.mark.thorough
def test_every_pushed_fragment_crosses_each_link_of_its_tree_once() -> None:
    result = run()
    assert result.failures == []
    assert result.metrics["transmissions"] == result.metrics["expected_transmissions"] == 448
    assert result.metrics["unicast_transmissions"] == 1312
    assert result.metrics["probes"] == 0


@pytest.mark.nightly
def test_the_same_on_128_hosts() -> None:
    result = run(topology={"kind": "fat-tree:8"}, workload={"peers": 128, "rounds": 1, "values": 96})
    assert result.failures == []
    assert result.metrics["transmissions"] == result.metrics["expected_transmissions"] == 21_504
    assert result.metrics["unicast_transmissions"] == 92_928


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("exchange", "transmissions"), [("pull", 448), pytest.param("unicast", 1312, marks=pytest.mark.nightly)]
)
# unicast: test_faults.py, and the transmissions that are expected of it are above.
def test_other_exchanges_sum_up_the_same(exchange: str, transmissions: int) -> None:
    result = run(workload={"exchange": exchange, "rounds": 2})
    assert result.failures == []
    assert result.metrics["transmissions"] == transmissions


@pytest.mark.nightly
def test_ring_all_reduce_on_the_same_routers() -> None:
    result = run(workload={"exchange": "ring", "rounds": 2})
    assert result.failures == []
    assert result.metrics["gradient_hops"] > 4 * 15 / 16 * 28


def test_recursive_doubling_of_a_packet_takes_log_n_ways() -> None:
    """16 peers exchange at distances 1, 2, 4 and 8: on an edge switch, in a pod, and twice between pods."""
    link = {"rate_mbps": 100, "delay_us": 50}
    result = run(
        topology={"kind": "fat-tree:4", "link": link}, workload={"exchange": "recursive-doubling", "values": 96}
    )
    assert result.failures == []
    assert result.metrics["expected_hops"] == 16 * (2 + 4 + 6 + 6)
    frame_us = 8 * (14 + 20 + 8 + 28 + 4 * 96) / 100
    least_s = (2 + 4 + 6 + 6) * (50 + frame_us) / 1e6
    # Acknowledgements share the links.
    assert least_s <= result.metrics["round_time_s"] < 1.1 * least_s


def test_recursive_doubling_of_folded_groups_and_with_losses() -> None:
    result = run(topology={"link": {"loss": 0.02}}, workload={"exchange": "recursive-doubling", "peers": 11})
    assert result.failures == []


@pytest.mark.commit_cases(1)
@pytest.mark.parametrize("kind", ["fat-tree:4", "leaf-spine:4,4,4"])
def test_no_link_between_switches_carries_two_flows_of_the_ring(kind: str) -> None:
    """Neighbours of the ring are neighbours of the network, so that no choice among equal paths could serve it
    better: a link between switches carries no more than a host sends, gradients to one neighbour and ACKs to the
    other."""
    result = run(topology={"kind": kind}, workload={"exchange": "ring", "rounds": 1})
    assert result.failures == []
    hosts = {host.name for host in parse_topology(kind).hosts}
    carried = {(row["from"], row["to"]): row["bytes"] for row in result.tables["links"]}
    sent = [size for (sender, _), size in carried.items() if sender in hosts]
    between = [size for ends, size in carried.items() if not hosts.intersection(ends)]
    assert len(sent) == 16 and len(between) >= 16
    assert max(between) <= max(sent)


def test_synchronous_weights_are_the_references() -> None:
    result = run(workload={"kind": "training", "peers": 4, "rounds": 5})
    assert result.failures == []
    assert result.metrics["accuracy"] > 0.4


def test_a_wrong_lane_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    publish = node_module.NdnNode.publish

    def wrong(self: node_module.NdnNode, version: int, publication: node_module.Publication) -> None:
        if self.own == 0:
            publication.fragments[0, 0] += 1
        publish(self, version, publication)

    monkeypatch.setattr(node_module.NdnNode, "publish", wrong)
    assert any("not the reference's" in line for line in run(workload={"peers": 4, "rounds": 1}).failures)


@pytest.mark.thorough
def test_training_ends_where_everybodys_loss_is_small_enough() -> None:
    result = run(workload={"kind": "training", "peers": 4, "rounds": 20, "target_loss": 1.5})
    assert result.failures == []
    assert 3 < len(result.tables["versions"]) < 20
    assert {row["peers"] for row in result.tables["versions"]} == {4}


@pytest.mark.thorough
def test_observers_know_of_the_target() -> None:
    workload = {"kind": "training", "peers": 4, "rounds": 20, "target_loss": 1.5, "observers": [{}]}
    result = run(workload=workload)
    assert result.failures == []
    assert result.decisions["observed"]["observer 0"][1] == len(result.tables["versions"]) - 1 < 19


# ---- Losses ----


@pytest.mark.thorough
def test_5_percent_loss_on_every_link() -> None:
    result = run(topology={"link": {"loss": 0.05}}, workload={"kind": "training", "rounds": 2, "hidden_units": 16})
    assert result.failures == []
    assert result.metrics["recoveries"] > 500
    assert result.metrics["store_share"] > 0.9
    # What was lost on its very first link no router can have.
    lost_at_once = sum(row["losses"] for row in result.tables["links"] if row["from"].startswith("h"))
    assert recoveries(result)[None] <= lost_at_once


def test_what_the_last_router_holds_is_asked_of_nobody_else() -> None:
    network = parse_topology("fat-tree:4")
    observer = network.hosts[1].name
    link = (network.attachment(observer).name, observer)
    # The link loses packets once the observer has subscribed.
    result = run(
        faults=lossy(0.2, link, at_ms=8),
        workload={"peers": 8, "rounds": 4, "observers": [{}]},
        timing={"compute_us": 10_000},
    )
    assert result.failures == []
    assert result.decisions["observers"] == [observer]
    found = recoveries(result)
    assert found.pop(1) > 30
    assert found == {None: 0}


@pytest.mark.nightly
def test_without_stores_publishers_answer() -> None:
    result = run(topology={"link": {"loss": 0.02}}, workload={"rounds": 2}, routers={"contents": 0})
    assert result.failures == []
    assert result.metrics["store_share"] == 0.0


@pytest.mark.nightly
def test_duplicates_are_counted_and_change_nothing() -> None:
    result = run(topology={"link": {"duplicate": 0.05}}, workload={"rounds": 2})
    assert result.failures == []


@pytest.mark.nightly
def test_the_same_seed_gives_the_same_run() -> None:
    sections = {"topology": {"link": {"loss": 0.03}}, "workload": {"peers": 6, "rounds": 2}}
    one, other = run(**sections), run(**sections)
    assert (one.metrics, one.tables) == (other.metrics, other.tables)
    assert run(seed=2, **sections).metrics != one.metrics


# ---- Asynchronous training ----

ASYNCHRONOUS = {
    "workload": {
        "kind": "training", "mode": "asynchronous", "peers": 6, "rounds": 6, "hidden_units": 8, "slow_peers": 1,
        "slowness": 3,
    },
    "timing": {"compute_us": 4000, "compute_distribution": "exponential"},
    "topology": {"link": {"loss": 0.01}},
}  # fmt: skip


def test_asynchronous_weights_are_those_of_a_replay() -> None:
    result = run(**ASYNCHRONOUS)
    assert result.failures == []
    applied = [row["applied"] for row in result.tables["peers"]]
    assert max(applied) > 1
    assert len({row["staleness"] for row in result.tables["peers"]}) > 2


@pytest.mark.nightly
def test_a_replay_in_another_order_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    replay = phase_module.replay

    def swapped(settings: object, workers: int, applied: dict[int, list[list[tuple[int, int]]]]) -> object:
        steps = next(steps for steps in applied.values() if any(len(step) > 1 for step in steps))
        steps[-1].append(steps[0][0])
        return replay(settings, workers, applied)  # type: ignore[arg-type]

    monkeypatch.setattr(phase_module, "replay", swapped)
    assert any("not those of a replay" in line for line in run(**ASYNCHRONOUS).failures)


def test_asynchronous_peers_leave_when_all_pushes_have_come() -> None:
    """However long the last ones take: else their trees would be half gone, and a run that counts them wrong."""
    slow_links = {"kind": "fat-tree:4", "link": {"rate_mbps": 100, "delay_us": 2000}}
    workload = {"kind": "training", "mode": "asynchronous", "peers": 4, "rounds": 3, "hidden_units": 8}
    result = run(topology=slow_links, workload=workload, timing={"compute_us": 1000})
    assert result.failures == []
    assert result.metrics["transmissions"] == result.metrics["expected_transmissions"]


def test_asynchronous_peers_ask_for_what_gets_lost() -> None:
    """Where next to nothing would come whole by itself: a gradient of 8 fragments crosses six links."""
    lossy_network = {"kind": "fat-tree:4", "link": {"rate_mbps": 100, "delay_us": 50, "loss": 0.05}}
    workload = {"kind": "training", "mode": "asynchronous", "peers": 8, "rounds": 8, "hidden_units": 8}
    result = run(topology=lossy_network, workload=workload, timing={"compute_us": 10_000})
    assert result.failures == []
    applied = [row["applied"] for row in result.tables["peers"]]
    assert sum(applied) / len(applied) > 2
    # What is made is applied, or left out for a newer one, or not there by the end.
    whole = 8 * result.metrics["superseded"] + sum(applied)
    assert 0 < whole <= 8 * 7 * 8
    assert result.metrics["superseded"] > 0


@pytest.mark.thorough
def test_a_slow_peer_holds_up_only_those_who_wait_for_it() -> None:
    slow = {"slow_peers": 1, "slowness": 10, "rounds": 4}
    timing = {"compute_us": 5000}
    waiting = run(workload={"kind": "training", "peers": 4, "hidden_units": 32, **slow}, timing=timing)
    free = run(
        workload={"kind": "training", "peers": 4, "hidden_units": 8, "mode": "asynchronous", **slow}, timing=timing
    )
    assert waiting.failures == free.failures == []

    def end_s(result: object, peer: str) -> float:
        return max(row["at_s"] for row in result.tables["peers"] if row["peer"] == peer)  # type: ignore[attr-defined]

    assert end_s(waiting, "peer 0") > 0.2 > 0.05 > end_s(free, "peer 0")
    # A gradient of the slow peer takes 50 ms; it sends all of it before it makes the next.
    first_s = min(row["at_s"] for row in waiting.tables["peers"] if row["peer"] == "peer 0")
    assert 0.05 < first_s < 0.075


def test_links_that_double_interests_make_routers_send_nacks() -> None:
    link = {"rate_mbps": 20, "delay_us": 52, "loss": 0.1, "duplicate": 0.2, "queue_packets": 10}
    result = run(seed=9, topology={"kind": "star:5", "link": link}, workload={"exchange": "pull", "peers": 2})
    assert result.failures == []
    (nacks,) = [row for row in result.tables["packet_classes"] if row["class"] == "LpPacket"]
    assert nacks["hosts_received"] > 0 == nacks["hosts_sent"]
