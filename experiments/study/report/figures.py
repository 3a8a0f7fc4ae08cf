"""Figures of a run's folder as parts of a page."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from gradbed.experiments.study.definition.model import FigureSection
from gradbed.experiments.study.report.reading import Run
from gradbed.experiments.tables.words import column_words, path_words

SVG = "http://www.w3.org/2000/svg"
HREF = "{http://www.w3.org/1999/xlink}href"
KEPT = frozenset(
    [
        "circle",
        "clipPath",
        "defs",
        "g",
        "image",
        "line",
        "path",
        "polygon",
        "polyline",
        "rect",
        "svg",
        "text",
        "tspan",
        "use",
    ]
)
"""Elements of SVG that figures have; nothing that runs, and nothing that comes from elsewhere."""
MOST_SVG_BYTES = 700_000
MOST_BYTES = 3_000_000
"""Of all figures of a page."""
FORMATS = ("png", "svg", "pdf")


@dataclass(frozen=True)
class FigureView:
    """svg: for the page itself; empty where there is none that is fit, and then png is a data URL, or empty, too."""

    name: str
    caption: str
    svg: str
    png: str
    files: Sequence[str]


def figures(run: Run) -> list[FigureView]:
    """All of the folder, those of the study first and in its order."""
    found, size = [], 0
    for number, name in enumerate(names(run)):
        files = [f"{name}.{suffix}" for suffix in FORMATS if (run.folder / f"{name}.{suffix}").is_file()]
        caption = _caption(run, name)
        svg = inline_svg(run.folder / f"{name}.svg", f"f{number}-", caption)
        png = "" if svg else _data_url(run.folder / f"{name}.png")
        size += len(svg) + len(png)
        if size > MOST_BYTES:
            svg = png = ""
        found.append(FigureView(name, caption, svg, png, files))
    return found


def names(run: Run) -> list[str]:
    """Of the figures that the folder has, in one format or several."""
    named = list(run.head.figures) if run.head is not None else []
    stems = {path.stem for suffix in FORMATS for path in run.folder.glob(f"*.{suffix}")}
    return [*(name for name in named if name in stems), *sorted(stems - set(named))]


def _caption(run: Run, name: str) -> str:
    section = run.head.figures.get(name) if run.head is not None else None
    if section is None:
        return run.title if name == "figure" else f"{run.title}: {name.replace('_', ' ')}"
    if section.kind == "distribution":
        return section.title or f"Distribution of {column_words(section.x)}"
    return section.title or f"{_meaning(run, section)} against {path_words(section.x)}"


def _meaning(run: Run, section: FigureSection) -> str:
    metric = run.system.metrics.get(section.y) if run.system is not None else None
    words = column_words(section.y) if metric is None else metric.meaning
    return words[:1].upper() + words[1:]


def inline_svg(path: Path, prefix: str, alt: str) -> str:
    """A drawing of matplotlib as part of an HTML page: its ids begin with prefix, black and white follow the page's
    colours, and it takes its size from the page. Empty if it is too large, or cannot be read."""
    try:
        if path.stat().st_size > MOST_SVG_BYTES:
            return ""
        root = ElementTree.parse(path).getroot()
    except (OSError, ElementTree.ParseError):
        return ""
    if _name(root) != "svg" or "viewBox" not in root.attrib:
        return ""
    _clean(root, prefix)
    root.attrib = {
        "viewBox": root.attrib["viewBox"],
        "class": "figure",
        "role": "img",
        "aria-label": alt,
        "style": f"max-width: {root.attrib['viewBox'].split()[2]}pt; stroke-linejoin: round; stroke-linecap: butt",
    }
    ElementTree.register_namespace("", SVG)
    return ElementTree.tostring(root, encoding="unicode")


def _name(element: ElementTree.Element) -> str:
    return element.tag.removeprefix(f"{{{SVG}}}")


def _clean(element: ElementTree.Element, prefix: str) -> None:
    for child in list(element):
        if _name(child) in KEPT:
            _clean(child, prefix)
        else:
            element.remove(child)
    kept = {}
    for name, value in element.attrib.items():
        if name in ("href", HREF):
            if value.startswith("#"):
                kept["href"] = f"#{prefix}{value[1:]}"
            elif value.startswith("data:image/png;base64,"):
                kept["href"] = value
        elif name == "id":
            kept["id"] = f"{prefix}{value}"
        elif not name.startswith(("on", "{")) and not re.search(r"url\((?!#)", value):
            kept[name] = _recoloured(re.sub(r"url\(#", f"url(#{prefix}", value))
    element.attrib = kept


def _recoloured(value: str) -> str:
    return re.sub("#000000|#000(?![0-9a-f])", "currentColor", value).replace("#ffffff", "var(--card)")


def _data_url(path: Path) -> str:
    try:
        return f"data:image/png;base64,{base64.b64encode(path.read_bytes()).decode()}"
    except OSError:
        return ""
