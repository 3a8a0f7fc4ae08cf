"""Sentences of docs/ndn.md that quote figures are held to the figures' data."""

from __future__ import annotations

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
