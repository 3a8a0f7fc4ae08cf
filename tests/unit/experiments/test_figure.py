"""The figure of the aggregation experiment."""

from pathlib import Path

from experiments.figure import draw
from tests.unit.experiments.outcomes import BOTH


def test_png_and_pdf_are_written(tmp_path: Path) -> None:
    png, pdf = draw(BOTH, tmp_path / "figure")
    assert png.read_bytes().startswith(b"\x89PNG")
    assert pdf.read_bytes().startswith(b"%PDF")
