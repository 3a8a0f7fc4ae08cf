"""The aggregation system's sections: what they become, and what is refused before anything runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from gradbed.common.errors import UserError
from gradbed.controller.systems.aggregation.service import AggregationJobRequest, AggregationSettings
from gradbed.experiments.scale import Scale
from gradbed.experiments.setup import TrialTask
from gradbed.experiments.systems.aggregation.configuration import (
    AggregationConfiguration,
    AggregationTrainingWorkload,
)
from gradbed.experiments.systems.aggregation.metrics import jain_index
from gradbed.experiments.systems.aggregation.system import AggregationSystem
from gradbed.experiments.systems.aggregation.trial import AggregationTrial, phases_of


def configuration(**sections: Any) -> AggregationConfiguration:
    return AggregationConfiguration.model_validate(sections)


def trial(made: AggregationConfiguration, scale: Scale, seed: int = 4) -> AggregationTrial:
    return AggregationSystem().trial(TrialTask(made, seed, scale, Path()))


ANSWER = {"job": 7, "designations": [[], []], "multicast": [], "slot_policy": "dynamic", "slots": None}


def test_rates_and_times_are_emulated_and_counts_stay() -> None:
    made = configuration(
        topology={
            "kind": "star:3",
            "link": {"rate_mbps": 100, "delay_us": 50},
            "tiers": {"host": {"rate_mbps": 50, "delay_us": 7}},
        },
        switches={"placement": "lp", "named": [], "capacity_mbps": 80, "slots": 77, "congestion_packets": 0},
        workload={"min_timeout_us": 10_000, "window_fragments": 9, "workers": 2, "values": 70, "rounds": 2},
    )
    planned = trial(made, Scale(0.2))
    (phase,) = planned.phases
    (request,) = phase.requests
    assert isinstance(request, AggregationJobRequest)
    assert request.switch_capacity_mbps == 16.0
    phase.agents([ANSWER])
    (job,) = phase.configs
    assert (job.min_timeout_us, job.window_fragments, job.job) == (50_000, 9, 7)
    settings = planned.network.settings
    assert isinstance(settings, AggregationSettings)
    assert (settings.slots, settings.congestion_packets) == (77, None)
    models = {(link.model.rate_bps, link.model.delay_us) for link in planned.network.topology.links}
    assert models == {(10_000_000, 35)}


def test_a_window_reaches_no_further_than_a_range_of_slots_of_ones_own() -> None:
    """Packet numbers take turns in the range, so what is unacknowledged may reach across all of it."""
    made = configuration(
        topology={"kind": "star:3"},
        switches={"placement": "server-tor", "slot_policy": "static", "slots": 8},
        workload={"workers": 2, "values": 70, "rounds": 1, "window_fragments": 32},
    )
    (phase,) = trial(made, Scale()).phases
    for policy, slots, window, span in (
        ("static", 8, 8, 8),
        ("static", 4096, 32, 4096),
        ("static", None, 32, None),
        ("dynamic", 8, 32, None),
    ):
        phase.agents([{**ANSWER, "slot_policy": policy, "slots": slots}])
        config = phase.configs[0]
        assert (config.window_fragments, config.span_fragments) == (window, span)


def test_placements_that_do_not_choose_are_not_asked_for_a_number() -> None:
    made = configuration(switches={"placement": "every-tor", "programmable": 3})
    topology = made.topology.build(Scale())
    assert made.switches.planner_options(topology, 1, Scale()).programmable is None
    assert made.canonical() == configuration(switches={"placement": "every-tor", "programmable": 1}).canonical()
    ring = [configuration(workload={"exchange": "ring"}, switches={"placement": name}) for name in ("greedy", "none")]
    assert ring[0].canonical() == ring[1].canonical()
    greedy = configuration(switches={"programmable": 3})
    assert greedy.canonical() != configuration(switches={"programmable": 1}).canonical()
    # Without further switches every method leaves the server's ToR alone.
    alone = configuration(switches={"placement": "random", "programmable": 0}).canonical()
    assert alone == configuration(switches={"placement": "server-tor"}).canonical()
    # Of several jobs each may use the ToRs of the others' servers then.
    two = configuration(switches={"placement": "random", "programmable": 0}, workload={"jobs": 2, "workers": 3})
    assert two.canonical() == two


def test_at_most_so_many_switches_may_be_more_than_there_are() -> None:
    made = configuration(topology={"kind": "star:9"}, switches={"programmable": 2, "legacy": "p4"})
    AggregationSystem().check(made)
    runs = {
        name: getattr(program, "name", program) for name, program in trial(made, Scale()).network.switches.items()
    }
    assert runs == {"s1": "aggregation"}


def test_a_workload_is_synthetic_unless_said() -> None:
    assert configuration(workload={"values": 7}).workload.kind == "synthetic"
    assert isinstance(configuration(workload={"kind": "training"}).workload, AggregationTrainingWorkload)
    with pytest.raises(ValidationError):
        configuration(workload={"hidden_units": 7})


@pytest.mark.parametrize(
    ("workload", "placement", "names"),
    [
        ({}, "greedy", ["in-network"]),
        ({}, "none", ["parameter server"]),
        ({"baselines": ["parameter-server"]}, "greedy", ["parameter server", "in-network"]),
        ({"baselines": ["ring", "parameter-server", "ring"]}, "greedy", ["parameter server", "in-network", "ring"]),
        ({"baselines": ["parameter-server"]}, "none", ["parameter server"]),
        ({"exchange": "ring", "baselines": ["parameter-server", "ring", "gloo"]}, "greedy",
         ["parameter server", "ring", "gloo"]),
    ],
)  # fmt: skip
def test_the_server_alone_comes_first_and_nothing_runs_twice(
    workload: dict[str, Any], placement: str, names: list[str]
) -> None:
    made = configuration(workload=workload, switches={"placement": placement})
    assert [name for name, *_ in phases_of(made)] == names
    assert [sums for name, _, sums in phases_of(made)] == [name == "in-network" for name in names]


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({"workload": {"workers": 16}}, "1 job(s) of 16 workers and a server need 17 hosts, fat-tree:4 has 16"),
        ({"workload": {"jobs": 4, "workers": 4}}, "need 20 hosts"),
        ({"topology": {"link": {"rate_mbps": None}}}, "that between h1 and e1 has none: give it one"),
        ({"switches": {"placement": "lp", "named": ["e1"]}}, "e1 is the server's ToR"),
        ({"switches": {"placement": "lp", "named": ["zz"]}}, "no switch 'zz'"),
        ({"switches": {"placement": "explicit", "named": ["h3"]}}, "h3 is a host"),
        ({"switches": {"demand_mbps": 500}}, "cannot be met"),
        ({"switches": {"slot_policy": "static", "slots": 1}, "workload": {"jobs": 2, "workers": 3}}, "static share"),
        ({"clock": "virtual", "switches": {"legacy": "openflow"}}, "Open vSwitch needs the real clock"),
    ],
)
def test_what_cannot_run_is_refused_before_anything_does(sections: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, UserError)) as caught:
        AggregationSystem().check(configuration(**sections))
    assert message in str(caught.value)


@pytest.mark.parametrize("placement", ["shared-path", "none", "explicit"])
def test_links_without_a_rate_go_with_placements_that_do_not_reckon(placement: str) -> None:
    switches = {"placement": placement, **({"named": ["e2"]} if placement == "explicit" else {})}
    AggregationSystem().check(configuration(topology={"link": {"rate_mbps": None}}, switches=switches))


def test_links_of_a_class_of_their_own() -> None:
    made = configuration(topology={"tiers": {"core-aggregation": {"loss": 0.5}, "host": {"queue_packets": 3}}})
    topology = made.topology.build(Scale())
    assert topology.link("c1", "a1").model.loss == 0.5
    assert topology.link("a1", "e1").model.loss == 0
    assert {link.model.queue_packets for link in topology.host_links} == {3}


def test_jain_index() -> None:
    assert jain_index([3, 3, 3]) == pytest.approx(1)
    assert jain_index([5, 0, 0, 0]) == pytest.approx(0.25)
    assert jain_index([1, 2]) == pytest.approx(0.9)
