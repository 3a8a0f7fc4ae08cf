"""Every figure that is drawn here is looked at: no legend lies over a point, and no label is the path of a file."""

from __future__ import annotations

from typing import Any

import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text


def points_under_legends(made: Figure) -> list[tuple[float, float]]:
    """In pixels. Reckoned from the coordinates of what is plotted alone."""
    found = []
    renderer = made.canvas.get_renderer()  # type: ignore[attr-defined]
    boxes = [legend.get_window_extent(renderer) for axes in made.axes if (legend := axes.get_legend())]
    boxes += [legend.get_window_extent(renderer) for legend in made.legends]
    for axes in made.axes:
        frame = axes.get_window_extent(renderer)
        for line in axes.lines:
            for x, y in axes.transData.transform(line.get_xydata()) if line.get_transform() is axes.transData else ():
                if frame.contains(x, y) and any(box.contains(x, y) for box in boxes):
                    found.append((float(x), float(y)))
    return found


@pytest.fixture(autouse=True)
def figures_are_readable(monkeypatch: pytest.MonkeyPatch) -> None:
    save = Figure.savefig

    def looked_at(made: Figure, *arguments: Any, **settings: Any) -> Any:
        assert not points_under_legends(made)
        assert not [text.get_text() for text in made.findobj(Text) if text.get_text().startswith("/")]  # type: ignore[attr-defined]
        return save(made, *arguments, **settings)

    monkeypatch.setattr(Figure, "savefig", looked_at)
