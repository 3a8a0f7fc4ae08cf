"""What counters of switches say, whatever the switch is."""

from __future__ import annotations

import re

from experiments.accounting import LinkEffect, Tally
from experiments.counts import Counts, PortCounts
from experiments.programs import P4_SOURCES
from experiments.systems.aggregation.counts import EVENT_CELLS, EVENT_JOBS, EVENTS, event_at


def cells(**packets: tuple[int, int]) -> dict[str, list[dict[str, int]]]:
    """Counters by name, each with one cell: port, packets; frames of 100 bytes."""
    return {
        f"Ingress.{name}": [{"index": port, "packets": count, "bytes": 100 * count}]
        for name, (port, count) in packets.items()
    }


def test_a_programmable_switch_tells_gradients_from_acknowledgements() -> None:
    counters = cells(gradient_in=(3, 7), acknowledgement_in=(3, 2), gradient_out=(3, 4), acknowledgement_out=(4, 9))
    assert PortCounts.of(counters, 3) == PortCounts(Tally(9, 900), Tally(4, 400), Tally(4, 400), Tally(2, 200))
    assert PortCounts.of(counters, 4) == PortCounts(Tally(), Tally(9, 900), Tally(), Tally())


def test_a_legacy_switch_counts_all_packets_of_a_port() -> None:
    counters = cells(port_in=(3, 7), port_out=(3, 5))
    assert PortCounts.of(counters, 3) == PortCounts(Tally(7, 700), Tally(5, 500), Tally(), Tally())


def test_events_are_told_by_job() -> None:
    assert len(EVENTS) <= EVENT_CELLS
    assert event_at(0) == (0, "claimed")
    assert event_at(EVENT_CELLS + 1) == (1, "added")
    now = Counts({}, {}, {}, {(1, "claimed"): 9, (2, "claimed"): 4, (2, "stale"): 1})
    gained = now.since(Counts({}, {}, {}, {(1, "claimed"): 6}))
    assert gained.events == {"claimed": 7, "stale": 1}
    assert gained.events_of(1) == {"claimed": 3}
    assert gained.events_of(EVENT_JOBS + 2) == {"claimed": 4, "stale": 1}


def test_events_have_the_names_and_places_of_the_p4_program() -> None:
    source = (P4_SOURCES / "include" / "events.p4").read_text()
    numbers = {name.lower(): int(number) for name, number in re.findall(r"^    (\w+) = (\d+)", source, re.MULTILINE)}
    assert numbers.pop("nothing") == len(EVENTS)
    assert numbers == {name: index for index, name in enumerate(EVENTS)}
    sizes = dict(re.findall(r"#define (\w+) (\d+)", source))
    assert sizes == {"EVENTS": str(EVENT_CELLS), "EVENT_JOBS": str(EVENT_JOBS)}


def test_an_account_by_the_link_alone() -> None:
    """For packets that P4 switches do not count."""
    effect = LinkEffect(losses=Tally(1, 100), duplicates=Tally(2, 200), queue_drops=Tally(3, 300))
    counts = Counts(
        ports={"h1": PortCounts(Tally(), Tally(), Tally(), Tally())},
        towards_switch={"h1": effect},
        towards_host={"h1": effect},
        job_events={},
        delivered={("h1", "e1"): Tally(18, 1800), ("e1", "h1"): Tally(7, 700), ("e1", "a1"): Tally(5, 500)},
    )
    assert counts.byte_hops == 3000
    nothing = {"frames": 0, "bytes": 0}
    statistics = {
        "gradient_sent": {"frames": 20, "bytes": 2000},
        "acknowledgement_sent": nothing,
        "gradient_received": {"frames": 6, "bytes": 600},
        "acknowledgement_received": nothing,
        "socket_drops": 1,
    }
    account = counts.account("h1", statistics, by_link=True)
    assert account.disagreements() == []
    assert account.switch_sent == Tally(6, 600)
    fewer = counts.account("h1", {**statistics, "socket_drops": 0}, by_link=True)
    assert len(fewer.disagreements()) == 1
    assert counts.since(counts).byte_hops == 0
