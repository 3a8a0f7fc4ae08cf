"""One look for all figures, and files in every format."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from switch.store import cache_dir

FORMATS = ("png", "svg", "pdf")

COLOURS = ("#4477AA", "#EE6677", "#228833", "#CCBB44", "#66CCEE", "#AA3377", "#BBBBBB")
"""Paul Tol's "bright" qualitative scheme (SRON/EPS/TN/09-002), which colour-blind readers can tell apart."""

MARKERS = ("o", "s", "^", "X", "v", "P", "h")

CHARACTERS_PER_INCH = 13
"""Of the common font, about."""

OTHER_CLOCK = "D"
"""Marker of points of any series that were measured on the other clock."""

_SETTINGS = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.linewidth": 0.4,
    "grid.alpha": 0.4,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "lines.linewidth": 1.3,
    "lines.markersize": 5,
    "svg.hashsalt": "gradbed",
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
}
"""hashsalt: the same data give the same SVG. Fonts stay text."""


class NothingToDraw(Exception):
    """A figure has no point; or why else there is none, for people."""


@contextmanager
def figure(
    width_in: float = 4.8, height_in: float = 3.3, columns: int = 1, rows: int = 1
) -> Iterator[tuple[Any, Sequence[Any]]]:
    """A matplotlib figure and its axes, row by row, in the common style; closed at the end. Sizes are of each.

    NothingToDraw without rows or columns.
    """
    if not rows * columns:
        raise NothingToDraw
    # Its cache, wherever home is, and no style of the user's: figures look alike for all.
    os.environ.setdefault("MPLCONFIGDIR", str(cache_dir() / "matplotlib"))
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    with mpl.rc_context(_SETTINGS):
        made, axes = plt.subplots(
            rows,
            columns,
            figsize=(width_in * columns, height_in * rows),
            layout="constrained",
            squeeze=False,
        )
        try:
            yield made, list(axes.flat)
        finally:
            plt.close(made)


def covers(axes: Any) -> bool:
    """Whether the legend inside the axes lies over a curve, a marker, an interval or a bar, once all is laid out."""
    from matplotlib.transforms import Bbox

    legend = axes.get_legend()
    if legend is None:
        return False
    renderer = axes.figure.canvas.get_renderer()
    box = legend.get_window_extent(renderer)
    curves = [line for line in axes.lines if line.get_transform() == axes.transData and len(line.get_xydata())]
    paths = [axes.transData.transform_path(line.get_path()) for line in curves]
    paths += [
        each.get_transform().transform_path(path)
        for each in axes.collections
        if each.get_visible()
        for path in each.get_paths()
    ]
    bars = [patch.get_window_extent(renderer) for patch in axes.patches]
    return any(path.intersects_bbox(box, filled=False) for path in paths if len(path.vertices)) or any(
        Bbox.intersection(box, bar) is not None for bar in bars if bar.height and bar.width
    )


def _legends_below(made: Any) -> None:
    """All legends as one, below the panels."""
    entries = {}
    for axes in made.axes:
        if (legend := axes.get_legend()) is not None:
            handles, labels = axes.get_legend_handles_labels()
            entries.update({label: handle for handle, label in zip(handles, labels, strict=True)})
            legend.remove()
    width_in = made.get_size_inches()[0]
    widest = max(map(len, entries))
    columns = max(1, min(len(entries), int(width_in * CHARACTERS_PER_INCH / (widest + 8))))
    made.legend(entries.values(), entries.keys(), loc="outside lower center", ncols=columns)


def _fit_labels(axes: Any, width_in: float, height_in: float) -> None:
    """Break the label of the y axis, and turn words along the x axis, where they are longer than there is room."""
    grid = axes.get_subplotspec().get_gridspec()
    room = int(0.75 * height_in / grid.nrows * CHARACTERS_PER_INCH)
    axes.set_ylabel(textwrap.fill(axes.get_ylabel(), room))
    words = [text.get_text() for text in axes.get_xticklabels()]
    if sum(map(len, words)) > 0.75 * width_in / grid.ncols * CHARACTERS_PER_INCH:
        axes.tick_params(axis="x", labelrotation=15)


def save(made: Any, path: Path, heading: str = "") -> list[Path]:
    """Write the figure as PNG, SVG and PDF, without dates in them; `path` is without suffix. heading: what the study
    is and how its points were measured, a line each."""
    width_in, height_in = made.get_size_inches()
    if heading:
        lines = [
            textwrap.fill(line, int(width_in * CHARACTERS_PER_INCH), break_on_hyphens=False)
            for line in heading.splitlines()
        ]
        made.suptitle("\n".join(lines), fontsize=9, x=0.01, ha="left")
    for axes in made.axes:
        _fit_labels(axes, width_in, height_in)
    # Arranged once, not anew for each format.
    made.get_layout_engine().execute(made)
    if any(covers(axes) for axes in made.axes):
        _legends_below(made)
        made.get_layout_engine().execute(made)
    made.set_layout_engine("none")
    written = []
    for suffix in FORMATS:
        target = path.with_name(f"{path.name}.{suffix}")
        metadata = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}[suffix]
        made.savefig(target, dpi=150, metadata=metadata)
        written.append(target)
    return written
