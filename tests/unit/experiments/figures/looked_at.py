"""What a figure must not look like, reckoned without the code that lays it out."""

from __future__ import annotations

from itertools import combinations

from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox


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


def words_over_words(made: Figure) -> list[tuple[str, str]]:
    """Titles, labels and legends that overlap, and with "" those that leave the picture."""
    renderer = made.canvas.get_renderer()  # type: ignore[attr-defined]
    texts = [made._suptitle] if made._suptitle is not None else []  # type: ignore[attr-defined]
    legends = [*made.legends]
    for axes in made.axes:
        least, most = sorted(axes.get_xlim())
        # Where no axis is drawn, ticks have no labels.
        ticks = zip(axes.get_xticks(), axes.get_xticklabels(), strict=False)
        texts += [axes.title, axes.xaxis.label, axes.yaxis.label]
        texts += [text for place, text in ticks if least <= place <= most and not text.get_rotation()]
        legends += [legend] if (legend := axes.get_legend()) else []
    boxes = [(text.get_text(), text.get_window_extent(renderer)) for text in texts if text.get_text()]
    boxes += [("legend", legend.get_window_extent(renderer)) for legend in legends]
    whole = made.bbox.padded(1)
    over = [(one, other) for (one, a), (other, b) in combinations(boxes, 2) if Bbox.intersection(a, b) is not None]
    return over + [(name, "") for name, box in boxes if Bbox.intersection(box, whole).bounds != box.bounds]


def look(made: Figure) -> None:
    """AssertionError if something lies over something else, or a label is the path of a file."""
    made.draw_without_rendering()  # labels go to their places when they are drawn
    paths = [text.get_text() for text in made.findobj(Text) if text.get_text().startswith("/")]  # type: ignore[attr-defined]
    wrong = [*points_under_legends(made), *words_over_words(made), *paths]
    assert not wrong, wrong
