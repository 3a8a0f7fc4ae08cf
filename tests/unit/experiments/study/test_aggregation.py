"""The aggregation system's sections: what they become, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from experiments.scale import Scale
from experiments.system import PointTask
from experiments.systems.aggregation.point import emulated_config, jain_index
from experiments.systems.aggregation.system import AggregationConfiguration, AggregationSystem, TrainingWorkload


def configuration(**sections: Any) -> AggregationConfiguration:
    return AggregationConfiguration.model_validate(sections)


def test_rates_and_times_are_emulated_and_counts_stay() -> None:
    made = configuration(
        topology={"link": {"rate_mbps": 100, "delay_us": 50}, "tiers": {"host": {"rate_mbps": 50, "delay_us": 7}}},
        switches={"placement": "greedy", "maximum": 3, "capacity_mbps": 80, "slots": 77},
        workload={"min_timeout_us": 10_000, "window_fragments": 9, "workers": 5},
    )
    scale = Scale(0.2)
    config = emulated_config(made, PointTask(made, seed=4, scale=scale, folder=Path()))
    assert (config.min_timeout_ms, config.switch_capacity_mbps) == (50, 16.0)
    assert (config.window, config.slots, config.workers, config.seed) == (9, 77, 5, 4)
    assert (config.placement, config.programmable) == ("greedy", 3)
    topology = made.topology.build(scale)
    models = {link.model.rate_bps: link.model.delay_us for link in topology.links}
    assert models == {20_000_000: 250, 10_000_000: 35}


def test_placements_that_do_not_choose_are_not_asked_for_a_number() -> None:
    made = configuration(switches={"placement": "every-tor", "maximum": 3})
    assert emulated_config(made, PointTask(made, 1, Scale(), Path())).programmable is None
    assert made.canonical() == configuration(switches={"placement": "every-tor", "maximum": 1}).canonical()
    ring = [configuration(workload={"exchange": "ring"}, switches={"placement": name}) for name in ("greedy", "none")]
    assert ring[0].canonical() == ring[1].canonical()
    greedy = configuration(switches={"maximum": 3})
    assert greedy.canonical() != configuration(switches={"maximum": 1}).canonical()
    # Without further switches every method leaves the server's ToR alone.
    alone = configuration(switches={"placement": "random", "maximum": 0}).canonical()
    assert alone == configuration(switches={"placement": "server-tor"}).canonical()
    # Of several jobs each may use the ToRs of the others' servers then.
    two = configuration(switches={"placement": "random", "maximum": 0}, workload={"jobs": 2, "workers": 3})
    assert two.canonical() == two


def test_a_workload_is_synthetic_unless_said() -> None:
    assert configuration(workload={"values": 7}).workload.kind == "synthetic"
    assert isinstance(configuration(workload={"kind": "training"}).workload, TrainingWorkload)
    with pytest.raises(ValidationError):
        configuration(workload={"hidden_units": 7})


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({"workload": {"workers": 16}}, "1 job(s) of 16 workers and a server need 17 hosts, fat-tree:4 has 16"),
        ({"workload": {"jobs": 4, "workers": 4}}, "need 20 hosts"),
        ({"switches": {"maximum": 21}}, "switches.maximum is 21, but fat-tree:4 has 20 switches"),
    ],
)
def test_what_a_network_is_too_small_for(sections: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=r"need|has") as caught:
        AggregationSystem().check(configuration(**sections))
    assert message in str(caught.value)


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
