"""Sentences of docs/training.md that quote figures are held to the figures' data."""

from __future__ import annotations

import pytest

from tests.unit.documented_figures import figure_data, said

PAGE = "docs/training.md"
SIZES = (65536, 262144, 1048576, 4194304, 16777216)
HOSTS = ("ring", "hierarchical", "halving-doubling")


def test_algorithms() -> None:
    data = figure_data("training_1_collectives")
    for algorithm in ("ring", "halving-doubling", "double-binary-tree", "sharded-parameter-server"):
        cells = []
        for row in data.rows(algorithm=algorithm):
            time_s, formula_s = row["collective_time_s"], row["model_s"]
            cells.append(f"{1e6 * time_s:,.0f} ({round(100 * (time_s / formula_s - 1)):+d} %)")
            assert row["algorithm_rate_bps"] < row["bound_rate_bps"] == pytest.approx(100e9 * 16 / 30)
            assert algorithm != "ring" or time_s == pytest.approx(formula_s, rel=0.001)
        said(PAGE, f"| {algorithm} | {' | '.join(cells)} |")
    again = data.row(algorithm="sharded-parameter-server", size_bytes=2**27)["retransmissions"]
    said(PAGE, f"{again:,.0f} packets are retransmitted on average")


def test_topologies() -> None:
    data = figure_data("training_2_topologies")
    groups = (2, 4, 8, 16)
    kinds = list(dict.fromkeys(row["topology.kind"] for row in data.rows()))
    times = {kind: [data.row(kind=kind, dp=dp)["iteration_time_s"] for dp in groups] for kind in kinds}
    for kind, of_kind in times.items():
        said(PAGE, f"| {kind} | {' | '.join(f'{1e3 * time_s:.1f}' for time_s in of_kind)} |")
    assert len(times) == 5 and min(times, key=lambda kind: times[kind][-1]) == "leaf-spine:6,4,12"
    crowded = data.row(kind="leaf-spine:16,4,4", dp=16)
    said(PAGE, f"With 64 ranks the compute time is {1e3 * crowded['compute_time_s']:.1f} ms per iteration")
    said(PAGE, f"(the half-width of the 95 % confidence interval is {1e3 * crowded['iteration_time_s_half']:.1f} ms)")


def test_sums_in_switches() -> None:
    data = figure_data("training_3_in_network")
    rates = {
        algorithm: [data.row(algorithm=algorithm, size_bytes=size)["algorithm_rate_bps"] / 1e9 for size in SIZES]
        for algorithm in (*HOSTS, "auto")
    }
    for algorithm, values in rates.items():
        name = "in-network aggregation" if algorithm == "auto" else algorithm
        said(PAGE, f"| {name} | {' | '.join(f'{value:.1f}' for value in values)} |")
    times = [rates["auto"][n] / max(rates[name][n] for name in HOSTS) for n in range(len(SIZES))]
    said(
        PAGE,
        f"At 4 MB in-network aggregation is {times[3]:.1f} times as fast as the best of the others, and at 64 kB "
        f"{times[0]:.1f} times",
    )
    assert all(rates[name][n] < 100 * 64 / 126 for name in HOSTS for n in range(len(SIZES)))
    assert all(value < 100 for value in rates["auto"])


def test_paths() -> None:
    data = figure_data("training_4_balancing")
    for row in data.rows():
        again = row["retransmissions"] * row["repetitions"]
        said(PAGE, f"| {row['switches.balancing']} | {1e3 * row['collective_time_s']:.2f} ms | {again:,.0f} |")
    ecmp, spraying = (data.row(balancing=name)["collective_time_s"] for name in ("ecmp", "random-spraying"))
    said(PAGE, f"With ECMP the mean is {ecmp / spraying:.1f} times that of spraying")


def test_a_slow_rank_and_a_link_that_fails() -> None:
    nothing, slower, slowest, link = figure_data("training_5_slow").rows()
    ms = [1e3 * row["iteration_time_s"] for row in (nothing, slower, slowest, link)]
    computing = ms[0] - 1e3 * nothing["exposed_s"]
    said(PAGE, f"takes {ms[0]:.1f} ms, with {computing:.1f} ms of compute time")
    said(PAGE, f"1.2 times as long, an iteration takes {ms[1]:.1f} ms; if twice as long, {ms[2]:.1f} ms")
    said(PAGE, f"so {100 * (ms[2] - ms[0]) / computing:.0f} % of that rank's additional compute time is added")
    said(PAGE, f"has three others: {ms[3]:.1f} ms on average")


def test_pipelines() -> None:
    data = figure_data("training_6_timeline")
    gpipe, alternating = (data.row(schedule=name) for name in ("gpipe", "1f1b"))
    said(PAGE, f"takes {1e3 * gpipe['iteration_time_s']:.1f} ms with GPipe and")
    said(
        PAGE,
        f"{1e3 * alternating['iteration_time_s']:.1f} ms with 1F1B; {1e3 * gpipe['compute_time_s']:.1f} ms are",
    )
    for row in (gpipe, alternating):
        total = row["compute_time_s"] + row["exposed_s"]
        assert abs(total - row["iteration_time_s"]) < 1e-5 * total


def test_models() -> None:
    data = figure_data("training_7_models")
    for row in data.rows(in_network="none"):
        at = {name: row[f"workload.{name}"] for name in ("width", "dp", "tp", "pp")}
        switches = data.row(in_network="aggregation", **at)["iteration_time_s"]
        cells = f"{1e3 * row['iteration_time_s']:.2f} | {1e3 * switches:.2f}"
        said(PAGE, f"| {', '.join(str(value) for value in at.values())} | {cells} |")
        assert (switches < row["iteration_time_s"]) == (at["tp"] == 1)
