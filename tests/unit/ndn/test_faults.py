"""Who comes late, leaves early or dies; routers that lose everything; links that go down."""

from __future__ import annotations

from typing import Any

import pytest

from gradbed.common.errors import UserError
from gradbed.experiments.phases import TrialResult
from gradbed.hosts.systems.ndn.node import NdnNode
from tests.unit.ndn.runs import run

EPOCH_MS = 2**16 / 1000
"""Short ones."""
LONG = {"rounds": 30, "peers": 6, "values": 192}
ROUTERS = {"epoch_shift": 16}
TIMING = {"compute_us": 10_000}


def observed(**sections: Any) -> TrialResult:
    """A run with observers besides six peers. It ends when all have left; wrong sums are failures."""
    workload = {**LONG, "observers": sections.pop("observers")}
    return run(workload=workload, routers=ROUTERS, timing=TIMING, **sections)


def rows(result: TrialResult, name: str) -> int:
    return sum(row[name] for row in result.tables["routers"])


@pytest.mark.thorough
def test_observers_come_late_and_leave_early() -> None:
    result = observed(observers=[{}, {"join_ms": 100}, {"join_ms": 50, "leave_ms": 200}])
    assert result.failures == []
    seen = result.decisions["observed"]
    assert seen["observer 0"] == [1, 29]
    assert 5 < seen["observer 1"][0] < 20 and seen["observer 1"][1] == 29
    assert 2 < seen["observer 2"][0] < seen["observer 2"][1] < 25
    # Nobody else lost a push over that, nor over the epochs that have gone by.
    assert result.metrics["probes"] == 0


@pytest.mark.commit_cases(3)
@pytest.mark.parametrize("join_ms", [60, 95, 99, 101, 104, 300])
def test_observers_that_come_for_the_end_end(join_ms: int) -> None:
    """Of 10 versions in 110 ms; who comes later has seen nothing."""
    workload = {"peers": 3, "rounds": 10, "values": 192, "observers": [{"join_ms": join_ms}]}
    result = run(workload=workload, timing=TIMING, topology={"kind": "star:4"})
    assert result.failures == []
    seen = result.decisions["observed"]["observer 0"]
    assert (seen[-1:] == [9]) == (join_ms < 95) or not seen


@pytest.mark.thorough
def test_a_killed_observer_is_forgotten_and_the_others_go_on() -> None:
    kill = [{"fault": "agent-stop", "at_ms": 100, "agent": "observer 0"}]
    alive, dead = observed(observers=[{}]), observed(observers=[{}], faults=kill)
    assert dead.failures == []
    assert len(dead.tables["versions"]) == 30
    assert dead.metrics["probes"] == alive.metrics["probes"] == 0
    received = {name: _to_observer(result) for name, result in (("alive", alive), ("dead", dead))}
    # An epoch, or two, after its death nothing is sent to it any more.
    versions_in_two_epochs = 2 * EPOCH_MS / 10
    most = (100 / 10 + versions_in_two_epochs + 2) * 6 * 2
    assert received["dead"] < most < received["alive"]


def _to_observer(result: TrialResult) -> int:
    """Packets on the link to the observer."""
    (name,) = result.decisions["observers"]
    return sum(row["packets"] for row in result.tables["links"] if row["to"] == name)


def test_a_killed_peer_does_not_stop_asynchronous_ones() -> None:
    result = run(
        workload={"kind": "training", "mode": "asynchronous", "peers": 5, "rounds": 12, "hidden_units": 8},
        routers=ROUTERS,
        timing=TIMING,
        faults=[{"fault": "agent-stop", "at_ms": 60, "agent": "peer 2"}],
    )
    assert result.failures == []
    versions = {peer: sum(row["peer"] == peer for row in result.tables["peers"]) for peer in ("peer 1", "peer 2")}
    assert versions["peer 1"] == 12 and versions["peer 2"] < 12


WAITING = {"give_up_ms": 200}


def test_peers_end_without_a_publisher_that_dies() -> None:
    """Each says whom it gave up, and that it has not come to all rounds; answers and deletions go on."""
    result = run(
        workload={**LONG, **WAITING, "observers": [{}]},
        routers=ROUTERS,
        timing=TIMING,
        faults=[{"fault": "agent-stop", "at_ms": 105, "agent": "peer 2"}],
    )
    dead = result.decisions["peers"][2]
    said = [line for line in result.failures if f" of 30 versions: 0.2 s without {dead}" in line]
    assert len(said) == 5 and len(result.failures) == 6  # and one more
    alive = {*(f"peer {index}" for index in (0, 1, 3, 4, 5)), "observer 0"}
    assert result.decisions["gave_up"] == {name: [dead] for name in alive}
    assert 5 < result.metrics["versions"] < 12
    assert len(result.tables["versions"]) <= result.metrics["versions"] + 1
    # An error of agents would have had no result at all; the last version is followed by the wait alone.
    ends = [row["at_s"] for row in result.tables["peers"]]
    assert max(ends) < 0.3


def test_a_publisher_that_is_cut_off_is_a_failure() -> None:
    """No fault stopped it: that training ended early is said, and the run has failed."""
    result = run(
        workload={**LONG, **WAITING, "peers": 3},
        routers=ROUTERS,
        timing=TIMING,
        faults=[{"fault": "link-change", "at_ms": 105, "link": ["e1", "h1"], "change": {"loss": 0.999999}}],
    )
    assert set(result.decisions["gave_up"]) == {"peer 0", "peer 1", "peer 2"}
    assert any(line.startswith("peer 1 ended after") and " s without h1" in line for line in result.failures)


@pytest.mark.thorough
def test_a_restarted_router_gets_its_subscriptions_back() -> None:
    """From those who miss pushes, not in the next epoch, which this run does not come to."""
    for switch in ("e1", "c1", "a1"):
        result = run(
            workload={**LONG, "rounds": 16},
            timing=TIMING,
            faults=[{"fault": "switch-restart", "at_ms": 105, "switch": switch}],
        )
        assert result.failures == []
        assert len(result.tables["versions"]) == 16
        # At most a version of five others to each of six peers had to be asked for.
        assert 0 < 16 * result.metrics["recoveries"] <= 6 * 5 * 2


def test_a_path_around_a_link_that_went_down() -> None:
    result = run(
        workload=LONG,
        routers=ROUTERS,
        timing=TIMING,
        faults=[{"fault": "link-down", "at_ms": 105, "link": ["a1", "c1"]}],
    )
    assert result.failures == []
    assert len(result.tables["versions"]) == 30


def test_peers_do_not_wait_for_one_that_died_before_it_had_subscribed() -> None:
    slow_links = {"kind": "star:3", "link": {"delay_us": 10_000}}
    stop = [{"fault": "agent-stop", "at_ms": 5, "agent": "peer 1"}]
    with pytest.raises(UserError, match=r"no acknowledgement in 0\.2 s|not all peers have subscribed after 0\.4 s"):
        run(topology=slow_links, workload={"peers": 3, "rounds": 2, **WAITING}, faults=stop)


@pytest.mark.thorough
def test_who_begins_late_has_what_came_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others may have pushed their first versions by the time that an agent hears that training begins."""
    wait = NdnNode.wait_for_all

    def late(self: NdnNode, times: int) -> bool:
        begun = wait(self, times)
        if self.own == 0:
            self.serve_until(lambda: False, self.context.now_us() + 20_000)
        return begun

    monkeypatch.setattr(NdnNode, "wait_for_all", late)
    for workload in ({}, {"kind": "training", "mode": "asynchronous", "hidden_units": 8}):
        result = run(workload={"peers": 3, "rounds": 2, **WAITING, **workload}, timing={"compute_us": 1000})
        assert result.failures == []
        assert result.metrics["probes"] == 0


@pytest.mark.thorough
def test_subscriptions_last_where_links_are_slow() -> None:
    """Epochs are stretched like all times: at a fiftieth of the rates insertions wait long in queues, and still come
    in time."""
    result = run(
        factor=0.02,
        topology={"kind": "star:6", "link": {"rate_mbps": 100, "queue_packets": 1000}},
        workload={"exchange": "unicast", "peers": 6, "values": 9600, "rounds": 2},
        routers=ROUTERS,
    )
    assert result.failures == []


@pytest.mark.thorough
def test_recovery_takes_as_long_at_a_slower_scale() -> None:
    """Timers of peers and of routers are stretched alike."""
    link = {"rate_mbps": 100, "delay_us": 50, "queue_packets": 1000, "loss": 0.05}
    sections = {"topology": {"kind": "fat-tree:4", "link": link}, "workload": {"rounds": 2, "peers": 16}}
    nominal, slower = (run(factor=factor, **sections) for factor in (1.0, 0.05))
    assert nominal.failures == slower.failures == []
    ratio = float(slower.metrics["recovery_time_s"]) / float(nominal.metrics["recovery_time_s"])
    # The mean has a long tail; a timer that stays as it is makes it many times as long, or as short.
    assert 0.6 < ratio < 1.6


@pytest.mark.thorough
def test_rows_may_age_where_insertions_are_lost() -> None:
    """With many short epochs rows are made more often than deleted, and that is no failure."""
    result = run(
        topology={"kind": "fat-tree:4", "link": {"rate_mbps": 100, "loss": 0.05}},
        workload={"peers": 6, "values": 192, "rounds": 20},
        routers=ROUTERS,
    )
    assert result.failures == []
    assert rows(result, "subscriptions_made") > rows(result, "subscriptions_ended")


def test_a_link_that_begins_to_double_packets_is_no_miscount() -> None:
    links = [("h1", "s1"), ("h2", "s1"), ("h3", "s1")]
    doubled = [{"fault": "link-change", "link": link, "change": {"duplicate": 0.2}, "at_ms": 0} for link in links]
    workload = {"peers": 3, "rounds": 5, "values": 1920}
    result = run(workload=workload, timing=TIMING, topology={"kind": "star:4"}, faults=doubled)
    assert result.failures == []
    assert sum(row["duplicates"] for row in result.tables["links"] if row["from"] == "h1") > 0
