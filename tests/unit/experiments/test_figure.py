"""The figure of a run of one trial of aggregation."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradbed.experiments.systems.aggregation.report import draw
from tests.unit.experiments.outcomes import BOTH, BOTH_ROUNDS, outcome, rounds_of


def test_it_is_written_in_three_formats(tmp_path: Path) -> None:
    starts = {path.suffix: path.read_bytes()[:5] for path in draw(BOTH, BOTH_ROUNDS, tmp_path / "figure")}
    assert starts == {".png": b"\x89PNG\r", ".svg": b"<?xml", ".pdf": b"%PDF-"}


@pytest.mark.thorough
def test_baselines_without_a_server_are_drawn_as_well(tmp_path: Path) -> None:
    baselines = [outcome("ring", 0, 0.02), outcome("gloo", 0, 0.03)]
    rounds = [*BOTH_ROUNDS, *rounds_of("ring", 0.02), *rounds_of("gloo", 0.03)]
    draw([*BOTH, *baselines], rounds, tmp_path / "wide")
    draw(BOTH, BOTH_ROUNDS, tmp_path / "narrow")
    assert image_width(tmp_path / "wide.png") > image_width(tmp_path / "narrow.png")
    draw(baselines, rounds, tmp_path / "alone")
    text = (tmp_path / "alone.svg").read_text()
    assert "ring" in text and "server's link" not in text


def image_width(png: Path) -> int:
    """Of the header chunk (PNG specification, section 11.2.2)."""
    return int.from_bytes(png.read_bytes()[16:20], "big")
