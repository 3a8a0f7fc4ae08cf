"""Packets that go round, inside a switch or between switches: the run fails, and keeps what was found until then."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.unit.workload.runs import ROUTES, run, table


@pytest.mark.parametrize("kind", ["1", "2"], ids=["recirculate", "resubmit"])
def test_packets_that_go_round_inside_a_switch_fail_the_run(tmp_path: Path, kind: str) -> None:
    result = run(tmp_path, program={"macros": [f"ENDLESS={kind}"]}, traffic={"packets": 1})
    (said,) = result.failures
    assert re.fullmatch(r"after traffic had ended, packets go round in circles, .* clone without end\?", said)
    assert (result.metrics["sent_packets"], result.metrics["received_packets"]) == (1, 0)
    assert len(table(result, "pairs")) == 1


def test_what_arrived_before_packets_go_round_inside_a_switch_is_kept(tmp_path: Path) -> None:
    """Time does not go on any more."""
    macros = ["ENDLESS=2", "RESUBMITS_AFTER=100"]
    result = run(tmp_path, program={"macros": macros}, traffic={"packets": 3000})
    (said,) = result.failures
    assert said.startswith("before traffic had ended, packets go round in circles, more than 10,000,000 events at 0.")
    (switch,) = table(result, "switches")
    assert switch["received"] == 101
    # The others of the hundred wait in queues.
    left = sum(row["packets"] for row in table(result, "links") if row["from"] == "s1")
    assert 90 < left == result.metrics["received_packets"] <= 100
    assert sum(row["received_packets"] for row in table(result, "pairs")) == left


def test_packets_that_are_cloned_without_end_fail_the_run(tmp_path: Path) -> None:
    """Clones leave over a link, and so take time."""
    result = run(tmp_path, f"{ROUTES}clone: {{5: [1]}}", program={"macros": ["ENDLESS=3"]}, traffic={"packets": 1})
    assert "s1 recirculated" in result.failures[0] and "without end?" in result.failures[0]


CIRCLE = """
switches:
  l1: {tables: {routes: [{default_action: forward, params: {port: $to.s1}}]}}
  s1: {tables: {routes: [{default_action: forward, params: {port: $to.l1}}]}}
"""


def test_packets_that_go_round_between_switches_fail_the_run(tmp_path: Path) -> None:
    """What was found until then is kept."""
    result = run(tmp_path, CIRCLE, topology={"kind": "leaf-spine:2,1,1"}, traffic={"packets": 4})
    said, *_ = result.failures
    assert said.startswith("after traffic had ended, packets loop forever: ")
    assert "l1 to s1 carried" in said and "s1 to l1 carried" in said
    assert (result.metrics["sent_packets"], result.metrics["received_packets"]) == (4, 0)
    assert len(table(result, "pairs")) == 2


def test_a_circle_that_ends_is_waited_for(tmp_path: Path) -> None:
    """A time to live of 64 lets packets cross slow links 63 times, 0.8 s each."""
    source = (Path(__file__).parents[3] / "cli" / "templates" / "program" / "program.p4").read_text()
    (tmp_path / "program.p4").write_text(source)
    entries = CIRCLE.replace("$to.s1}", "$to.s1, dst_mac: $s1.mac}").replace("$to.l1}", "$to.l1, dst_mac: $l1.mac}")
    result = run(
        tmp_path,
        entries,
        program={"path": tmp_path / "program.p4"},
        topology={"kind": "leaf-spine:2,1,1", "link": {"rate_mbps": 0.01}},
        traffic={"packets": 5, "pattern": "pairs"},
    )
    assert list(result.failures) == []
    assert (result.metrics["received_packets"], result.metrics["program_drops"]) == (0, 5)


def test_a_queue_that_takes_long_to_drain_is_no_circle(tmp_path: Path) -> None:
    """Half a minute after the last packet was sent."""
    result = run(
        tmp_path,
        topology={"kind": "leaf-spine:2,1,1", "link": {"rate_mbps": 1}, "tiers": {"leaf-spine": {"rate_mbps": 0.05}}},
        traffic={"packets": 200, "pattern": "pairs", "load": 1.0},
    )
    assert list(result.failures) == [] and result.metrics["received_packets"] == 200
    assert float(str(result.metrics["max_us"])) > 30e6
