"""Agents of another system over hybrid and optical switches: a parameter server and a ring."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gradbed.common.errors import UserError
from gradbed.experiments.phases import TrialResult
from gradbed.experiments.systems import find_system
from tests.unit.trials import virtual_trial


def trial(folder: Path, fabric_program: str, **workload: Any) -> TrialResult:
    """Seven workers and a server; rounds of 28 fragments."""
    return virtual_trial(
        "aggregation",
        folder,
        topology={"kind": "optical-electrical:2", "link": {"rate_mbps": 100, "delay_us": 5}},
        switches={"placement": "none", "fabric_program": fabric_program},
        workload={"workers": 7, "rounds": 2, "lanes": 32, "values": 28 * 32, **workload},
    )


@pytest.mark.parametrize("policy", ["least-loaded", "ecmp"])
@pytest.mark.parametrize("exchange", ["server", "ring"])
def test_sums_are_right_and_every_packet_is_accounted_for(tmp_path: Path, exchange: str, policy: str) -> None:
    """Sums that are not bit for bit the reference's, and hosts and links that disagree, would be failures."""
    found = trial(tmp_path, f"interconnect:{policy}", exchange=exchange)
    assert found.failures == []
    assert {row["agrees"] for row in found.tables["hosts"]} == {True}
    links = {(row["from"], row["to"]): row["packets"] for row in found.tables["links"]}
    # What goes into an optical switch comes out again; no light stays in its unit.
    up, down = (sum(count for ends, count in links.items() if ends[side].startswith("a")) for side in (1, 0))
    assert up == down > 0
    worker = next(row for row in found.tables["hosts"] if row["host"] == "h2")
    if exchange == "server":
        assert worker["host_sent_packets"] == 2 * 28
    else:
        # 2 (n - 1) / n gradients of 28 fragments, and as many ACKs at most.
        assert 2 * 2 * 6 * 28 // 7 < worker["host_sent_packets"] <= 2 * 2 * 2 * 6 * 28 // 7


@pytest.mark.parametrize(
    ("fabric_program", "workload", "words"),
    [
        (
            "interconnect:least-load",
            {},
            "--fabric-program: interconnect has no policy 'least-load'; did you mean 'least-loaded'?",
        ),
        ("workload", {}, "--fabric-program: the switches of the system workload carry no other system's packets"),
        ("interconect", {}, "no system is called 'interconect'; did you mean 'interconnect'?"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, fabric_program: str, workload: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError) as caught:
        trial(tmp_path, fabric_program, **workload)
    assert str(caught.value).startswith(words)


def test_its_switches_sum_nothing() -> None:
    system = find_system("aggregation")
    given = {
        "topology": {"kind": "optical-electrical:2"},
        "switches": {"fabric_program": "interconnect"},
        "workload": {"workers": 3},
    }
    with pytest.raises(UserError, match="--fabric-program: its switches sum nothing: take --placement none"):
        system.check(system.configuration.model_validate(given))
