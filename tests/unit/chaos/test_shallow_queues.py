"""Queues from one packet on, and links of unequal rates and delays: a run comes to its end, and is right."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from experiments.configuration.faults import Fault, LinkChange
from experiments.study.chaos import Verdict
from tests.unit.chaos.schedules import Places
from tests.unit.chaos.search import Searched, judge
from tests.unit.chaos.systems import SYSTEMS

FEW, MANY = 1, 1000
BOUND_S = 1200.0
"""Of the network's time: behind a queue of one packet most packets wait for a timer, many times over."""
of_every_transport = pytest.mark.parametrize(
    "searched",
    [each for each in SYSTEMS if each.system not in ("interconnect", "workload")],
    ids=lambda searched: searched.system,
)
"""The two others only count what arrives."""


def networks(places: Places) -> st.SearchStrategy[tuple[Fault, ...]]:
    """Each link's queue, rate and delay, from the beginning."""
    change = st.fixed_dictionaries(
        {
            "queue_packets": st.integers(1, 4),
            "rate_mbps": st.sampled_from([5, 20, 100, 300]),
            "delay_us": st.sampled_from([10, 100, 1000, 5000]),
        }
    )
    return st.tuples(*(change.map(lambda found, link=link: _changed(link, found)) for link in places.links))


def _changed(link: tuple[str, str], change: dict[str, int]) -> Fault:
    return LinkChange.model_validate({"fault": "link-change", "link": link, "change": change, "at_ms": 0})


def search(searched: Searched, count: int, same: bool) -> Counter[Verdict]:
    """Draw this many networks. same: the same ones in each run."""
    found: Counter[Verdict] = Counter()

    @settings(
        max_examples=count,
        derandomize=same,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
    )
    @given(networks(searched.places))
    def ends_right(faults: tuple[Fault, ...]) -> None:
        found[judge(searched, faults, BOUND_S).verdict] += 1

    ends_right()
    return found


@pytest.mark.commit_cases(1)
@of_every_transport
def test_no_shallow_queue_starves_a_run(searched: Searched) -> None:
    assert search(searched, FEW, same=True)["right"] == FEW


@pytest.mark.slow
@of_every_transport
def test_no_shallow_queue_of_1000_networks_starves_a_run(searched: Searched) -> None:
    found = search(searched, MANY, same=False)
    print(searched.system, dict(found))
    assert found["right"] == MANY
