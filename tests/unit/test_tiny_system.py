"""A system is a set of rooms of its own and one line: one in a folder outside the tree, on the virtual clock."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.command import rows, run_well
from tests.tiny import install_tiny

STUDY = """
name: losses
system: tiny
clock: virtual
topology: {kind: "leaf-spine:2,2,2", link: {rate_mbps: 10, loss: 0.1, duplicate: 0.1}}
flows: {packets: 30}
sweep:
  product:
    switches.others: [tiny, forward]
"""


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("outside")
    install_tiny(folder)
    return folder


def test_nothing_in_the_tree_knows_it(outside: Path) -> None:
    assert "tiny" not in run_well("run", "--help").stdout
    assert "tiny" in run_well("run", "--help", PYTHONPATH=outside).stdout


@pytest.mark.thorough
def test_one_trial(outside: Path, tmp_path: Path) -> None:
    options = ["--topology", "fat-tree:4", "--packets", "20", "--flow-rate-mbps", "5"]
    ended = run_well("run", "tiny", "--clock", "virtual", *options, "--output", tmp_path, PYTHONPATH=outside)
    (trial,) = rows(tmp_path / "tiny" / "latest" / "trials.csv")
    assert (trial["received_packets"], trial["counted_packets"], trial["delivered"]) == ("160", "160", "1.0")
    assert float(trial["throughput_bps"]) == pytest.approx(5e6, rel=0.001)
    assert trial["verdict"] == "simulated"
    assert {row["agrees"] for row in rows(tmp_path / "tiny" / "latest" / "hosts.csv")} == {"True"}
    assert "packets that receivers counted" in ended.stdout


@pytest.mark.nightly  # a study of it is run for its figures, too
def test_a_study_with_losses(outside: Path, tmp_path: Path) -> None:
    (tmp_path / "losses.yaml").write_text(STUDY)
    run_well("run", tmp_path / "losses.yaml", "-j", "2", "--output", tmp_path, PYTHONPATH=outside)
    received = {int(trial["received_packets"]) for trial in rows(tmp_path / "losses" / "latest" / "trials.csv")}
    # The same links lose the same packets, whatever program forwards them.
    assert len(received) == 1 and received != {60}


@pytest.mark.thorough
def test_its_figures(outside: Path, tmp_path: Path) -> None:
    ended = run_well("figures", "tiny", "--quick", "--output", tmp_path, PYTHONPATH=outside)
    assert "2 Mbit/s" in ended.stdout
    assert (tmp_path / "tiny_1_rate" / "latest" / "rate.pdf").stat().st_size > 0
