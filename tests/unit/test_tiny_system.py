"""A system is a set of rooms of its own and one line: one in a folder outside the tree, on the virtual clock."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from tests.tiny import ROOT, gradbed, install_tiny

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


def rows(folder: Path, table: str) -> list[dict[str, str]]:
    with (folder / "latest" / f"{table}.csv").open() as file:
        return list(csv.DictReader(file))


def test_nothing_in_the_tree_knows_it(outside: Path) -> None:
    assert "tiny" not in gradbed(ROOT, "run", "--help").stdout
    assert "tiny" in gradbed(outside, "run", "--help").stdout


def test_one_point(outside: Path, tmp_path: Path) -> None:
    options = ["--topology", "fat-tree:4", "--packets", "20", "--flow-rate-mbps", "5"]
    ended = gradbed(outside, "run", "tiny", "--clock", "virtual", *options, "--output", str(tmp_path))
    assert ended.returncode == 0, ended.stdout + ended.stderr
    (point,) = rows(tmp_path / "tiny", "points")
    assert (point["received_packets"], point["counted_packets"], point["delivered"]) == ("160", "160", "1.0")
    assert float(point["throughput_bps"]) == pytest.approx(5e6, rel=0.001)
    assert point["verdict"] == "model"
    assert {row["agrees"] for row in rows(tmp_path / "tiny", "hosts")} == {"True"}
    assert "packets that receivers counted" in ended.stdout


def test_a_study_with_losses(outside: Path, tmp_path: Path) -> None:
    (tmp_path / "losses.yaml").write_text(STUDY)
    ended = gradbed(outside, "run", str(tmp_path / "losses.yaml"), "-j", "2", "--output", str(tmp_path))
    assert ended.returncode == 0, ended.stdout + ended.stderr
    received = {int(point["received_packets"]) for point in rows(tmp_path / "losses", "points")}
    # The same links lose the same packets, whatever program forwards them.
    assert len(received) == 1 and received != {60}


def test_its_figures(outside: Path, tmp_path: Path) -> None:
    ended = gradbed(outside, "figures", "tiny", "--quick", "--output", str(tmp_path))
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "2 Mbit/s" in ended.stdout
    assert (tmp_path / "tiny_1_rate" / "latest" / "rate.pdf").stat().st_size > 0
