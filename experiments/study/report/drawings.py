"""What a page shows of a run as drawings: its network, what happened when, and its figures."""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from gradbed.experiments.engine.faults import COMPLETE, MEASURING
from gradbed.experiments.results.run_folder import TrialRecord
from gradbed.experiments.study.definition import FigureSection
from gradbed.experiments.study.report.facts import HtmlTable, plain_table
from gradbed.experiments.study.report.reading import Run
from gradbed.experiments.tables.metric import column_words, engineering, path_words
from gradbed.topo.drawing import Position, is_ring, node_positions
from gradbed.topo.graph import Direction, Topology

# ---- The network, each direction of a link in the colour of its load ----


LEVELS = ((0.001, "idle"), (0.2, "below 20 %"), (0.4, "20 to 40 %"), (0.6, "40 to 60 %"), (0.8, "60 to 80 %"))
HIGHEST = "80 % and more"
LEVEL_WORDS = (*(words for _, words in LEVELS), HIGHEST)

UNIT = 44.0
"""Between neighbours, in the drawing's own units."""
MARGIN = 30.0
APART = 2.6
"""Each of the two directions of a link from the line between its nodes."""

_FATES = {
    "queue_drops": "dropped by queues",
    "socket_drops": "dropped by sockets",
    "losses": "lost",
    "duplicates": "duplicated",
    "pauses_received": "pauses",
}
MOST_LINES = 6000
"""Of all drawings of a page: one is some 250 bytes."""
BUSIEST = 10


@dataclass(frozen=True)
class Line:
    """Link direction in a drawing."""

    level: int
    """Index in LEVEL_WORDS."""
    path: str
    """Path data of SVG."""
    words: str


@dataclass(frozen=True)
class Node:
    name: str
    x: float
    y: float
    is_host: bool
    words: str


@dataclass(frozen=True)
class Drawing:
    """of_bytes: loads are shares of the bytes on the busiest link, as nothing tells rates or times. measured: over
    which time the loads are, in words; empty: nothing tells."""

    heading: str
    measured: str
    width: float
    height: float
    nodes: Sequence[Node]
    lines: Sequence[Line]
    busiest: HtmlTable
    of_bytes: bool
    alt: str


@dataclass
class Drawings:
    """left_out: how many more there would be."""

    drawn: list[Drawing] = field(default_factory=list)
    left_out: int = 0

    @property
    def lines(self) -> int:
        return sum(len(drawing.lines) for drawing in self.drawn)


def level(load: float) -> int:
    """Return the index in LEVEL_WORDS of a load."""
    return next((number for number, (below, _) in enumerate(LEVELS) if load < below), len(LEVELS))


def drawings(run: Run) -> Drawings:
    """Return a drawing for each phase of the first repetition at each place of the sweep, until the page is full."""
    found = Drawings()
    for trial in run.trials:
        if trial.repetition or trial.other_clock:
            continue
        rows_of: dict[str, list[Mapping[str, Any]]] = {}
        for row in trial.tables.get("links", []):
            rows_of.setdefault(str(row["phase"]), []).append(row)
        if not rows_of:
            continue
        network = run.network(trial.digest) if found.lines < MOST_LINES else None
        if (
            network is None
            or found.lines + 2 * len(network.topology.links) * len(rows_of) > MOST_LINES > 0 < found.lines
        ):
            found.left_out += len(rows_of)
            continue
        for phase, rows in rows_of.items():
            drawing = draw_network(network.topology, rows, _heading(trial, phase), _measured(trial, phase))
            if drawing is not None:
                found.drawn.append(drawing)
    return found


def _heading(trial: TrialRecord, phase: str) -> str:
    return f"{trial.place_text.removesuffix(': ')}{': ' if trial.place_text else ''}{phase}"


def _measured(trial: TrialRecord, phase: str) -> str:
    """Return the interval from the end of the warm-up, or the beginning, until the phase was complete."""
    times = {
        row["name"]: engineering(float(row["time_us"]) / 1e6, "s")
        for row in trial.tables.get("timeline", [])
        if row["phase"] == phase and row["what"] == "phase"
    }
    return f"{times.get(MEASURING, '0 s')} to {times[COMPLETE]}" if COMPLETE in times else ""


def draw_network(
    topology: Topology, rows: Iterable[Mapping[str, Any]], heading: str, measured: str
) -> Drawing | None:
    """rows: of the table "links", of one phase. measured: as of Drawing. None if they are of another topology."""
    of = {(str(row["from"]), str(row["to"])): row for row in rows}
    if any(name not in topology.graph for direction in of for name in direction):
        return None
    loads, of_bytes = _loads(of)
    at = {name: (MARGIN + UNIT * x, MARGIN + UNIT * y) for name, (x, y) in node_positions(topology).items()}
    bends = not is_ring(topology)
    lines = []
    for link in topology.links:
        for direction in ((link.a.node, link.b.node), (link.b.node, link.a.node)):
            load = loads.get(direction, 0.0)
            words = _words(topology, direction, of.get(direction), None if of_bytes else load)
            lines.append(Line(level(load), _path(at[direction[0]], at[direction[1]], bends), words))
    nodes = [
        *(Node(host.name, *at[host.name], True, f"host {host.name}, {host.ip}") for host in topology.hosts),
        *(Node(each.name, *at[each.name], False, f"{each.tier} switch {each.name}") for each in topology.switches),
    ]
    xs, ys = ([place[axis] for place in at.values()] or [0.0] for axis in (0, 1))
    busiest = _busiest(of, loads, of_bytes)
    return Drawing(
        heading=heading,
        measured="" if of_bytes else measured,
        width=max(xs) + MARGIN,
        height=max(ys) + MARGIN,
        nodes=nodes,
        lines=sorted(lines, key=lambda line: line.level),
        busiest=busiest,
        of_bytes=of_bytes,
        alt=_alt(topology, heading, busiest),
    )


def _loads(rows: Mapping[Direction, Mapping[str, Any]]) -> tuple[dict[Direction, float], bool]:
    """Return the load of each direction, and whether loads are shares of the largest byte count."""
    told = {direction: float(row["load"]) for direction, row in rows.items() if row.get("load") is not None}
    if told:
        return told, False
    most = max((row["bytes"] for row in rows.values()), default=0)
    return {direction: row["bytes"] / most if most else 0.0 for direction, row in rows.items()}, True


def _words(topology: Topology, direction: Direction, row: Mapping[str, Any] | None, load: float | None) -> str:
    model = topology.link(*direction).model
    rate = "" if model.rate_bps is None else f" of {engineering(model.rate_bps * model.channels, 'bit/s')}"
    arrow = f"{direction[0]} to {direction[1]}"
    if row is None:
        return f"{arrow}: nothing{rate}"
    share = "" if load is None or not rate else f" {100 * load:.1f} %{rate},"
    lost = "".join(f", {row[name]:,} {words}" for name, words in _FATES.items() if row.get(name))
    return f"{arrow}:{share} {row['packets']:,} packets, {engineering(row['bytes'], 'B')}{lost}"


def _path(start: Position, end: Position, bends: bool) -> str:
    """A line beside the one between two nodes; where it would run through others of its row, a bow."""
    length = math.dist(start, end) or 1.0
    right = -(end[1] - start[1]) / length * APART, (end[0] - start[0]) / length * APART
    (x0, y0), (x1, y1) = ((x + right[0], y + right[1]) for x, y in (start, end))
    if bends and start[1] == end[1] and length > 1.5 * UNIT:
        # Both directions on the same side, one outside the other.
        rise = 0.22 * length + (2 * APART if start[0] < end[0] else 0.0)
        return f"M{start[0]:.0f} {start[1]:.0f}Q{(x0 + x1) / 2:.0f} {start[1] - rise:.0f} {end[0]:.0f} {end[1]:.0f}"
    return f"M{x0:.1f} {y0:.1f}L{x1:.1f} {y1:.1f}"


def _busiest(
    rows: Mapping[Direction, Mapping[str, Any]], loads: Mapping[Direction, float], of_bytes: bool
) -> HtmlTable:
    ordered = sorted(rows, key=lambda direction: (-loads.get(direction, 0.0), -rows[direction]["bytes"]))[:BUSIEST]
    cells = [
        (
            f"{direction[0]} to {direction[1]}",
            f"{100 * loads.get(direction, 0.0):.1f} %",
            f"{rows[direction]['packets']:,}",
            engineering(rows[direction]["bytes"], "B"),
            f"{rows[direction].get('queue_drops', 0):,}",
            f"{rows[direction].get('losses', 0):,}",
        )
        for direction in ordered
    ]
    columns = ("link", "of the busiest" if of_bytes else "load", "packets", "bytes", "queue drops", "losses")
    return plain_table(f"The {len(cells)} busiest links", columns, cells, columns[1:])


def _alt(topology: Topology, heading: str, busiest: HtmlTable) -> str:
    most = f"; the busiest is {busiest.rows[0][0]} with {busiest.rows[0][1]}" if busiest.rows else ""
    return (
        f"{heading}: {topology.name} with {len(topology.hosts)} hosts, {len(topology.switches)} switches and "
        f"{len(topology.links)} links, coloured by load{most}."
    )


# ---- What happened when, on one axis ----


WIDTH, LEFT, RIGHT, ROW, TOP = 720.0, 220.0, 30.0, 22.0, 8.0
"""In the drawing's own units."""
MOST = 24
"""Time lines of a page."""


@dataclass(frozen=True)
class Mark:
    """x, until: in the drawing; the same for a moment."""

    y: float
    x: float
    until: float
    kind: str
    name: str
    words: str


@dataclass(frozen=True)
class Tick:
    x: float
    words: str


@dataclass(frozen=True)
class TimelineView:
    heading: str
    height: float
    marks: Sequence[Mark]
    ticks: Sequence[Tick]
    width: float = WIDTH
    left: float = LEFT
    right: float = WIDTH - RIGHT


@dataclass(frozen=True)
class Timelines:
    drawn: Sequence[TimelineView]
    left_out: int


def timelines(run: Run) -> Timelines:
    """Return the timelines of the first repetition at each place of the sweep, phase by phase."""
    found: list[TimelineView] = []
    left_out = 0
    for trial in run.results.trials:
        if trial.repetition:
            continue
        phases: dict[str, list[Mapping[str, Any]]] = {}
        for row in trial.tables.get("timeline", []):
            phases.setdefault(str(row["phase"]), []).append(row)
        place = trial.place_text.removesuffix(": ")
        for phase, rows in phases.items():
            if len(found) < MOST:
                found.append(_view(f"{place}{': ' if place else ''}{phase}", rows))
            else:
                left_out += 1
    return Timelines(found, left_out)


def _view(heading: str, rows: Sequence[Mapping[str, Any]]) -> TimelineView:
    from matplotlib.ticker import MaxNLocator

    end_us = max(max(float(row["last_us"]) for row in rows), 1.0)
    scale = (WIDTH - LEFT - RIGHT) / end_us
    marks = []
    for number, row in enumerate(rows):
        first_us, last_us = float(row["time_us"]), float(row["last_us"])
        times = engineering(first_us / 1e6, "s")
        if last_us > first_us:
            times = f"{row['count']} from {times} to {engineering(last_us / 1e6, 's')}"
        elif row["count"] > 1:
            times = f"{row['count']} at {times}"
        y = TOP + ROW * (number + 0.5)
        marks.append(
            Mark(
                y,
                LEFT + scale * first_us,
                LEFT + scale * last_us,
                row["what"],
                row["name"],
                f"{row['name']}: {times}",
            )
        )
    ticks = [
        Tick(LEFT + scale * time_us, engineering(time_us / 1e6, "s"))
        for time_us in MaxNLocator(5).tick_values(0.0, end_us)
        if 0 <= time_us <= end_us
    ]
    return TimelineView(heading, TOP + ROW * (len(rows) + 1.2), marks, ticks)


# ---- Figures of the run's folder ----


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
    """Return all figures of the folder, those of the study first and in its order."""
    found, size = [], 0
    for number, name in enumerate(figure_names(run)):
        files = [f"{name}.{suffix}" for suffix in FORMATS if (run.folder / f"{name}.{suffix}").is_file()]
        caption = _caption(run, name)
        svg = inline_svg(run.folder / f"{name}.svg", f"f{number}-", caption)
        png = "" if svg else _data_url(run.folder / f"{name}.png")
        size += len(svg) + len(png)
        if size > MOST_BYTES:
            svg = png = ""
        found.append(FigureView(name, caption, svg, png, files))
    return found


def figure_names(run: Run) -> list[str]:
    """Return the names of figures in the folder, each once whatever its formats."""
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
