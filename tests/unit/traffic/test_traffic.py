"""Traffic through a network on the virtual clock: every packet accounted for, and queues as theory has them."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from gradbed.experiments.scale import Scale
from gradbed.experiments.traffic.configuration import TrafficSection
from gradbed.topo.generators import fat_tree, star
from gradbed.topo.link import LinkModel
from tests.unit.traffic.bare import run_traffic

RATE_BPS = 10_000_000


@pytest.mark.parametrize("sizes", ["fixed", "uniform", "web-search"])
def test_everything_arrives_where_nothing_is_lost(sizes: str, tmp_path: Path) -> None:
    section = TrafficSection(sizes=sizes, packets=400, load=0.3, most_flow_kbytes=20, flows=1)
    results = run_traffic(section, fat_tree(4, LinkModel(rate_bps=100_000_000)), tmp_path)
    assert results.received == results.sent > 0
    assert results.sent == 400 or sizes == "web-search"
    assert (results.lost, results.duplicates, results.reordered, results.misdelivered, results.foreign) == (0,) * 5
    assert sum(row["received_packets"] for row in results.pair_rows()) == results.sent
    if sizes == "web-search":
        assert len(results.flow_rows()) == 400
        assert not np.isnan(results.completion_us).any()


def test_losses_and_duplicates_are_told_apart(tmp_path: Path) -> None:
    topology = star(4, LinkModel(rate_bps=100_000_000, loss=0.05, duplicate=0.05))
    results = run_traffic(TrafficSection(packets=4000, load=0.2), topology, tmp_path)
    assert results.sent == 4000
    # Two links on the way.
    assert results.loss == pytest.approx(1 - 0.95**2, abs=0.02)
    assert results.duplicates / results.received == pytest.approx(0.1, abs=0.03)
    assert results.reordered == 0


def test_jitter_reorders(tmp_path: Path) -> None:
    topology = star(2, LinkModel(rate_bps=1_000_000_000, delay_us=1000, jitter_us=500, reorder=True))
    results = run_traffic(TrafficSection(pattern="pairs", packets=1000), topology, tmp_path)
    assert results.reordered > 100 and results.lost == 0
    assert results.pair_rows()[0]["reordering_extent"] > 1


def test_a_lone_packet_takes_the_time_of_its_links(tmp_path: Path) -> None:
    topology = star(2, LinkModel(rate_bps=RATE_BPS, delay_us=70))
    section = TrafficSection(pattern="pairs", packets=10, load=0.01, arrivals="constant")
    results = run_traffic(section, topology, tmp_path)
    # 1,000 bytes at 10 Mbit/s are 800 us, on two links of 70 us.
    assert results.mean_latency_us == 2 * (800 + 70)
    assert results.latency_us(50) == pytest.approx(1740, rel=1e-3)
    scaled = run_traffic(
        section, star(2, LinkModel(rate_bps=RATE_BPS // 10, delay_us=700)), tmp_path, scale=Scale(0.1)
    )
    assert scaled.mean_latency_us == pytest.approx(1740)
    assert scaled.throughput_bps == pytest.approx(results.throughput_bps or 0)


def test_the_same_seed_gives_the_same_results(tmp_path: Path) -> None:
    section = TrafficSection(packets=500, load=0.8)
    topology = fat_tree(4, LinkModel(rate_bps=RATE_BPS, loss=0.01))
    one, same, other = (run_traffic(section, topology, tmp_path, seed=seed) for seed in (1, 1, 2))
    assert one.pair_rows() == same.pair_rows()
    assert one.histogram.as_json() == same.histogram.as_json()
    assert one.histogram.as_json() != other.histogram.as_json()


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("sizes", "load"),
    [
        ("fixed", 0.7),
        ("exponential", 0.5),
        pytest.param("fixed", 0.3, marks=pytest.mark.nightly),
        pytest.param("fixed", 0.5, marks=pytest.mark.nightly),
        pytest.param("exponential", 0.3, marks=pytest.mark.nightly),
        pytest.param("exponential", 0.7, marks=pytest.mark.nightly),
    ],
)
def test_waiting_times_are_those_of_queueing_theory(sizes: str, load: float, tmp_path: Path) -> None:
    """M/D/1: load * service / (2 * (1 - load)); M/M/1: twice that (Kleinrock, Queueing Systems I, 5.6 and 3.2)."""
    fast = 10**12
    topology = star(2, LinkModel(rate_bps=fast, queue_packets=10**6)).with_links([("h2", "s1")], rate_bps=RATE_BPS)
    section = TrafficSection(pattern="pairs", packets=200_000, load=load, sizes=sizes, frame_bytes=1000)
    results = run_traffic(section, topology, tmp_path)
    assert results.lost == 0 and results.mean_latency_us is not None
    service_us = 8e6 * float(results.flows["received_bytes"].sum()) / results.received / RATE_BPS
    waiting_us = results.mean_latency_us - service_us
    expected_us = load * service_us / (1 - load) / (2 if sizes == "fixed" else 1)
    assert waiting_us == pytest.approx(expected_us, rel=0.03)


def test_200_000_packets_through_a_fat_tree_take_less_than_20_s_of_processor_time(tmp_path: Path) -> None:
    """They take about 2 s; only what makes them ten times as slow is seen here."""
    begin_s = time.process_time()
    section = TrafficSection(packets=200_000, load=0.5)
    results = run_traffic(section, fat_tree(4, LinkModel(rate_bps=1_000_000_000)), tmp_path)
    assert (results.sent, results.lost) == (200_000, 0)
    assert all(results.latency_us(percent) is not None for percent in (50, 99, 99.9))
    assert time.process_time() - begin_s < 20
