"""Figures of NDN (docs/ndn.md) that need more than lines, as figure kinds that studies name."""

from __future__ import annotations

from collections import defaultdict

from gradbed.experiments.plotting.series import draw_all, draw_companion, explain_marks, verdicts
from gradbed.experiments.plotting.style import COLOURS
from gradbed.experiments.results.study_results import StudyResults
from gradbed.experiments.study.evaluation.kinds import Sheet, figure_kind

# ---- Byte hops ----
#
# Figure 1: what all links together carry for a gradient of every peer, against the number of peers.


EXACT = {
    "unicast": "unicast: sum of all distances",
    "push": "push: n E",
    "ring": "ring: 4 (n - 1) / n E",
}
"""Label of each exchange's closed form, without headers and Interests.

n: number of peers; E: edges of the tree that spans them.
"""
SUMMED = "sums in every switch: 2 E"


@figure_kind("ndn-byte-hops", width_in=5.6, height_in=4.2)
def draw_byte_hops(sheet: Sheet) -> None:
    """Draw figure 1."""
    [axes], results = sheet.axes, sheet.results
    measured = results.series("workload.peers", "gradient_hops", "workload.exchange")
    exact = results.series("workload.peers", "expected_hops", "workload.exchange")
    measured = sheet.on_log_axes(measured, y=True)
    draw_all(axes, measured, names={exchange: f"{exchange}, measured" for exchange in measured})
    for number, exchange in enumerate(measured):
        if exchange in EXACT:
            draw_companion(axes, exact[exchange], label=EXACT[exchange], number=number, dashes=":")
    for points in results.series("workload.peers", "summed_hops").values():
        draw_companion(axes, points, label=SUMMED, number=None, dashes="--")
    axes.set(xlabel="peers (n)", yscale="log", ylabel="bytes x hops of a round / gradient bytes")
    axes.xaxis.get_major_locator().set_params(integer=True)
    explain_marks(axes, verdicts(measured))
    axes.legend(fontsize="small", ncols=2)


# ---- Recoveries ----
#
# Figure 3: who answers for lost fragments, against the loss rate, with content stores and without.


PUBLISHER = None
"""Stands for the publisher in place of a router's distance."""

Source = int | None
Answers = dict[tuple[int, float], dict[Source, int]]


def answers(results: StudyResults) -> Answers:
    """Return the packets that answered probes, over all repetitions.

    The first key is (contents of a store, loss rate), the second the number of links between consumer and router.
    """
    own = {trial.row["digest"] for trial in results.trials}
    found: defaultdict[tuple[int, float], defaultdict[Source, int]] = defaultdict(lambda: defaultdict(int))
    for row in results.table("recoveries"):
        if row["digest"] in own:
            place = row["routers.contents"], row["topology.link.loss"]
            found[place][row["distance"] if row["served_by"] == "store" else PUBLISHER] += row["packets"]
    return {place: dict(packets) for place, packets in sorted(found.items())}


def stores(results: StudyResults) -> list[int]:
    """Return the store sizes of the trials, the largest first: a panel for each."""
    return sorted({contents for contents, _ in answers(results)}, reverse=True)


@figure_kind("ndn-recoveries", columns=lambda results, _: len(stores(results)), width_in=4.0, height_in=3.4)
def draw_recoveries(sheet: Sheet) -> None:
    """Draw figure 3."""
    axes, found = sheet.axes, answers(sheet.results)
    distances = sorted({source for packets in found.values() for source in packets if source is not None})
    for panel, contents in zip(axes, stores(sheet.results), strict=True):
        by_loss = {loss: packets for (stored, loss), packets in found.items() if stored == contents}
        places, below = range(len(by_loss)), [0.0] * len(by_loss)
        for number, source in enumerate((*distances, PUBLISHER)):
            share = [100 * packets.get(source, 0) / (sum(packets.values()) or 1) for packets in by_loss.values()]
            label = "the publisher" if source is PUBLISHER else f"a router {source} link{'s' * (source > 1)} away"
            colour = "#999999" if source is PUBLISHER else COLOURS[number % len(COLOURS)]
            panel.bar(places, share, 0.7, bottom=below, color=colour, label=label)
            below = [low + part for low, part in zip(below, share, strict=True)]
        panel.set_xticks(list(places), [f"{100 * loss:g} %" for loss in by_loss])
        title = f"content stores of {contents:,} Data packets" if contents else "no content stores"
        panel.set(xlabel="loss of every link", ylim=(0, 100), title=title)
        panel.grid(visible=False, axis="x")
    axes[0].set_ylabel("share of answers to probes (%)")
    axes[0].figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right center")
