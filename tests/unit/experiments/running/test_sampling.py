"""Samples over time: queues that grow, links that are used, and sections that ask for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradbed.common.errors import UserError
from gradbed.experiments.configuration.sections import SampleOrder, SamplesSection
from gradbed.experiments.scale import Scale
from gradbed.experiments.traffic.configuration import TrafficSection
from gradbed.topo.generators import star
from gradbed.topo.link import LinkModel
from tests.unit.traffic.bare import run_sampled

INTERVAL_US = 10_000


@pytest.mark.parametrize("factor", [1.0, 0.5])
def test_the_queue_of_an_overloaded_link_grows(factor: float, tmp_path: Path) -> None:
    """1,000-byte frames at 1.5 times 10 Mbit/s: every 10 ms 12.5 leave, and 6.25 more wait."""
    scale = Scale(factor)
    topology = star(3, LinkModel(rate_bps=round(10_000_000 * factor), delay_us=0, queue_packets=10_000))
    section = TrafficSection(pattern="incast", load=1.5, arrivals="constant", duration_ms=200)
    order = SampleOrder(scale.time_us(INTERVAL_US), [("s1", "h1"), ("h2", "s1")])
    results, tables = run_sampled(section, topology, tmp_path, order, scale=scale)
    assert results.lost == 0
    rows = {(row["time_us"], row["from_node"]): row for row in tables["link_samples"]}
    assert set(rows) == {(INTERVAL_US * n, node) for n in range(1, 21) for node in ("s1", "h2")}
    for number in range(1, 21):
        row = rows[INTERVAL_US * number, "s1"]
        assert row["queue_packets"] == pytest.approx(6.25 * number, abs=2)
        assert row["packets"] == pytest.approx(12.5, abs=1.5 if number > 1 else 3)
        assert row["load"] == pytest.approx(8e6 * row["bytes"] / (10e6 * INTERVAL_US))
        assert rows[INTERVAL_US * number, "h2"]["queue_packets"] == 0
    # The rest is sent after the last sample.
    delivered = sum(row["packets"] for row in tables["link_samples"] if row["from_node"] == "s1")
    assert delivered < results.received <= delivered + 150


def test_drops_are_those_since_the_sample_before(tmp_path: Path) -> None:
    topology = star(3, LinkModel(rate_bps=10_000_000, queue_packets=5))
    section = TrafficSection(pattern="incast", load=2.0, arrivals="constant", duration_ms=100)
    results, tables = run_sampled(section, topology, tmp_path, SampleOrder(INTERVAL_US))
    assert {(row["from_node"], row["to_node"]) for row in tables["link_samples"]} == {
        pair for host in ("h1", "h2", "h3") for pair in ((host, "s1"), ("s1", host))
    }
    assert 0 < sum(row["queue_drops"] for row in tables["link_samples"]) <= results.lost


def test_a_section_becomes_an_order() -> None:
    topology = star(2)
    assert SamplesSection().order(topology, Scale()) is None
    section = SamplesSection(interval_us=100, links=("s1-h2",), registers=("count", "s1:marks"))
    assert section.order(topology, Scale(0.5)) == SampleOrder(200, [("s1", "h2")], [("s1", "count"), ("s1", "marks")])
    assert SamplesSection(interval_us=100).order(topology, Scale()) == SampleOrder(100, None, [])


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"interval_us": 5, "links": ("s1",)}, "'s1' is no SENDER-RECEIVER"),
        ({"interval_us": 5, "links": ("s1-h9",)}, "h9"),
        ({"interval_us": 5, "registers": ("s7:count",)}, "no switch 's7'"),
        ({"links": ("s1-h1",)}, "--sample-us"),
    ],
)
def test_samples_of_what_is_not_there_are_one_line(fields: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        SamplesSection.model_validate(fields).order(star(2), Scale())
