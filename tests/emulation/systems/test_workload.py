"""A program of one's own under traffic on the real clock: Mininet, agents that are processes, the kernel's stamps."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from gradbed.switch.shims import write_shims
from tests.command import gradbed
from tests.csv_files import read_csv
from tests.emulation.sandboxed import TIMEOUT_S, in_sandbox
from tests.unit.workload.runs import OWN, ROUTES, run, table
from tests.unit.workload.test_addressing import FLOODED, LEARNING

pytestmark = [pytest.mark.thorough, pytest.mark.root]

SECTIONS: dict[str, Any] = {
    "clock": "real",
    "topology": {"kind": "star:3", "link": {"rate_mbps": 10, "delay_us": 2000}},
    "traffic": {"packets": 200, "load": 0.3, "frame_bytes": 500},
    "samples": {"interval_us": 50_000, "links": ["s1-h1"]},
}

DELIVERED = """
tables:
  routes:
    - routes: shortest
      match: {hdr.ipv4.dst_addr: $dst_ip}
      action: deliver
      params: {port: $port, dst_mac: $next_mac}
"""
"""Kernels take in frames to their own MAC address alone."""

THREE_SWITCHES: dict[str, Any] = {
    **SECTIONS,
    "topology": {**SECTIONS["topology"], "kind": "leaf-spine:2,1,1"},
    "samples": {},
}


@in_sandbox
def test_one_trial_on_the_real_clock(tmp_path: Path) -> None:
    result = run(tmp_path, program={"registers": ["seen"]}, expect={"register:seen[1]": 200}, **SECTIONS)
    assert list(result.failures) == []
    assert (result.metrics["sent_packets"], result.metrics["received_packets"]) == (200, 200)
    assert [result.metrics[name] for name in ("duplicates", "reordered", "no_entry_drops")] == [0, 0, 0]
    # Two links of 2 ms and 0.4 ms each: stamps are of one clock, and nothing is faster than its links.
    assert float(str(result.metrics["p50_us"])) > 4800
    assert result.tables["link_samples"]


@in_sandbox
def test_coverage_is_that_of_the_virtual_clock(tmp_path: Path) -> None:
    """The same packets reach the same: pass by pass, in every switch, with as many hits."""
    sections = {**THREE_SWITCHES, "program": {"coverage": True}}
    real = run(tmp_path, **sections)
    virtual = run(tmp_path, **{**sections, "clock": "virtual"})
    assert not real.failures and real.metrics["covered_statements"] == virtual.metrics["covered_statements"]
    # Entries are installed in any order.
    found, expected = (
        {(row["category"], row["name"]): row for row in table(each, "coverage")} for each in (real, virtual)
    )
    assert found == expected
    assert "own.p4" in (tmp_path / "coverage.html").read_text()


@in_sandbox
def test_a_packet_is_followed_through_processes(tmp_path: Path) -> None:
    result = run(tmp_path, program={"trace": "dst=h2 and nth=3"}, **THREE_SWITCHES)
    rows = table(result, "trace")
    assert [row["switch"] for row in rows] == ["l1", "s1", "l2"], [(row["switch"], row["time_us"]) for row in rows]
    times = [row["time_us"] for row in rows]
    assert times == sorted(times) and times[0] > 0, times
    assert all("OwnIngress.routes" in row["text"] for row in rows)


@pytest.mark.nightly
@in_sandbox
def test_rounds_and_packets_share_the_links(tmp_path: Path) -> None:
    result = run(tmp_path, **{**SECTIONS, "background": {"workers": ["all"], "values": 500}})
    assert list(result.failures) == [] and int(str(result.metrics["background_rounds"])) > 1
    assert (result.metrics["sent_packets"], result.metrics["received_packets"]) == (200, 200)


@in_sandbox
def test_tcp_of_the_kernel(tmp_path: Path) -> None:
    """What is sent arrives, whole; links are full, and no fuller."""
    traffic = {"transport": "tcp", "pattern": "pairs", "packets": None, "duration_ms": 1000, "flows": 2}
    result = run(tmp_path, DELIVERED, **{**SECTIONS, "traffic": traffic, "samples": {}})
    (pair,), flows = table(result, "pairs"), table(result, "flows")
    assert (pair["sender"], pair["receiver"], pair["connections"], len(flows)) == ("h1", "h2", 2, 2)
    assert result.metrics["unfinished_flows"] == 0 and "loss" not in result.metrics
    assert sum(row["received_bytes"] for row in flows) == pair["received_bytes"] > 100_000
    assert 0 < float(str(result.metrics["throughput_bps"])) < 10e6
    # Two links of 2 ms, twice.
    assert float(str(result.metrics["rtt_us"])) > 8000


@pytest.mark.nightly
@in_sandbox
def test_flows_of_published_sizes_are_connections(tmp_path: Path) -> None:
    traffic = {"transport": "tcp", "sizes": "web-search", "most_flow_kbytes": 50, "packets": 6, "load": 0.5}
    result = run(tmp_path, DELIVERED, **{**SECTIONS, "traffic": traffic, "samples": {}})
    flows = table(result, "flows")
    assert len(flows) == 6 and all(row["received_bytes"] == row["bytes"] <= 50_000 for row in flows)
    assert 4000 < float(str(result.metrics["flow_p50_us"])) <= float(str(result.metrics["flow_p99_us"]))


@pytest.mark.nightly
@in_sandbox
def test_connections_that_never_come_to_be_are_told(tmp_path: Path) -> None:
    traffic = {"transport": "tcp", "pattern": "pairs", "packets": 10}
    result = run(tmp_path, "tables: {}\n", **{**SECTIONS, "traffic": traffic, "samples": {}})
    assert result.metrics["unfinished_flows"] == 1 and result.metrics["throughput_bps"] is None
    assert "1 connections did not carry" in str(table(result, "notes")) and "MAC" in str(table(result, "notes"))


@pytest.mark.skipif(shutil.which("iperf3") is None, reason="iperf3 is not installed")
@pytest.mark.nightly
@in_sandbox
def test_iperf3(tmp_path: Path) -> None:
    traffic = {"transport": "iperf3", "pattern": "incast", "packets": None, "duration_ms": 500, "flows": 2}
    result = run(tmp_path, DELIVERED, **{**SECTIONS, "traffic": traffic, "samples": {}})
    pairs = {(row["sender"], row["receiver"]): row for row in table(result, "pairs")}
    assert set(pairs) == {("h2", "h1"), ("h3", "h1")}
    assert all(row["received_bytes"] > 50_000 for row in pairs.values())
    assert 0 < float(str(result.metrics["throughput_bps"])) < 10e6


@pytest.mark.nightly
@in_sandbox
def test_packets_that_recirculate_for_ever_fail_the_run(tmp_path: Path) -> None:
    result = run(tmp_path, **{**SECTIONS, "program": {"macros": ["ENDLESS"]}, "traffic": {"packets": 3}})
    assert "s1 recirculated" in result.failures[0] and "without end?" in result.failures[0]
    assert result.metrics["sent_packets"] == 3


@pytest.mark.nightly  # the next test sees what kernels send, too
@in_sandbox
def test_kernels_answer_nothing_that_comes_to_their_own_addresses(tmp_path: Path) -> None:
    """No "port unreachable": all that hosts send is what their agents send."""
    result = run(tmp_path, DELIVERED, **SECTIONS)
    assert list(result.failures) == [] and result.metrics["foreign_frames"] == 0
    assert (result.metrics["sent_packets"], result.metrics["received_packets"]) == (200, 200)


@in_sandbox
def test_templates_are_counted_beside_what_kernels_send(tmp_path: Path) -> None:
    result = run(tmp_path, DELIVERED, frames={"template": "Ether()/IP(dst=$dst)/TCP(dport=7)"}, **SECTIONS)
    assert list(result.failures) == [] and result.metrics["foreign_frames"] == 0
    assert (result.metrics["sent_packets"], result.metrics["received_packets"]) == (200, 200)


@pytest.mark.nightly
def test_two_kinds_of_switches_under_the_same_packets(tmp_path: Path) -> None:
    """By the command line, with our own executable of BMv2's name and arguments in BMv2's place."""
    write_shims(tmp_path / "bin")
    (tmp_path / "entries.yaml").write_text(ROUTES)
    words = f"run workload {OWN} --entries {tmp_path}/entries.yaml --clock real --switch bmv2,gradbed --scale 1"
    network = "--topology star:2 --rate-mbps 10 --delay-us 0 --packets 60 --expect loss=0"
    shims = {"GRADBED_BMV2": tmp_path / "bin" / "simple_switch_grpc"}
    outcome = gradbed(*words.split(), *network.split(), "--output", tmp_path, timeout_s=TIMEOUT_S, **shims)
    if "no HTB" in outcome.stderr:
        pytest.skip("this kernel has no HTB")
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    rows = {row["metric"]: row for row in read_csv(tmp_path / "workload" / "latest" / "comparison.csv")}
    received = rows["received_packets"]
    assert (received["first"], received["mean_of_first"]) == ("bmv2", "60.0")
    assert (received["other"], received["mean_of_other"], received["difference"]) == ("gradbed", "60.0", "0.0")
    # BMv2 does not tell why it drops.
    assert "program_drops" not in rows


@pytest.mark.nightly  # tests/unit/workload/test_addressing.py has it on the virtual clock
@in_sandbox
def test_a_learning_switch(tmp_path: Path) -> None:
    """As on the virtual clock (tests/unit/workload/test_addressing.py)."""
    topology = {**SECTIONS["topology"], "kind": "leaf-spine:2,1,2", "addressing": "l2"}
    program = {"path": LEARNING}
    result = run(tmp_path, FLOODED, **{**SECTIONS, "topology": topology, "program": program, "samples": {}})
    assert list(result.failures) == []
    found = [result.metrics[name] for name in ("sent_packets", "received_packets", "duplicates")]
    assert found == [200, 200, 0]
    # Two copies of each packet, had nothing been learned; hosts begin at different times on a busy machine.
    assert 0 < int(str(result.metrics["misdelivered"])) < 300
