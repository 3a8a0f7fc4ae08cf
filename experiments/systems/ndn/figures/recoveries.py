"""Figure 3: who answers for lost fragments, against the loss rate, with content stores and without."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from experiments.plotting.style import COLOURS, figure, save
from experiments.records.results import StudyResults
from experiments.study.definition.model import FigureSection
from experiments.tables.metric import Metric

PUBLISHER = None
"""In place of a router's distance."""

Source = int | None
Answers = dict[tuple[int, float], dict[Source, int]]


def answers(results: StudyResults) -> Answers:
    """Packets that answered probes, of all repetitions: by contents of a store and loss rate, then by the links
    between consumer and router."""
    own = {point.row["digest"] for point in results.points}
    found: defaultdict[tuple[int, float], defaultdict[Source, int]] = defaultdict(lambda: defaultdict(int))
    for row in results.table("recoveries"):
        if row["digest"] in own:
            place = row["routers.contents"], row["topology.link.loss"]
            found[place][row["distance"] if row["served_by"] == "store" else PUBLISHER] += row["packets"]
    return {place: dict(packets) for place, packets in sorted(found.items())}


def draw(results: StudyResults, section: FigureSection, metrics: Mapping[str, Metric], path: Path) -> list[Path]:
    """experiments.study.evaluation.figures.KINDS. A panel with stores, and one without."""
    found = answers(results)
    panels = sorted({contents for contents, _ in found}, reverse=True)
    distances = sorted({source for packets in found.values() for source in packets if source is not None})
    with figure(width_in=4.0, height_in=3.4, columns=len(panels)) as (made, axes):
        for each, contents in zip(axes, panels, strict=True):
            losses = [loss for stores, loss in found if stores == contents]
            places = range(len(losses))
            total = [sum(found[contents, loss].values()) or 1 for loss in losses]
            below = [0.0] * len(losses)
            for number, source in enumerate((*distances, PUBLISHER)):
                share = [
                    100 * found[contents, loss].get(source, 0) / whole
                    for loss, whole in zip(losses, total, strict=True)
                ]
                label = "the publisher" if source is PUBLISHER else f"a router {source} link{'s' * (source > 1)} away"
                colour = "#999999" if source is PUBLISHER else COLOURS[number % len(COLOURS)]
                each.bar(places, share, 0.7, bottom=below, color=colour, label=label)
                below = [low + part for low, part in zip(below, share, strict=True)]
            each.set_xticks(list(places), [f"{100 * loss:g} %" for loss in losses])
            each.set_xlabel("packets that every link loses")
            each.set_ylim(0, 100)
            each.grid(visible=False, axis="x")
            each.set_title(f"{contents} Data in a store" if contents else "no content stores")
        axes[0].set_ylabel("of the answers to probes (%)")
        made.legend(*axes[0].get_legend_handles_labels(), loc="outside right center")
        return save(made, path, results.heading)
