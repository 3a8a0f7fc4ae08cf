"""Queues from one packet on, and links of unequal rates and delays: a run comes to its end, and is right."""

from __future__ import annotations

import random
import re
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from gradbed.experiments.configuration.faults import Fault, LinkChange
from gradbed.experiments.results.run_folder import TrialRecord
from tests.unit.chaos.schedules import Places
from tests.unit.chaos.search import Judged, Searched, judge
from tests.unit.chaos.systems import SYSTEMS, of_every_system

FEW, MANY = range(1), range(1000)
"""Seeds."""
CHEAPER: Mapping[str, Mapping[str, Any]] = {
    "ndn": {"routers.contents": 256, "routers.pending": 256, "routers.subscriptions": 256},
    "shuffle": {"topology.kind": "leaf-spine:3,2,2"},
    "compression": {"samples.interval_us": 1_000_000},
}
"""Most of a run's processor time went into reading registers and starting switches, which queues do not change."""
LIKE = "loss 20 %"
"""Bursts into queues of one packet lose at least as many on each link: what has to be sent so often is no storm."""
ONLY_COUNT = ("interconnect", "workload")
"""Their hosts send once, so what queues drop is lost, and is to be counted."""


def network(places: Places, seed: int) -> tuple[Fault, ...]:
    """Each link's queue, rate and delay, from the beginning."""
    chance = random.Random(seed)
    return tuple(
        LinkChange.model_validate(
            {
                "fault": "link-change",
                "link": link,
                "at_ms": 0,
                "change": {
                    "queue_packets": chance.randint(1, 4),
                    "rate_mbps": chance.choice([5, 20, 100, 300]),
                    "delay_us": chance.choice([10, 100, 1000, 5000]),
                },
            }
        )
        for link in places.links
    )


def unaccounted_packets(trial: TrialRecord) -> int:
    """That hosts sent, and that neither came to a host nor were dropped by the queue of a link."""
    hosts, links = trial.table("hosts"), trial.table("links")
    sent, received = (sum(row[f"host_{word}_packets"] for row in hosts) for word in ("sent", "received"))
    return int(sent - received - sum(row["queue_drops"] for row in links))


@dataclass
class Search:
    """What came of a system's networks. wrong: by seed, why."""

    system: str
    verdicts: Counter[str] = field(default_factory=Counter)
    wrong: dict[int, str] = field(default_factory=dict)
    longest_s: float = 0.0
    processor_s: float = 0.0

    def line(self, seeds: range) -> str:
        return (
            f"{self.system}: seeds {seeds.start} to {seeds.stop - 1}, {dict(self.verdicts)}, wrong {self.wrong}, "
            f"processor {self.processor_s:.0f} s, longest network time {self.longest_s:.3f} s"
        )


def search(searched: Searched, seeds: Iterable[int]) -> Search:
    cheaper = replace(searched, values={**searched.values, **CHEAPER.get(searched.system, {})})
    found = Search(searched.system)
    begun_s = time.process_time()
    for seed in seeds:
        faults = network(cheaper.places, seed)
        try:
            judged = judge(cheaper, faults, LIKE)
            _check_counts(cheaper, faults, judged)
        except AssertionError as error:
            found.wrong[seed] = str(error)
        else:
            found.verdicts[judged.cell.verdict] += 1
            found.longest_s = max(found.longest_s, judged.took_s)
    found.processor_s = time.process_time() - begun_s
    return found


def _check_counts(searched: Searched, faults: Iterable[Fault], judged: Judged) -> None:
    if searched.system in ONLY_COUNT and judged.trial is not None:
        lost = unaccounted_packets(judged.trial)
        assert lost == 0, f"{lost} packets neither came nor were dropped by a queue\n{searched.line(tuple(faults))}"


@pytest.mark.commit_cases(1)
@of_every_system
def test_no_shallow_queue_starves_a_run(searched: Searched) -> None:
    found = search(searched, FEW)
    assert found.verdicts["right"] == len(FEW), found.line(FEW)


# Queue pairs and streams of fragments: tests/unit/virtual/transport.
MANY_PEERS: Mapping[str, Mapping[str, Any]] = {
    "ndn": {"topology.kind": "leaf-spine:2,1,6", "workload.peers": 12},
    "aggregation": {"topology.kind": "leaf-spine:2,1,6", "workload.workers": 11, "switches.named": ("s1",)},
    "compression": {"topology.kind": "leaf-spine:2,1,6", "workload.workers": 11},
}


@pytest.mark.commit_cases(1)
@pytest.mark.parametrize("queue_packets", [1, 2, 3])
@pytest.mark.parametrize("system", MANY_PEERS)
def test_many_in_step_behind_a_short_queue_all_come_through(system: str, queue_packets: int) -> None:
    """Twelve hosts on equal links without jitter: what they send or repeat together comes in one nanosecond."""
    (searched,) = (each for each in SYSTEMS if each.system == system)
    changed = {**MANY_PEERS[system], "topology.link.queue_packets": queue_packets}
    many = replace(searched, values={**searched.values, **CHEAPER.get(system, {}), **changed})
    assert sum(row["queue_drops"] for row in many.faultless.table("links")) > 0


CAPTURED: Mapping[str, frozenset[int]] = {"training": frozenset({170, 817, 997})}
"""Seeds of networks in which one queue pair without congestion control sends at just the rate of a link, and so keeps
its queue full: the phase effects of Floyd and Jacobson, "On traffic phase effects in packet-switched gateways", 1992.
The others find no room until they give up, and the run ends with a line that names the queue."""
GAVE_UP = re.compile(
    r"does not answer any more; the queue from \w+ to \w+ \(length \d+, then \d\) dropped \d+ packets"
)


@pytest.mark.nightly
@of_every_system
def test_no_shallow_queue_of_1000_networks_starves_a_run(searched: Searched) -> None:
    """Two (workload) to seventeen minutes (NDN) of a busy machine's processor for each system."""
    found = search(searched, MANY)
    print(found.line(MANY))
    assert found.wrong.keys() <= CAPTURED.get(searched.system, frozenset())
    assert all(GAVE_UP.search(said) for said in found.wrong.values())
    assert found.verdicts["right"] == len(MANY) - len(found.wrong)
