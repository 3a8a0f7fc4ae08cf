"""Under any faults a run ends with the right result, or with the clear line that they explain."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given, settings

from gradbed.experiments.configuration.faults import Fault, fault_of_text
from gradbed.experiments.scale import Scale
from gradbed.experiments.study.chaos import Verdict
from gradbed.topo.registry import parse_topology
from tests.examples import examples
from tests.unit.chaos.explanations import causes
from tests.unit.chaos.schedules import schedules, text
from tests.unit.chaos.search import Searched, judge
from tests.unit.chaos.systems import SYSTEMS, of_every_system

FEW, MANY = 2, 1000


def search(searched: Searched, count: int, same: bool) -> Counter[Verdict]:
    """Draw so many schedules. same: those of every time. The shortest one that fails is told, as a command."""
    found: Counter[Verdict] = Counter()

    @settings(
        max_examples=count,
        derandomize=same,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
    )
    @given(schedules(searched.places))
    def ends_as_it_may(faults: tuple[Fault, ...]) -> None:
        found[judge(searched, faults).cell.verdict] += 1

    ends_as_it_may()
    return found


@pytest.mark.commit_cases(1)
@of_every_system
def test_no_schedule_makes_a_run_end_wrong(searched: Searched) -> None:
    search(searched, FEW, same=True)


FOUND: Sequence[tuple[str, Sequence[str]]] = [
    # A register was sampled while its switch had no program.
    (
        "compression",
        [
            "link-change:l3-s2,bit_error_rate=5e-06@7",
            "switch-restart:l1@9.9",
            "agent-pause:server,for_ms=1@12.6",
            "link-down:l1-s1@13.4",
        ],
    ),
    # The run was over before the controller had brought the switch back, which then had no counters to read.
    ("workload", ["link-down:l2-s1@9.7", "switch-restart:l1@10"]),
    # All others had their last sums, and nobody waited for this one but the run.
    ("aggregation", ["agent-stop:worker 2@9.6"]),
    # It had done its part, so the run was right; what it had sent again was asked for all the same.
    ("aggregation", ["agent-stop:worker 0@10.4"]),
    # Of a host that has no way to others this line is right, too.
    ("ndn", ["link-down:h2-l1@0", "link-up:h2-l1@1", "link-down:h2-l1@4.2"]),
    # Right, but a link that made two packets of many carried more than the rule for storms allowed.
    (
        "aggregation",
        [
            "link-down:h1-l1@0",
            "link-change:l2-s1,duplicate=0.5@0",
            "link-up:h1-l1@0.1",
            "agent-stop:worker 1@4.7",
            "agent-start:worker 1@4.8",
            "agent-stop:worker 2@5.9",
            "agent-start:worker 2@6",
        ],
    ),
    # What a server that began anew received was taken for what the one before had summed.
    (
        "compression",
        [
            "link-down:h6-l3@0",
            "agent-stop:server@3.4",
            "agent-start:server@3.5",
            "switch-restart:s1@8.1",
            "switch-restart:l1@8.4",
            "switch-restart:s1@11",
            "agent-stop:worker 1@14.1",
            "agent-start:worker 1@19.1",
        ],
    ),
]
"""Schedules that once were judged to end wrong, at their shortest."""


@pytest.mark.commit_cases(4)
@pytest.mark.parametrize(("system", "told"), FOUND)
def test_what_was_found_stays_mended(system: str, told: Sequence[str]) -> None:
    (searched,) = (each for each in SYSTEMS if each.system == system)
    topology = searched.configuration.topology.build(Scale())
    judge(searched, [fault_of_text(each, topology) for each in told])


@pytest.mark.nightly
@of_every_system
def test_no_schedule_of_1000_makes_a_run_end_wrong(searched: Searched) -> None:
    found = search(searched, MANY, same=False)
    print(searched.system, dict(found))
    # Of a search in which hardly anything came right little would be known.
    assert found["right"] > MANY / 4


@settings(max_examples=examples(50), derandomize=True, database=None)
@given(schedules(SYSTEMS[0].places))
def test_the_command_that_is_told_has_the_same_faults(faults: tuple[Fault, ...]) -> None:
    searched = SYSTEMS[0]
    topology = searched.configuration.topology.build(Scale())
    words = shlex.split(searched.line(faults))
    told = [words[place + 1] for place, word in enumerate(words) if word == "--fault"]
    assert tuple(fault_of_text(each, topology) for each in told) == faults
    assert [text(fault) for fault in faults] == told


@pytest.mark.parametrize(
    ("told", "wanted"),
    [
        ([], set()),
        (["agent-stop:worker 0@1"], {"killed"}),
        (["agent-stop:worker 0@1", "agent-start:worker 0@2"], {"anew"}),
        (["agent-stop:worker 0@1", "agent-start:worker 0@2", "agent-stop:worker 0@3"], {"killed"}),
        (["link-down:h1-l1@1"], {"apart"}),
        (["link-down:h1-l1@1", "link-up:h1-l1@2"], set()),
        # It stands as it came in time, not as it is written.
        (["link-up:h1-l1@2", "link-down:h1-l1@1"], set()),
        (["link-down:h4-l2@1"], set()),
        (["link-down:l1-s1@1"], set()),
        (["link-down:l1-s1@1", "link-down:l1-s2@1"], {"apart"}),
        (["switch-restart:s1@1", "controller-restart@2", "agent-pause:worker 0,for_ms=1@1"], set()),
    ],
)
def test_what_a_schedule_explains(told: Sequence[str], wanted: set[str]) -> None:
    topology = parse_topology("leaf-spine:2,2,2")
    assert causes([fault_of_text(each, topology) for each in told], topology, ["h1", "h2", "h3"]) == wanted
