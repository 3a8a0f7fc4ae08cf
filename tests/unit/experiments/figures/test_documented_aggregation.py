"""What docs/figures.md says of aggregation's figures, computed from their data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from gradbed.experiments.study.loading import load_study
from gradbed.experiments.study.make_figures import studies_of
from tests.unit.documented_figures import figure_data, said

DOCUMENT = "docs/figures.md"
LINK_BPS = 1e8


@pytest.mark.parametrize("number", range(1, 8))
def test_the_trials_of_each_study(number: int) -> None:
    """Those that run: places that mean the same are one."""
    path = studies_of("aggregation")[number]
    full, quick = (
        len(
            {
                (repr(trial.configuration.canonical()), trial.seed)
                for trial in load_study(path, each, "virtual").trials
            }
        )
        for each in (False, True)
    )
    said(DOCUMENT, f"| {number} | `{path.name}` | {full} | {quick} |")


def test_placement() -> None:
    data = figure_data("aggregation_1_placement")

    def packets(row: Mapping[str, Any]) -> float:
        return float(row["packet_bound_bps"]) / LINK_BPS

    leaves: dict[str, Any] = {"kind": "leaf-spine:4,2,4", "programmable": 2}
    said(
        DOCUMENT,
        f"lets packets reach {packets(data.row(placement='highest-degree', **leaves)):.2f}, because gradients on "
        f"their way to a leaf share links with global sums. Greedy takes the global sums into account and chooses a "
        f"pair with which packets reach {packets(data.row(placement='greedy', **leaves)):.0f}.",
    )
    one: dict[str, Any] = {"kind": "fat-tree:4", "programmable": 1}
    greedy, exhaustive = (data.row(placement=name, **one) for name in ("greedy", "exhaustive"))
    assert round(greedy["bound_bps"] / LINK_BPS, 3) == round(exhaustive["bound_bps"] / LINK_BPS, 3)
    said(
        DOCUMENT,
        f"which is {greedy['bound_bps'] / LINK_BPS:.3f} for both choices, while packets can reach "
        f"{packets(greedy):.2f} with one and {packets(exhaustive):.2f} with the other.",
    )
    shares: dict[bool, list[float]] = {False: [], True: []}
    for row in data.rows():
        is_alone = row["switches.placement"] in ("none", "server-tor") or row["bound_bps"] == LINK_BPS / 4
        shares[is_alone].append(row["wire_throughput_bps"] / row["packet_bound_bps"])
    sums, alone = shares[False], shares[True]
    said(
        DOCUMENT,
        f"Measured throughput / packet bound: {min(sums):.2f} to {max(sums):.2f} with aggregation, and "
        f"{min(alone):.2f} to {max(alone):.3f} where the server's links are the bottleneck.",
    )


def test_workers() -> None:
    data = figure_data("aggregation_2_workers")
    two, twelve = (data.row(workers=n, placement="greedy")["throughput_bps"] / LINK_BPS for n in (2, 12))
    assert data.row(workers=12, placement="greedy")["packet_bound_bps"] == LINK_BPS
    said(DOCUMENT, f"The measured value is {twelve:.2f}, and {two:.2f} with two workers.")
    # n / 2(n - 1) is 1 for two.
    ring = data.row(workers=2, exchange="ring")["throughput_bps"] / LINK_BPS
    said(DOCUMENT, f"one ACK covers several packets, and they reach {ring:.2f}.")


def test_loss() -> None:
    data = figure_data("aggregation_3_loss")
    fragments, window, workers, packet_s, delay_s = 200, 32, 8, 8 * 1478 / LINK_BPS, 50e-6
    timer_s = 4 * (packet_s + delay_s) + 0.010
    losses, policies = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2), ("aimd", "ecn")
    rows = {(loss, how): data.row(loss=loss, congestion_control=how) for loss in (0, *losses) for how in policies}
    measured = {place: float(row["mean_round_time_s"]) for place, row in rows.items()}

    def over_line(loss: float, how: str) -> float:
        fails = 1 - (1 - loss) ** (2 * workers + 2)
        return measured[loss, how] / (measured[0, how] + fragments / window * fails / (1 - fails) * timer_s) - 1

    near = max(abs(over_line(loss, how)) for loss in losses[:-1] for how in policies)
    (below,) = {f"{-100 * over_line(losses[-1], how):.0f}" for how in policies}
    said(
        DOCUMENT,
        f"Measured: up to 1 % loss, within {100 * near:.0f} % of the dotted line, although hardly any timeouts "
        f"occur; at 3 %, where many recoveries overlap, {below} % below it.",
    )
    for loss in losses:
        halves = sum(rows[loss, how]["mean_round_time_s_half"] for how in policies)
        assert abs(measured[loss, "aimd"] - measured[loss, "ecn"]) < halves
    shorter = [100 * (1 - measured[loss, "ecn"] / measured[loss, "aimd"]) for loss in losses]
    assert min(shorter) > -1
    said(
        DOCUMENT,
        f"With `ecn`, the mean round time is up to {max(shorter):.0f} % shorter than with `aimd`, but the intervals "
        "overlap",
    )
    times = [
        row["resends"] / (workers * fragments) / ((workers + 3) * loss) for (loss, _), row in rows.items() if loss
    ]
    said(
        DOCUMENT,
        f"Measured values are {min(times):.1f} to {max(times):.1f} times as high, since retransmissions may be lost",
    )


def test_slots() -> None:
    data, live = figure_data("aggregation_4_slots"), 64
    share = {row["switches.slots"]: row["slot_success"] for row in data.rows(slot_policy="dynamic")}
    thrown = {slots: slots / live * (1 - (1 - 1 / slots) ** live) for slots in share}
    in_turn = {slots: slots / (slots + live) for slots in share}
    few = [slots for slots in share if share[slots] > thrown[slots]]
    between = [slots for slots in share if in_turn[slots] < share[slots] < thrown[slots]]
    assert sorted(share) == few + between
    above = [100 * (share[slots] / thrown[slots] - 1) for slots in few]
    below = [100 * (1 - share[slots] / thrown[slots]) for slots in between]
    assert min(between) == live // 4
    said(
        DOCUMENT,
        "Measured: with at least one slot per four fragments in flight, all values lie between the two formulas, "
        f"{min(below):.0f} to {max(below):.0f} % below the first. With fewer slots they are {min(above):.0f} "
        f"to {max(above):.0f} % above it. With one slot per fragment, {share[live]:.2f} of the fragments find one, "
        f"with two {share[2 * live]:.2f}, with eight {share[8 * live]:.2f}.",
    )
    rates = {(row["switches.slot_policy"], row["switches.slots"]): row["throughput_bps"] for row in data.rows()}
    better = [slots for slots in share if rates["dynamic", slots] > rates["static", slots]]
    assert better == [slots for slots in share if slots <= max(better)]
    fixed = min(slots for slots in share if rates["static", slots] > rates["dynamic", slots])
    said(
        DOCUMENT,
        f"here up to A / L = 1/{live // max(better)}. Static slots are better from 1/{live // fixed} on",
    )


def test_jobs() -> None:
    data = figure_data("aggregation_5_jobs")
    one, two, four = (data.row(jobs=n, placement="greedy") for n in (1, 2, 4))
    rates = [row["throughput_bps"] / LINK_BPS for row in (one, two, four, data.row(jobs=4, placement="none"))]
    said(
        DOCUMENT,
        f"Measured throughput / link rate: {rates[0]:.2f} with greedy placement for one job, {rates[1]:.2f} for each "
        f"of two, and {rates[2]:.2f} as the mean of four, compared with {rates[3]:.2f} without aggregation.",
    )
    assert two["fairness"] == 1
    fairness = [data.row(jobs=4, placement=name)["fairness"] for name in ("greedy", "server-tor", "none")]
    said(
        DOCUMENT,
        f"Jain's index for four jobs is {fairness[0]:.2f} with greedy placement, {fairness[1]:.2f} with aggregation "
        f"at the servers' ToRs, and {fairness[2]:.2f} without aggregation.",
    )


def test_byte_hops() -> None:
    data = figure_data("aggregation_6_byte_hops")
    # The server gets the sum once: that is a gradient on a link.
    gradient_bytes = data.row(workers=2, placement="greedy")["server_bytes"]
    unicast, ring, sums = (
        data.row(workers=15, exchange=exchange, placement=placement)["byte_hops"] / gradient_bytes
        for exchange, placement in (("server", "none"), ("ring", "none"), ("server", "greedy"))
    )
    tree_edges = 15 + 8 + 4  # workers, all edge switches, all pods
    said(
        DOCUMENT,
        f"With 15 workers, unicast carries {unicast:.0f} gradients, the ring {ring:.0f}, and in-network aggregation "
        f"{sums:.0f}. The lower bound is {2 * tree_edges}.",
    )


def test_accuracy() -> None:
    """Equal to the last digit."""
    rows = figure_data("aggregation_7_accuracy").rows()
    assert len({(row["accuracy"], row["accuracy_half"]) for row in rows}) == 1
    said(DOCUMENT, "Sums are exact, so all three methods have the same weights after each round")
