"""Common style of all figures, and files in every format."""

from __future__ import annotations

import os
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

from gradbed.common.store import cache_dir, make_cache_folder
from gradbed.experiments.tables.metric import prefix_of

FORMATS = ("png", "svg", "pdf")

COLOURS = ("#4477AA", "#EE6677", "#228833", "#CCBB44", "#66CCEE", "#AA3377", "#BBBBBB", "#332288")
"""Paul Tol's "bright" qualitative scheme (SRON/EPS/TN/09-002), which colour-blind readers can tell apart, and indigo.
"""

MARKERS = ("o", "s", "^", "X", "v", "P", "h", "*")

CHARACTERS_PER_INCH = 13
"""Characters of the common font in an inch, about."""

TICK_GAP_PX = 4
"""Smallest gap between two texts along an axis."""

OTHER_CLOCK = "D"
"""Marker of points that were measured on the other clock, in any series."""

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
"""Settings of matplotlib.

The hashsalt makes equal data give equal SVG. Fonts stay text.
"""


class NothingToDraw(Exception):
    """Raised for a figure without points, or one that cannot be drawn for the reason given."""


def load_drawing() -> None:
    """Load what a figure needs, which is half of the time that the first one takes."""
    # Its cache, wherever home is, and no style of the user's: figures look alike for all.
    own = cache_dir() / "matplotlib"
    os.environ.setdefault("MPLCONFIGDIR", str(own))
    with suppress(OSError):  # matplotlib finds another place, and says so
        make_cache_folder(own)
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot  # noqa: F401
    from matplotlib.backends import backend_pdf, backend_svg  # noqa: F401


@contextmanager
def figure(
    width_in: float = 4.8, height_in: float = 3.3, columns: int = 1, rows: int = 1
) -> Iterator[tuple[Any, Sequence[Any]]]:
    """Yield a matplotlib figure and its axes, row by row, in the common style; it is closed at the end.

    Args:
        width_in: of each panel.
        height_in: of each panel.

    Raises:
        NothingToDraw: there are no rows or columns.
    """
    if not rows * columns:
        raise NothingToDraw
    load_drawing()
    import matplotlib as mpl
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
    """Return whether the legend inside the axes lies over a curve, marker, interval or bar, once all is laid out."""
    from matplotlib.transforms import Bbox

    legend = axes.get_legend()
    if legend is None:
        return False
    renderer = axes.figure.canvas.get_renderer()
    box = legend.get_window_extent(renderer)
    paths = [line.get_transform().transform_path(line.get_path()) for line in axes.lines if len(line.get_xydata())]
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
    """Merge all legends into one below the panels, if one lies over what is drawn."""
    if not any(covers(axes) for axes in made.axes):
        return
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


def set_scaled_axis(axis: Any, values: Sequence[float], unit: str) -> str:
    """Let the ticks of an axis count in the SI prefix of the largest value, and return the unit with the prefix.

    Values stay in the unit; "us" counts as seconds. A logarithmic axis has plain numbers at its ticks.
    """
    from matplotlib.ticker import FuncFormatter, NullFormatter

    base, root = (1e-6, "s") if unit == "us" else (1.0, unit)
    factor, prefix = prefix_of([base * value for value in values], root)
    is_log = axis.get_scale() == "log"
    if not prefix and base == 1 and not (is_log and unit):
        return unit
    number = FuncFormatter(lambda value, _: f"{base * value / factor:,.6g}")
    axis.set_major_formatter(number)
    above = [value for value in values if value > 0]
    if is_log:
        axis.set_minor_formatter(number if above and max(above) < 10 * min(above) else NullFormatter())
    return f"{prefix}{root}"


def _fit_ticks(made: Any) -> None:
    """Make room along an x axis where one text would touch the next.

    Of numbers some are left out; words are broken into lines, and rotated if that is not enough.
    """
    for axes in made.axes:
        found = list(_ticks(axes))
        if any(text.get_rotation() for _, text in found) or not _touch(text for _, text in found):
            continue
        words = [text.get_text() for _, text in found]
        if all(any(letter.isdigit() for letter in word) and not _WORD.search(word) for word in words):
            kept: list[Any] = []
            for _, text in found:
                if not _touch([*kept[-1:], text]):
                    kept.append(text)
            labels = [text.get_text() if text in kept else "" for _, text in found]
            axes.set_xticks([place for place, _ in found], labels)
            continue
        boxes = [text.get_window_extent() for _, text in found]
        room_px = min(right.x0 + right.x1 - left.x0 - left.x1 for left, right in pairwise(boxes)) / 2 - TICK_GAP_PX
        lines = [_broken(word, int(len(word) * room_px / box.width)) for word, box in zip(words, boxes, strict=True)]
        axes.set_xticks([place for place, _ in found], lines)
        made.draw_without_rendering()
        if _touch(text for _, text in _ticks(axes)):
            axes.set_xticks([place for place, _ in found], words)
            axes.tick_params(axis="x", labelrotation=15)


_WORD = re.compile(r"[A-Za-z]{4}")
_PART = re.compile(r"[^-: ]*[-: ]*")


def _broken(word: str, room: int) -> str:
    """Return the word in lines of at most `room` characters, broken after hyphens, colons and spaces."""
    lines = [""]
    for part in _PART.findall(word):
        if lines[-1] and len(lines[-1] + part.rstrip()) > room:
            lines.append("")
        lines[-1] += part
    return "\n".join(line.strip() for line in lines)


def _touch(texts: Iterable[Any]) -> bool:
    boxes = sorted((text.get_window_extent() for text in texts), key=lambda box: box.x0)
    return any(left.x1 + TICK_GAP_PX > right.x0 for left, right in pairwise(boxes))


def _ticks(axes: Any) -> Iterator[tuple[float, Any]]:
    """Yield place and text along the x axis, without those that lie outside and are not drawn."""
    least, most = sorted(axes.get_xlim())
    for place, text in zip(axes.get_xticks(), axes.get_xticklabels(), strict=True):
        if text.get_text() and least <= place <= most:
            yield place, text


def _break_labels(made: Any) -> None:
    """Break labels that are longer than their axis."""
    for axes in made.axes:
        frame = axes.get_window_extent()
        for label, side, room in (
            (axes.xaxis.label, "width", frame.width),
            (axes.yaxis.label, "height", frame.height),
        ):
            if (length := getattr(label.get_window_extent(), side)) > room:
                longest = max(map(len, label.get_text().splitlines()))
                label.set_text(textwrap.fill(label.get_text(), int(longest * room / length)))


def save(made: Any, path: Path, heading: str = "") -> list[Path]:
    """Write the figure as PNG, SVG and PDF, without dates in them, and return the files.

    Args:
        path: without suffix.
        heading: lines on what the study is and how its trials were measured.
    """
    width_in = made.get_size_inches()[0]
    if heading:
        lines = [
            textwrap.fill(line, int(width_in * CHARACTERS_PER_INCH), break_on_hyphens=False)
            for line in heading.splitlines()
        ]
        made.suptitle("\n".join(lines), fontsize=9, x=0.01, ha="left")
    # Arranged here, not anew for each format: what is mended takes room, so that the next is seen after it alone.
    arrange = made.get_layout_engine().execute
    for mend in (_fit_ticks, _legends_below, _break_labels, _fit_ticks):
        arrange(made)
        mend(made)
    arrange(made)
    made.set_layout_engine("none")
    written = []
    for suffix in FORMATS:
        target = path.with_name(f"{path.name}.{suffix}")
        metadata = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}[suffix]
        made.savefig(target, dpi=150, metadata=metadata)
        written.append(target)
    return written
