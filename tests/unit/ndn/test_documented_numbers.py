"""Sentences of docs/ndn.md that quote figures are held to the figures' data."""

from __future__ import annotations

import pytest

from tests.unit.documented_figures import figure_data, said

FRAGMENTS = 1920 // 96
ROUNDS = 3


def test_state() -> None:
    data = figure_data("ndn_5_state")
    held = {peers: data.row(peers=peers)["contents_held"] for peers in (2, 8, 16)}
    rows = data.row(peers=16)["subscription_rows"]
    said("docs/ndn.md", f"{rows:.0f} rows of the persistent PIT with 16 peers, one for each publisher")
    said("docs/ndn.md", f"{held[2]:.0f} with 2 peers, {held[8]:.0f} with 8 and {held[16]:.0f} with 16")
    fewer = 16 * ROUNDS * FRAGMENTS - held[16]
    said("docs/ndn.md", f"That is {fewer:.0f} fewer than three rounds of {FRAGMENTS} fragments of each")
    assert [row["subscription_rows"] for row in data.rows()] == [row["workload.peers"] for row in data.rows()]


def test_byte_hops() -> None:
    data = figure_data("ndn_1_byte_hops")

    def hops(exchange: str, peers: int) -> float:
        return float(data.row(exchange=exchange, peers=peers)["gradient_hops"])

    push, pull, copies, ring = (hops(exchange, 16) for exchange in ("push", "pull", "unicast", "ring"))
    said(
        "docs/ndn.md",
        f"{push:.0f} times the gradient's bytes with pushes, {pull:.0f} with pulls (Interests), "
        f"and {copies:,.0f} with copies",
    )
    said("docs/ndn.md", f"A ring takes {ring:.0f}.")
    said("docs/ndn.md", f"pushes carry the least ({hops('push', 2):.1f} against the ring's {hops('ring', 2):.1f})")
    crossings = [data.row(exchange=exchange, peers=16)["transmissions"] for exchange in ("push", "unicast")]
    said("docs/ndn.md", f"{crossings[0]:.0f} link crossings for a fragment of all 16 peers, where copies take")
    said("docs/ndn.md", f"where copies take {crossings[1]:,.0f}.")


def test_round_time() -> None:
    data = figure_data("ndn_2_round_time")
    sizes = (96, 384, 1536, 6144, 24576)
    ms = {
        name: [1e3 * data.row(exchange=exchange, values=values)["round_time_s"] for values in sizes]
        for name, exchange in (
            ("push", "push"),
            ("pull", "pull"),
            ("copies", "unicast"),
            ("ring", "ring"),
            ("recursive doubling", "recursive-doubling"),
        )
    }
    for name, times in ms.items():
        cells = [f"{time:.{digits}f} ms" for time, digits in zip(times, (2, 2, 1, 0, 0), strict=True)]
        said("docs/ndn.md", f"| {name} | {' | '.join(cells)} |")
    times_longer = [copies / push for copies, push in zip(ms["copies"], ms["push"], strict=True)]
    said(
        "docs/ndn.md",
        f"take {min(times_longer):.1f} to {max(times_longer[:-1]):.1f} times as long as pushes, "
        f"and {times_longer[-1]:.1f} times at 24,576 values",
    )
    assert ms["ring"][2] == pytest.approx(ms["push"][2], rel=0.01)
    assert round(ms["push"][-1] / ms["ring"][-1]) == 7
    assert round(ms["ring"][0] / ms["push"][0]) == 5
    doubling = ms["recursive doubling"]
    fastest = [min(ms, key=lambda name: ms[name][place]) for place in range(len(sizes))]
    assert fastest == ["push", "recursive doubling", "recursive doubling", "ring", "ring"]
    said("docs/ndn.md", f"At 96 values it takes {doubling[0] / ms['push'][0]:.1f} times as long as a push")


def test_recovery() -> None:
    data = figure_data("ndn_3_recovery")
    for loss in (0.001, 0.01, 0.05):
        with_stores, without = (data.row(loss=loss, contents=contents) for contents in (4096, 0))
        cells = [
            f"{100 * loss:g} %",
            f"{100 * with_stores['store_share']:.1f} %",
            *(
                f"{1e3 * row[name]:.{digits}f} ms"
                for row in (with_stores, without)
                for name, digits in (("recovery_time_s", 2), ("round_time_s", 0))
            ),
        ]
        said("docs/ndn.md", f"| {' | '.join(cells)} |")
    shares = [100 * row["store_share"] for row in data.rows(contents=4096)]
    said("docs/ndn.md", f"Routers answer {min(shares):.0f} to {max(shares):.0f} % of the probes")


def test_asynchronous_training() -> None:
    data = figure_data("ndn_4_asynchronous")
    waiting, slowed = (data.row(mode="synchronous", slowness=slowness) for slowness in (1, 4))
    early, late = (data.row(mode="asynchronous", slowness=slowness) for slowness in (1, 4))
    assert waiting["accuracy"] == slowed["accuracy"]
    said(
        "docs/ndn.md",
        f"end {waiting['workload.rounds']} versions with an accuracy of {waiting['accuracy']:.2f}, "
        f"after {waiting['total_time_s']:.2f} s with equal peers and {slowed['total_time_s']:.2f} s with a slow one",
    )
    said("docs/ndn.md", f"Asynchronous peers reach {early['accuracy']:.2f} after {early['total_time_s']:.2f} s")
    said("docs/ndn.md", f"end with {late['accuracy']:.2f}")
    said("docs/ndn.md", f"The mean staleness is negative ({late['staleness']:.1f})")


def test_contents() -> None:
    data = figure_data("ndn_5_state")
    two, eight, all_peers = (int(data.row(peers=peers)["contents_held"]) for peers in (2, 8, 16))
    names, pairs = 3 * 20 * 16, 2048
    said(
        "docs/ndn.md",
        f"{two} with 2 peers, {eight} with 8 and {all_peers} with 16. That is {names - all_peers} fewer than "
        "three rounds of 20 fragments of each",
    )
    # Each of the pairs holds two of a binomial number of names.
    none = (1 - 1 / pairs) ** names
    one = names / pairs * (1 - 1 / pairs) ** (names - 1)
    said("docs/ndn.md", f"Of {names} random names {names - pairs * (2 - 2 * none - one):.0f} would find both")
