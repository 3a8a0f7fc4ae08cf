"""The figure of the aggregation experiment."""

from pathlib import Path

from experiments.systems.aggregation.figure import draw
from tests.unit.experiments.outcomes import BOTH, outcome


def test_png_and_pdf_are_written(tmp_path: Path) -> None:
    png, pdf = draw(BOTH, tmp_path / "figure")
    assert png.read_bytes().startswith(b"\x89PNG")
    assert pdf.read_bytes().startswith(b"%PDF")


def test_baselines_are_drawn_as_well(tmp_path: Path) -> None:
    baselines = [outcome("ring", 0, 0.02), outcome("gloo", 0, 0.03)]
    png, _ = draw([*BOTH, *baselines], tmp_path / "figure")
    narrow, _ = draw(BOTH, tmp_path / "narrow")
    assert image_width(png) > image_width(narrow)


def image_width(png: Path) -> int:
    """Of the header chunk (PNG specification, section 11.2.2)."""
    return int.from_bytes(png.read_bytes()[16:20], "big")
