"""Which switches become programmable, and what each job is asked for."""

from __future__ import annotations

import pytest

from gradbed.common.errors import UserError
from gradbed.controller.systems.aggregation.placement.options import PlannerOptions
from gradbed.experiments.programs import FORWARD
from gradbed.experiments.systems.aggregation.configuration import AggregationConfiguration
from gradbed.experiments.systems.aggregation.phase import choose_programmable
from gradbed.experiments.systems.aggregation.trial import programs_of
from gradbed.topo.generators import fat_tree, leaf_spine
from gradbed.topo.link import LinkModel
from gradbed.topo.selectors import choose_hosts_of_jobs

TOPOLOGY = fat_tree(4, LinkModel(rate_bps=10_000_000))


def test_what_one_job_chooses_is_what_the_controller_is_told() -> None:
    hosts = choose_hosts_of_jobs(TOPOLOGY, 1, 8)
    choice = choose_programmable(TOPOLOGY, hosts, PlannerOptions(placement="greedy", programmable=2))
    *chosen, tor = choice.switches
    assert tor == TOPOLOGY.attachment("h1").name
    assert len(chosen) <= 2
    (request,) = choice.requests
    assert (request["placement"], request["switches"]) == ("lp", chosen)
    assert "programmable" not in request


@pytest.mark.parametrize("maximum", [0, 1, 3])
def test_a_limit_holds_for_all_jobs_together(maximum: int) -> None:
    hosts = choose_hosts_of_jobs(TOPOLOGY, 3, 4)
    tors = {TOPOLOGY.attachment(server).name for _, server in hosts}
    choice = choose_programmable(TOPOLOGY, hosts, PlannerOptions(placement="greedy", programmable=maximum))
    assert len(set(choice.switches) - tors) <= maximum
    assert tors <= set(choice.switches)
    for (_, server), request in zip(hosts, choice.requests, strict=True):
        own = TOPOLOGY.attachment(server).name
        # A job also makes use of the other servers' ToRs: they are programmable anyway.
        assert set(request["switches"]) == set(choice.switches) - {own}


def test_placements_without_limit_are_left_to_the_controller() -> None:
    hosts = choose_hosts_of_jobs(leaf_spine(3, 2, 2), 1, 4)
    options = PlannerOptions(placement="explicit", switches=("s2",))
    choice = choose_programmable(leaf_spine(3, 2, 2), hosts, options)
    assert choice.switches == ("s2", "l1")
    assert choice.requests == ({"placement": "explicit", "switches": ["s2"], "seed": 1},)


def test_the_others_are_legacy_switches() -> None:
    topology = leaf_spine(3, 2, 2)
    hosts = choose_hosts_of_jobs(topology, 2, 2)
    choice = choose_programmable(topology, hosts, PlannerOptions(placement="none"))
    tors = {topology.attachment(server).name for _, server in hosts}
    assert set(choice.switches) == tors
    for legacy, program in (("openflow", "openflow"), ("p4", FORWARD)):
        made = AggregationConfiguration.model_validate({"switches": {"legacy": legacy}})
        programs = programs_of(made, topology, set(choice.switches))
        others = {switch.name for switch in topology.switches} - tors
        assert {name: programs[name] for name in others} == dict.fromkeys(others, program)
        assert {getattr(programs[name], "name", None) for name in tors} == {"aggregation"}
    everywhere = programs_of(
        AggregationConfiguration.model_validate({"switches": {"legacy": "none"}}), topology, set(choice.switches)
    )
    assert {getattr(program, "name", None) for program in everywhere.values()} == {"aggregation"}


def test_hosts_that_cannot_be_a_job() -> None:
    with pytest.raises(UserError, match="no host 'h99'"):
        choose_programmable(TOPOLOGY, [(("h99",), "h1")], PlannerOptions(placement="shared-path"))
