"""Systems draw nothing where they say so: two seeds give the same metrics (aggregation:
tests/unit/experiments/figures/test_aggregation_chance.py)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gradbed.experiments.systems import find_system
from gradbed.experiments.systems.interconnect.configuration import InterconnectConfiguration
from gradbed.experiments.systems.workload.configuration import WorkloadConfiguration
from tests.examples import examples
from tests.unit.trials import differing_metrics, differing_tables
from tests.unit.workload.runs import OWN, ROUTES

NDN = {"peers": 3, "rounds": 2}
COMPRESSION = {"workers": 3, "rounds": 3, "values": 4000}


@pytest.mark.commit_cases(2)
@pytest.mark.parametrize(
    ("system", "sections"),
    [
        *(("ndn", {"workload": {**NDN, "exchange": exchange}}) for exchange in ("push", "pull", "ring")),
        *(
            ("compression", {"workload": COMPRESSION, "compression": {"compress": compress}})
            for compress in ("none", "quantise:8", "powersgd:2")
        ),
    ],
)
def test_two_seeds_give_the_same(system: str, sections: dict[str, Any]) -> None:
    assert differing_metrics(system, topology={"kind": "star:4"}, **sections) == []


REGULAR = {"arrivals": "on-off", "bursts": "constant", "sizes": "fixed"}
FEW = settings(max_examples=examples(20), derandomize=True, suppress_health_check=list(HealthCheck), deadline=None)


@st.composite
def sections_of(draw: st.DrawFn, system: str) -> dict[str, Any]:
    """Of a small trial, mostly such that nothing is drawn, but for one thing perhaps."""
    traffic = {
        **REGULAR,
        "pattern": draw(st.sampled_from(["all-to-all", "stride:1", "incast", "hotspot:0.3", "permutation"])),
        "duration_ms": 4.0,
        "on_us": draw(st.sampled_from([100.0, 700.0])),
        **draw(st.sampled_from([{}, {"arrivals": "constant"}, {"sizes": "uniform"}])),
    }
    loss = draw(st.sampled_from([0, 0, 0, 0.1]))
    link = {"rate_mbps": 100, "queue_packets": draw(st.sampled_from([2, 100])), "loss": loss}
    if system == "interconnect":
        policy = draw(st.sampled_from(["fixed-plane", "fixed-plane", "ecmp"]))
        topology = {"kind": "optical-electrical:2", "link": link}
        return {"topology": topology, "traffic": traffic, "routing": {"policy": policy}}
    if system == "workload":
        program = {"path": OWN, "macros": draw(st.sampled_from([[], ["TAGGED"]]))}
        return {"topology": {"kind": "star:3", "link": link}, "traffic": traffic, "program": program}
    storage = draw(st.sampled_from([1.0, 1.0, 0.5]))
    training = {"train": draw(st.sampled_from([False, False, True])), "hidden_units": 0}
    samples = {"samples": 30, "storage": storage, "data": draw(st.sampled_from(["digits", "synthetic"]))}
    return {"topology": {"kind": "star:4", "link": link}, "samples": samples, "training": training}


@pytest.mark.commit_cases(1)
@pytest.mark.parametrize("system", ["interconnect", "workload", "shuffle"])
def test_nothing_is_drawn_where_no_chance_is_told(system: str, tmp_path: Path) -> None:
    """Of configurations at random: all tables are those of another seed, too."""
    entries = tmp_path / "entries.yaml"
    entries.write_text(ROUTES)
    told: Counter[bool] = Counter()

    @FEW
    @given(sections_of(system))
    def same_for_two_seeds(sections: dict[str, Any]) -> None:
        if system == "workload":
            sections = {**sections, "program": {**sections["program"], "entries_file": entries}}
        by_chance = find_system(system).configuration.model_validate({"clock": "virtual", **sections}).chance()
        told[bool(by_chance)] += 1
        if not by_chance:
            assert differing_tables(system, **sections) == []

    same_for_two_seeds()
    assert told[True] and told[False]


@pytest.mark.parametrize(
    ("source", "is_drawn"),
    [
        ("random(meta.coin, 0, 1);", True),
        ("random<bit<8>>(meta.coin, 8w0, 8w1);", True),
        ("bit<8> random = 1;", False),
        ("extern void random<T>(out T result, in T lo, in T hi);", False),
    ],
)
def test_a_program_that_draws_is_chance(tmp_path: Path, source: str, is_drawn: bool) -> None:
    """Also in what it includes."""
    (tmp_path / "part.p4").write_text(f"{source}\n")
    program = tmp_path / "program.p4"
    program.write_text('#include <v1model.p4>\n#include "part.p4"\n')
    section = {"path": program, "entries_file": program}
    configuration = WorkloadConfiguration.model_validate({"program": section, "traffic": REGULAR})
    assert configuration.chance() == (("what programs draw",) if is_drawn else ())


def test_what_is_drawn_is_told() -> None:
    """Each alone: other seeds would give other results."""
    for section, words in (
        ({"traffic": {**REGULAR, "pattern": "permutation"}}, ("traffic", "ways")),
        ({"traffic": REGULAR, "routing": {"policy": "fixed-plane"}}, ()),
        ({"traffic": {"arrivals": "constant"}, "routing": {"policy": "fixed-plane"}}, ("traffic",)),
    ):
        configuration = InterconnectConfiguration.model_validate({"clock": "virtual", **section})
        assert configuration.chance() == words
