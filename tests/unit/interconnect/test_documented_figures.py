"""Sentences of docs/interconnect.md that quote figures are held to the figures' data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.unit.documented_figures import figure_data, said

PAGE = "docs/interconnect.md"


def test_rounds_by_policy() -> None:
    data = figure_data("interconnect_9_adaptive")

    def round_ms(fabric_program: str, exchange: str) -> float:
        return 1e3 * float(data.row(fabric_program=fabric_program, exchange=exchange)["round_time_s"])

    hybrid = [f"interconnect:{policy}" for policy in ("fixed-plane", "ecmp", "least-loaded")]
    plain, fixed, hashed, by_load = (round_ms(fabric_program, "ring") for fabric_program in ("none", *hybrid))
    said(PAGE, f"a round takes {plain:.1f} ms with plain routers on shortest paths, {fixed:.1f} ms with fixed-plane,")
    said(PAGE, f"{hashed:.1f} ms with ecmp, and {by_load:.1f} ms with least-loaded")
    served = [round_ms(fabric_program, "server") for fabric_program in ("none", *hybrid)]
    said(PAGE, f"whatever the policy is ({min(served):.1f} to {max(served):.1f} ms)")


def test_sums_on_five_networks() -> None:
    data = figure_data("interconnect_7_aggregation")

    def round_ms(kind: str, placement: str = "every-tor") -> float:
        return 1e3 * float(data.row(kind=kind, placement=placement)["round_time_s"])

    kinds = sorted({row["topology.kind"] for row in data.rows()})
    dragonfly, leaf_spine, torus = (round_ms(kind) for kind in ("dragonfly:4,2,1", "leaf-spine:4,2,2", "torus:2,2,2"))
    assert f"{leaf_spine:.1f}" == f"{torus:.1f}"
    said(PAGE, f"a round takes {dragonfly:.1f} ms on the dragonfly, {torus:.1f} ms on leaf-spine and torus")
    said(PAGE, f"{round_ms('optical-electrical:2'):.1f} ms here, and {round_ms('fat-tree:4'):.1f} ms on the fat-tree")
    without = [round_ms(kind, "none") for kind in kinds]
    said(PAGE, f"Without in-network aggregation a round takes {min(without):.1f} to {max(without):.1f} ms")


def test_training_on_five_networks() -> None:
    data = figure_data("interconnect_5_training")
    served = [1e3 * row["round_time_s"] for row in data.rows(exchange="server")]
    said(PAGE, f"A server takes {min(served):.0f} to {max(served):.0f} ms a round on every network")
    rings = {row["topology.kind"]: f"{1e3 * row['round_time_s']:.0f}" for row in data.rows(exchange="ring")}
    [alone] = {rings[kind] for kind in ("fat-tree:4", "leaf-spine:4,2,2", "dragonfly:4,2,1")}
    [shared] = {rings[kind] for kind in ("optical-electrical:2", "torus:2,2,2")}
    said(
        PAGE,
        f"A ring takes {alone} ms on fat-tree, leaf-spine and dragonfly, and {shared} ms on this network and the "
        "torus",
    )


def test_latency_from_each_unit_to_the_next() -> None:
    data = figure_data("interconnect_10_stride")

    def at(policy: str, load: float) -> Mapping[str, Any]:
        return data.row(policy=policy, load=load)

    saturation = at("least-loaded", 0.7)["saturation_load"]
    said(PAGE, f"The light paths to one unit are full at {saturation:.2f} of the hosts' rate")
    most = max(row["accepted_load"] for row in data.rows(policy="fixed-plane"))
    said(PAGE, f"A fixed plane has half of them: it accepts no more than {most:.2f}")
    assert all(
        at("mesh-first", row["traffic.load"]) == {**row, "routing.policy": "mesh-first"}
        for row in data.rows(policy="least-loaded")
    )
    by_load, coin, fixed, hashed = (
        f"{1e3 * at(policy, 0.6)['latency_s']:.2f}"
        for policy in ("least-loaded", "random-plane", "fixed-plane", "ecmp")
    )
    said(
        PAGE,
        f"At 0.6 packets take {by_load} ms with least-loaded, {coin} ms with random-plane, {hashed} ms with ecmp, "
        f"and {fixed} ms with fixed-plane.",
    )
    lost = [100 * at(policy, 0.6)["loss"] for policy in ("ecmp", "fixed-plane")]
    said(PAGE, f"Ecmp loses {lost[0]:.0f} %, because hash collisions overload single light paths, and")
    said(PAGE, f"and fixed-plane loses {lost[1]:.0f} %.")


def test_latency_by_policy() -> None:
    data = figure_data("interconnect_1_latency")
    policies = ("least-loaded", "random-plane", "mesh-first", "fixed-plane", "ecmp")
    full = [data.row(policy=policy, load=0.9) for policy in policies]
    by_load, plane, mesh, fixed, hashed = (f"{1e3 * row['latency_s']:.2f} ms" for row in full)
    said(PAGE, f"At 0.9 packets take {by_load} with least-loaded, {plane} with random-plane, {mesh} with mesh-first")
    said(PAGE, f"{fixed} with fixed-plane and {hashed} with ecmp")
    tails = [f"{1e3 * row['latency_p99_s']:.1f}" for row in full]
    said(PAGE, f"the 99th percentile is {', '.join(tails[:-1])} and {tails[-1]} ms")
    assert {f"{1e3 * row['latency_s']:.2f}" for row in data.rows(load=0.2)} == {"0.37"}
    said(
        PAGE,
        f"At most {100 * max(row['reordered'] for row in data.rows()):.1f} % of the packets arrive after a later",
    )


def test_balance_by_policy() -> None:
    data = figure_data("interconnect_3_balance")
    patterns = ("all-to-all", "permutation", "hotspot:0.2", "stride:9")
    for policy in ("least-loaded", "random-plane", "fixed-plane", "mesh-first", "ecmp"):
        loads = [f"{data.row(policy=policy, pattern=each)['largest_link_load']:.3f}" for each in patterns]
        fairness = data.row(policy=policy, pattern="permutation")["light_path_fairness"]
        said(PAGE, f"| {policy} | {' | '.join(loads)} | {fairness:.2f} |")
    fixed = data.row(policy="fixed-plane", pattern="stride:9")
    assert 1 <= fixed["largest_link_load"] < 1.002, "full at half load"
    assert max(row["light_path_fairness"] for row in data.rows(pattern="stride:9")) < 0.5, "half of them are idle"


def test_throughput_by_pattern() -> None:
    data = figure_data("interconnect_2_throughput")

    def at(pattern: str, load: float) -> Mapping[str, Any]:
        return data.row(pattern=pattern, load=load)

    assert all(row["accepted_load"] <= row["accepted_bound"] for row in data.rows())
    assert all(at("all-to-all", load)["loss"] == 0 for load in (0.2, 0.4, 0.6, 0.8))
    full, beyond = at("all-to-all", 1.0), at("all-to-all", 1.2)
    said(PAGE, f"{full['accepted_load']:.3f} at an offered load of 1.0 and {beyond['accepted_load']:.3f} at 1.2")
    said(PAGE, f"with {100 * beyond['loss']:.0f} % lost: mesh links are full from {full['saturation_load']:.3f} on.")
    lost = [100 * at("permutation", load)["loss"] for load in (0.6, 0.8, 1.2)]
    taken, split = (at("permutation", 1.2)[name] for name in ("accepted_load", "saturation_load"))
    said(
        PAGE,
        f"Permutation: the best split fills a link at {split:.2f} (mean of five). {lost[0]:.1f} % are lost at",
    )
    said(
        PAGE,
        f"{lost[1]:.0f} % at 0.8 and {lost[2]:.0f} % at 1.2, where {taken:.3f} is",
    )
    said(PAGE, f"From each unit to the next, the accepted load is at most {at('stride:9', 1.2)['accepted_load']:.3f}")
    hot = at("hotspot:0.1", 1.0)
    assert hot["saturation_load"] == 1
    said(PAGE, f"which is full at 1.0, when hosts send {hot['offered_load']:.3f} of their rate on average")
    said(PAGE, f"only packets to that host are lost, {100 * at('hotspot:0.1', 1.2)['loss']:.1f} % at 1.2")


def test_wavelengths_fibres_and_circuits() -> None:
    data = figure_data("interconnect_8_circuits")
    full = [data.row(channels=channels, load=1.0) for channels in ("wavelength", "uplink", "circuit")]
    assert all(row["accepted_load"] <= row["accepted_bound"] for row in data.rows())
    waves, fibre, circuits = (f"{row['saturation_load']:.2f}" for row in full)
    said(
        PAGE,
        f"fills a link at {waves} with wavelengths, {fibre} with a fibre as one channel and {circuits} with",
    )
    waves, fibre, circuits = (f"{row['accepted_load']:.2f}" for row in full)
    said(PAGE, f"At an offered load of 1.0, {waves}, {fibre} and {circuits} are accepted")
    waves, fibre, circuits = (f"{1e3 * row['latency_s']:.1f}" for row in full)
    said(PAGE, f"The mean latencies are {waves}, {fibre} and {circuits} ms")
