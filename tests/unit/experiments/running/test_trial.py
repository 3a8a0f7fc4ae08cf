"""The whole engine on the virtual clock: right sums are told as right, wrong ones as wrong, and all is repeatable."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gradbed.experiments.engine.trial import socket_counts
from gradbed.experiments.results.study_results import StudyResults, load_results
from gradbed.experiments.runtimes.virtual import VirtualMonitor, VirtualRuntime
from gradbed.experiments.study.command import run_system
from gradbed.experiments.study.running.executors import RunOptions
from gradbed.experiments.validity.verdict import ValidityReport
from gradbed.formats.lanes import frame_bytes
from gradbed.hosts.learning import workload
from gradbed.switch.virtual import HostInterface

LANES, ROUNDS, VALUES = 32, 4, 40 * 32


def run(tmp_path: Path, **sections: Any) -> tuple[int, StudyResults]:
    """Exit status, and what is in the run's folder, of `gradbed run aggregation --clock virtual`."""
    values = {
        "clock": "virtual",
        "topology": {"kind": "star:3", **sections.pop("topology", {})},
        "switches": {"placement": "server-tor", **sections.pop("switches", {})},
        "workload": {
            "workers": 2, "rounds": ROUNDS, "lanes": LANES, "values": VALUES,
            "baselines": ["parameter-server", "ring"],
            **sections.pop("workload", {}),
        },
        **sections,
    }  # fmt: skip
    status = run_system("aggregation", values, 1, RunOptions(tmp_path))
    return status, load_results(tmp_path / "aggregation" / "latest")


@pytest.mark.thorough
def test_right_sums_and_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, results = run(tmp_path)
    assert status == 0
    (trial,) = results.trials
    assert trial.failures == []
    assert trial.row["verdict"] == "simulated"
    rounds = results.table("rounds")
    assert [row["phase"] for row in rounds] == [
        name for name in ("parameter server", "in-network", "ring") for _ in range(ROUNDS)
    ]
    # One frame for each fragment instead of one of each worker.
    assert trial.row["server_bytes"] == VALUES / LANES * frame_bytes(LANES)
    assert trial.row["server_share"] == 0.5
    assert trial.row["resends"] == 0
    assert trial.row["wire_throughput_bps"] == pytest.approx(trial.row["throughput_bps"])
    assert all(row["agrees"] for row in results.table("hosts"))
    assert "FAILED" not in capsys.readouterr().out


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("exchange", "placement", "phase", "share"),
    [("server", "none", "parameter server", 1.0), ("ring", "server-tor", "ring", None)],
)
def test_what_is_asked_for_may_be_one_of_the_baselines(
    exchange: str, placement: str, phase: str, share: float | None, tmp_path: Path
) -> None:
    sections = {"switches": {"placement": placement}, "workload": {"exchange": exchange}}
    status, results = run(tmp_path / "both", **sections)
    alone_status, alone = run(
        tmp_path / "alone", switches=sections["switches"], workload={"exchange": exchange, "baselines": []}
    )
    assert (status, alone_status) == (0, 0)
    assert {row["phase"] for row in results.table("rounds")} == {"parameter server", "ring"}
    assert {row["phase"] for row in alone.table("rounds")} == {phase}
    # The metrics are those of what was asked for, however many baselines stand beside it.
    assert results.trials[0].row["throughput_bps"] == alone.trials[0].row["throughput_bps"]
    assert results.trials[0].row["server_share"] == share


@pytest.mark.thorough
def test_every_job_has_a_table_and_a_figure_of_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, results = run(
        tmp_path, topology={"kind": "star:6"}, workload={"jobs": 2, "baselines": ["parameter-server"]}
    )
    assert status == 0
    assert {path.name for path in results.folder.glob("figure*.p*")} == {
        f"figure-job-{number}.{suffix}" for number in (1, 2) for suffix in ("png", "pdf")
    }
    printed = capsys.readouterr().out
    assert "job 1 of 2" in printed and "job 2 of 2" in printed


@pytest.mark.nightly  # and in several processes, to the last byte: test_same_results.py
def test_the_same_run_twice_is_the_same_to_the_last_byte(tmp_path: Path) -> None:
    link = {"loss": 0.02, "duplicate": 0.02, "jitter_us": 20, "reorder": True}
    timing = {"compute_us": 300, "compute_distribution": "exponential"}
    found = []
    for name in ("first", "second"):
        _, results = run(tmp_path / name, topology={"link": link}, timing=timing)
        assert results.trials[0].row["resends"] > 0
        found.append({path.name: path.read_bytes() for path in results.folder.rglob("*.csv")})
    assert {"trials.csv", "rounds.csv", "summary.csv", "hosts.csv", "links.csv", "events.csv"} <= set(found[0])
    assert found[0] == found[1]


def test_the_first_round_is_not_measured(tmp_path: Path) -> None:
    """Its window has yet to grow."""
    _, results = run(tmp_path, workload={"rounds": 2, "baselines": []})
    first_s, second_s = (row["round_time_s"] for row in results.table("rounds"))
    assert first_s > second_s
    assert results.trials[0].row["round_time_s"] == second_s


def test_links_without_a_rate(tmp_path: Path) -> None:
    status, results = run(tmp_path, topology={"link": {"rate_mbps": None}}, switches={"placement": "shared-path"})
    assert status == 0
    row = results.trials[0].row
    assert row["bound_bps"] is None and row["packet_bound_bps"] is None
    assert row["throughput_bps"] > 0


def failures(results: StudyResults) -> list[str]:
    return results.trials[0].failures


@pytest.mark.commit_cases(1)
@pytest.mark.parametrize(("exchange", "phase"), [("server", "in-network"), ("ring", "ring")])
def test_a_lane_that_is_corrupted_on_the_wire_fails_the_run(
    exchange: str, phase: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    send, corrupted = HostInterface.send, []

    def corrupt_once(self: HostInterface, frames: Any, lengths: Any = None) -> int:
        sent = np.ascontiguousarray(frames).copy()
        rows = sent.view(np.uint8).reshape(len(sent), -1)
        if rows.shape[1] == frame_bytes(LANES) and not corrupted:
            rows[0, -1] ^= 1
            corrupted.append(self)
        return send(self, sent, lengths)

    monkeypatch.setattr(HostInterface, "send", corrupt_once)
    status, results = run(tmp_path, workload={"exchange": exchange, "baselines": []})
    assert corrupted
    assert status == 1
    said = failures(results)
    # Both workers got the wrong sum, in one round.
    assert len(said) == 2
    assert {line.split(": ")[0] for line in said} == {f"{phase}, round 1, worker {n}" for n in (0, 1)}
    assert all(" instead of the reference's " in line for line in said)
    assert f"FAILED: {said[0]}" in capsys.readouterr().out


@pytest.mark.thorough
def test_a_worker_that_computes_a_wrong_gradient_fails_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = workload.synthetic_gradient

    def wrong(settings: Any, worker: int, round_number: int) -> Any:
        values = right(settings, worker, round_number).copy()
        values[-1] += worker == 1 and round_number >= 1
        return values

    monkeypatch.setattr(workload, "synthetic_gradient", wrong)
    status, results = run(tmp_path)
    assert status == 1
    said = failures(results)
    for phase in ("parameter server", "in-network", "ring"):
        own = [line for line in said if line.startswith(f"{phase}, ")]
        # All rounds but the first, of two workers; five lines are told.
        assert [line.split(", ")[1] for line in own] == ["round 2", "round 2", "round 3", "round 3", "round 4"]
    assert said.count("and 1 more") == 3


def test_a_packet_that_no_host_counted_fails_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though all sums are right."""
    send, repeated = HostInterface.send, []

    def repeat_once(self: HostInterface, frames: Any, lengths: Any = None) -> int:
        if not repeated:
            repeated.append(send(self, frames[:1], None if lengths is None else lengths[:1]))
        return send(self, frames, lengths)

    monkeypatch.setattr(HostInterface, "send", repeat_once)
    status, results = run(tmp_path, workload={"baselines": []})
    assert status == 1
    assert failures(results)
    assert {line for line in failures(results) if "its switch counted" not in line} == {
        "in-network, h2: it sent 160 packets of class gradient, its link got 161",
        "in-network, s1 counted 321 outcomes of designated gradients, 320 came to it",
    }
    assert len(failures(results)) > 1


def test_what_sockets_dropped_is_of_all_interfaces_of_all_agents() -> None:
    final = {
        (1, "server"): {"interfaces": {"h1-eth0": {"drops": 2, "received_frames": 10}}},
        (2, "worker 0"): {
            "interfaces": {
                "h2-eth0": {"drops": 1, "received_frames": 5},
                "h2-eth1": {"drops": 0, "received_frames": 4},
            }
        },
        (2, "worker 1"): {},
    }
    assert socket_counts(final) == (3, 22)


def test_frames_that_sockets_dropped_reach_the_verdict_and_the_accounts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop, told = VirtualRuntime.stop_agents, []

    def drop(self: VirtualRuntime) -> Mapping[tuple[int, str], Any]:
        final = stop(self)
        for each in final[next(key for key in final if key[1] == "server")]["interfaces"].values():
            each["drops"] += 2
            each["received_frames"] -= 2
        return final

    def report(self: VirtualMonitor, socket_drops: int, socket_packets: int) -> ValidityReport:
        told.append((socket_drops, socket_packets))
        return ValidityReport(verdict="simulated")

    monkeypatch.setattr(VirtualRuntime, "stop_agents", drop)
    monkeypatch.setattr(VirtualMonitor, "report", report)
    run(tmp_path, workload={"baselines": []})
    ((drops, packets),) = told
    assert drops == 2
    assert packets > 2 * ROUNDS * VALUES / LANES
