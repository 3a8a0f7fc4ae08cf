"""What `gradbed run NAME` says and draws beside its table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gradbed.experiments.study.command import chosen_words, network_words, run_system
from gradbed.experiments.study.evaluation.figures import link_loads
from gradbed.experiments.study.running.executors import RunOptions
from gradbed.experiments.systems import find_system
from gradbed.topo.registry import parse_topology

SMALL: dict[str, tuple[dict[str, Any], list[str]]] = {
    "ndn": ({"topology": {"kind": "star:3"}, "workload": {"peers": 3, "rounds": 1}}, ["rounds", "links"]),
    "compression": (
        {"clock": "virtual", "topology": {"kind": "star:3"}, "workload": {"workers": 2, "rounds": 1, "values": 960}},
        ["rounds", "links"],
    ),
    "interconnect": (
        {"clock": "virtual", "topology": {"kind": "optical-electrical:2"}, "traffic": {"packets": 20}},
        ["links"],
    ),
    "training": (
        {"clock": "virtual", "topology": {"kind": "star:3", "link": {"rate_mbps": 1000}}},
        ["timeline", "links"],
    ),
}


@pytest.mark.thorough
@pytest.mark.parametrize("system", SMALL)
def test_a_run_says_what_ran_and_draws(system: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    values, figures = SMALL[system]
    assert run_system(system, values, 1, RunOptions(tmp_path)) == 0
    printed = capsys.readouterr().out
    assert f"ran: {values['topology']['kind']} on the virtual clock: " in printed
    drawn = [Path(line.removeprefix("figure: ")) for line in printed.splitlines() if line.startswith("figure: ")]
    assert [path.name for path in drawn] == [f"{name}.png" for name in figures]
    assert all(path.stat().st_size > 5000 for path in drawn)
    assert "None" not in printed


def test_what_is_otherwise_than_by_default() -> None:
    system = find_system("ndn")
    values = {"topology": {"kind": "star:9"}, "workload": {"kind": "training", "exchange": "ring", "rounds": 2}}
    assert chosen_words(system, system.configuration.model_validate(values)) == "rounds 2, exchange ring"
    usual = system.configuration.model_validate({"workload": {"kind": "training"}})
    assert chosen_words(system, usual) == ""
    assert network_words(usual).startswith("fat-tree:4 on the virtual clock: 16 hosts --16-- 8 edge --16-- 8 aggr")


def test_loads_are_of_both_directions_of_every_link_by_class_and_over_phases() -> None:
    rows = [
        {"phase": "a", "from": "h1", "to": "l1", "bytes": 5},
        {"phase": "b", "from": "h1", "to": "l1", "bytes": 2},
        {"phase": "a", "from": "l1", "to": "s1", "bytes": 3},
    ]
    found = link_loads(rows, parse_topology("leaf-spine:2,1,1"))
    assert found == {"host": [7, 0, 0, 0], "leaf-spine": [3, 0, 0, 0]}
