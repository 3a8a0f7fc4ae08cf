"""What counters of switches say, whatever the switch is."""

from __future__ import annotations

import re
from typing import Any

import pytest

from gradbed.emulation.statistics import ClassCounts, DirectionStatistics
from gradbed.experiments.conservation.checks import pause_disagreements
from gradbed.experiments.conservation.counts import Counts, LinkEffect, Pauses, Tally
from gradbed.experiments.programs import P4_SOURCES
from gradbed.experiments.systems.aggregation.metrics import (
    EVENT_CELLS,
    EVENT_JOBS,
    EVENTS,
    account,
    acks_from,
    event_at,
    events_of,
    gradients_to,
    received_from,
    sent_to,
)
from gradbed.topo.generators import star

TOPOLOGY = star(4)
"""Host hN at port N of s1."""


def cells(**packets: tuple[int, int]) -> dict[str, dict[int, Tally]]:
    """Counters by name, each with one cell: port, packets; frames of 100 bytes."""
    return {name: {port: Tally(count, 100 * count)} for name, (port, count) in packets.items()}


def test_the_table_of_links_has_the_bytes_that_all_links_have_carried() -> None:
    counts = Counts(
        delivered={("h1", "s1"): Tally(7, 700), ("s1", "h1"): Tally(3, 300)},
        effects={("h1", "s1"): LinkEffect(losses=Tally(2, 200), queue_drops=Tally(1, 100), duplicates=Tally(4, 400))},
    )
    one, other = counts.link_rows({("s1", "h1"): 0.99})
    assert one == {
        "from": "h1", "to": "s1", "packets": 7, "bytes": 700, "queue_drops": 1, "socket_drops": 0, "losses": 2,
        "duplicates": 4, "achieved": None,
    }  # fmt: skip
    assert (other["packets"], other["achieved"]) == (3, 0.99)
    assert one["bytes"] + other["bytes"] == counts.byte_hops


def test_what_sockets_in_front_of_a_hosts_link_dropped_was_sent_all_the_same() -> None:
    dropped = LinkEffect(queue_drops=Tally(1, 100), socket_drops=2, from_outside=True)
    counts = Counts(
        delivered={("h1", "s1"): Tally(7, 700), ("s1", "h1"): Tally(3, 300)},
        effects={("h1", "s1"): dropped, ("s1", "h1"): dropped},
    )
    made = counts.link_account("h1", "s1", Tally(10, 1000), Tally(3, 300), 0)
    assert made.switch_sent.packets == 6
    assert made.disagreements() == []
    assert len(counts.link_account("h1", "s1", Tally(9, 900), Tally(2, 200), 0).disagreements()) == 2


def test_a_programmable_switch_tells_gradients_from_acks() -> None:
    three = TOPOLOGY.port("s1", "h3")
    four = TOPOLOGY.port("s1", "h4")
    counters = cells(
        gradient_in=(three, 7), acknowledgement_in=(three, 2), gradient_out=(three, 4), acknowledgement_out=(four, 9)
    )
    counts = Counts({"s1": counters})
    found = [
        [of(counts, TOPOLOGY, host).packets for of in (received_from, sent_to, gradients_to, acks_from)]
        for host in ("h3", "h4", "h1")
    ]
    assert found == [[9, 4, 4, 2], [0, 9, 0, 0], [0, 0, 0, 0]]
    assert received_from(counts, TOPOLOGY, "h3") == Tally(9, 900)


def test_a_legacy_switch_counts_all_packets_of_a_port() -> None:
    port = TOPOLOGY.port("s1", "h3")
    counts = Counts({"s1": cells(port_in=(port, 7), port_out=(port, 5))})
    assert received_from(counts, TOPOLOGY, "h3") == Tally(7, 700)
    assert sent_to(counts, TOPOLOGY, "h3") == Tally(5, 500)
    assert gradients_to(counts, TOPOLOGY, "h3") == acks_from(counts, TOPOLOGY, "h3") == Tally()


def test_events_are_told_by_job() -> None:
    assert len(EVENTS) <= EVENT_CELLS
    assert event_at(0) == (0, "claimed")
    assert event_at(EVENT_CELLS + 1) == (1, "added")
    one, two, stale = EVENT_CELLS, 2 * EVENT_CELLS, 2 * EVENT_CELLS + EVENTS.index("stale")
    now = Counts(
        {"s1": {"events": {one: Tally(9), two: Tally(3), stale: Tally(1)}}, "s2": {"events": {two: Tally(1)}}}
    )
    gained = now.since(Counts({"s1": {"events": {one: Tally(6)}}}))
    assert events_of(gained) == {"claimed": 7, "stale": 1}
    assert events_of(gained, 1) == {"claimed": 3}
    assert events_of(gained, EVENT_JOBS + 2) == {"claimed": 4, "stale": 1}


def test_a_switch_that_lost_its_counters_counts_from_zero() -> None:
    before = Counts({"s1": {"port_in": {1: Tally(9, 900), 2: Tally(1, 100)}}})
    now = Counts({"s1": {"port_in": {1: Tally(4, 400), 2: Tally(3, 300)}}})
    assert now.since(before).counters == {"s1": {"port_in": {1: Tally(4, 400), 2: Tally(2, 200)}}}


def test_events_have_the_names_and_places_of_the_p4_program() -> None:
    source = (P4_SOURCES / "include" / "aggregation" / "events.p4").read_text()
    numbers = {name.lower(): int(number) for name, number in re.findall(r"^    (\w+) = (\d+)", source, re.MULTILINE)}
    assert numbers.pop("nothing") == len(EVENTS)
    assert numbers == {name: index for index, name in enumerate(EVENTS)}
    sizes = dict(re.findall(r"#define (\w+) (\d+)", source))
    assert sizes == {"EVENTS": str(EVENT_CELLS), "EVENT_JOBS": str(EVENT_JOBS)}


STATISTICS = {
    "gradient_sent": {"frames": 20, "bytes": 2000},
    "acknowledgement_sent": {"frames": 0, "bytes": 0},
    "gradient_received": {"frames": 6, "bytes": 600},
    "acknowledgement_received": {"frames": 0, "bytes": 0},
    "socket_drops": 1,
}
EFFECT = LinkEffect(losses=Tally(1, 100), duplicates=Tally(2, 200), queue_drops=Tally(3, 300))


def test_an_account_by_the_link_alone() -> None:
    """For packets that P4 switches do not count."""
    counts = Counts(
        delivered={("h1", "s1"): Tally(18, 1800), ("s1", "h1"): Tally(7, 700), ("s1", "h2"): Tally(5, 500)},
        effects={("h1", "s1"): EFFECT, ("s1", "h1"): EFFECT},
    )
    assert counts.byte_hops == 3000
    found = account(counts, TOPOLOGY, "h1", STATISTICS, by_link=True)
    assert found.disagreements() == []
    assert found.switch_sent == Tally(6, 600)
    fewer = account(counts, TOPOLOGY, "h1", {**STATISTICS, "socket_drops": 0}, by_link=True)
    assert len(fewer.disagreements()) == 1
    assert counts.since(counts).byte_hops == 0


@pytest.mark.parametrize(("counter", "packets"), [("gradient_in", 18), ("gradient_out", 6)])
def test_an_account_by_the_switch(counter: str, packets: int) -> None:
    port = TOPOLOGY.port("s1", "h1")
    counters = cells(gradient_in=(port, 18), gradient_out=(port, 6))
    effects = {("h1", "s1"): EFFECT, ("s1", "h1"): EFFECT}
    assert (
        account(Counts({"s1": counters}, {}, effects), TOPOLOGY, "h1", STATISTICS, by_link=False).disagreements()
        == []
    )
    wrong = {**counters, **cells(**{counter: (port, packets + 1)})}
    said = account(Counts({"s1": wrong}, {}, effects), TOPOLOGY, "h1", STATISTICS, by_link=False).disagreements()
    assert len(said) == 1


def test_what_is_read_of_a_network() -> None:
    row = DirectionStatistics(
        from_node="h1", to_node="s1", packets=9, bytes=900, queue_drops=3, queue_drop_bytes=300,
        losses=2, lost_bytes=200, duplicates=1, duplicate_bytes=100,
    )  # fmt: skip

    class Links:
        def link_statistics(self) -> list[Any]:
            return [row]

        def device_statistics(self) -> dict[str, dict[str, int]]:
            return {"s1": {"ingress_drops": 4}}

        def program_drops(self) -> dict[str, dict[str, int]]:
            return {"s1": {"by I.drop": 4}}

        def classes(self) -> ClassCounts:
            return ClassCounts()

    class Network:
        topology = TOPOLOGY
        backend = Links()

        def all_counters(self) -> dict[str, dict[str, list[dict[str, int]]]]:
            return {"s1": {"Ingress.ports.port_in": [{"index": 2, "packets": 5, "bytes": 500}]}}

    counts = Counts.read(Network())  # type: ignore[arg-type]
    assert counts.cell("s1", "port_in", 2) == Tally(5, 500)
    assert counts.cell("s1", "port_in", 3) == counts.cell("s9", "port_in", 2) == Tally()
    assert counts.has("s1", "port_in") and not counts.has("s1", "gradient_in")
    assert counts.delivered == {("h1", "s1"): Tally(9, 900)}
    assert counts.effects == {("h1", "s1"): LinkEffect(Tally(2, 200), Tally(1, 100), Tally(3, 300))}
    assert counts.devices == {"s1": {"ingress_drops": 4}}
    assert counts.since(counts).devices == {"s1": {"ingress_drops": 0}}
    assert counts.program_drops == {"s1": {"by I.drop": 4}}
    assert counts.since(counts).program_drops == {"s1": {"by I.drop": 0}}


def test_the_table_of_links_tells_of_pauses_where_there_are_some() -> None:
    pauses = Pauses(
        sent=(0, 0, 0, 2, 0, 0, 0, 0), received=(0, 0, 0, 2, 0, 0, 0, 0), paused_ns=(0, 0, 0, 1500, *[0] * 4)
    )
    counts = Counts(
        delivered={("h1", "s1"): Tally(7, 700), ("s1", "h1"): Tally(3, 300)},
        effects={("h1", "s1"): LinkEffect(pauses=pauses)},
    )
    one, other = counts.link_rows({}, lambda time_us: 10 * time_us)
    assert (one["pauses_sent"], one["pauses_received"], one["paused_us_3"]) == (2, 2, 15.0)
    assert (other["pauses_sent"], other["pauses_received"], other["paused_us_3"]) == (0, 0, 0.0)
    assert [name for name in one if name.startswith("paused")] == ["paused_us_3"]


def test_pauses_that_only_one_end_has_counted_are_told() -> None:
    pauses = Pauses(sent=(0, 3), received=(0, 2), paused_ns=(0, 10))
    before = LinkEffect(pauses=Pauses(sent=(0, 1), received=(0, 0), paused_ns=(0, 0)))
    effects = {("h1", "s1"): LinkEffect(pauses=pauses), ("s1", "h1"): LinkEffect()}
    (line,) = pause_disagreements(Counts(effects=effects))
    assert line == "h1 to s1: s1 sent [0, 3] pauses, h1 took [0, 2]"
    since = Counts(effects=effects).since(Counts(effects={("h1", "s1"): before}))
    assert since.effect("h1", "s1").pauses == Pauses((0, 2), (0, 2), (0, 10))
    assert pause_disagreements(since) == []
