"""The figure of the aggregation experiment."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from experiments.systems.aggregation.outcome import BASELINES, ModeOutcome

COLOURS = {"parameter server": "#b35806", "in-network": "#2166ac", "ring": "#1b7837", "gloo": "#762a83"}
STYLES = {"parameter server": "-", "in-network": ":", "ring": "--", "gloo": "-."}


def draw(outcomes: Sequence[ModeOutcome], path: Path) -> list[Path]:
    """Draw one job's bytes into the server's link, round times and accuracy, with baselines also the bytes on all
    links; write `path` as PNG and as PDF."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    plt.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False})
    served = [outcome for outcome in outcomes if outcome.mode not in BASELINES]
    panels = 3 if len(served) == len(outcomes) else 4
    figure, axes = plt.subplots(1, panels, figsize=(3.5 * panels, 3.2), layout="constrained")
    traffic, time, accuracy, *more = axes

    kilobytes = [outcome.server_in.bytes / outcome.rounds / 1e3 for outcome in served]
    colours = [COLOURS[outcome.mode] for outcome in served]
    bars = traffic.bar([outcome.mode for outcome in served], kilobytes, color=colours, width=0.6)
    traffic.bar_label(bars, fmt="%.1f")
    ideal = kilobytes[0] / outcomes[0].workers
    traffic.axhline(ideal, color="black", linewidth=0.8, linestyle="--")
    traffic.annotate(
        f"1/{outcomes[0].workers} of the server alone", (1, ideal), xytext=(0, 14), textcoords="offset points",
        ha="center", fontsize=8,
    )  # fmt: skip
    traffic.set_ylabel("gradient bytes into the\nserver's link (kB per round)")

    for outcome in outcomes:
        values = sorted(1e3 * row.round_time_s for row in outcome.per_round)
        share = [(i + 1) / len(values) for i in range(len(values))]
        time.step(values, share, where="post", color=COLOURS[outcome.mode], label=outcome.mode)
    time.set_xlabel("round time (ms)")
    time.set_ylabel("share of rounds")
    time.set_xlim(left=0)
    time.set_ylim(0, 1.02)

    # Sums are exact, so all modes give the same weights in every round: one line lies on the other.
    for outcome in outcomes:
        style = STYLES[outcome.mode]
        accuracy.plot(
            [row.round + 1 for row in outcome.per_round],
            [100 * row.accuracy for row in outcome.per_round],
            style, color=COLOURS[outcome.mode], label=outcome.mode, linewidth=1.2 if style == "-" else 2.4,
        )  # fmt: skip
    accuracy.set_xlabel("round")
    accuracy.set_ylabel("test accuracy (%)")
    accuracy.legend(frameon=False, loc="lower right")

    for all_links in more:
        kilobytes = [outcome.byte_hops / outcome.rounds / 1e3 for outcome in outcomes]
        colours = [COLOURS[outcome.mode] for outcome in outcomes]
        labels = [outcome.mode.replace(" ", "\n") for outcome in outcomes]
        all_links.bar_label(all_links.bar(labels, kilobytes, color=colours, width=0.6), fmt="%.0f")
        all_links.set_ylabel("bytes on all links (kB per round)")

    written = [path.with_suffix(suffix) for suffix in (".png", ".pdf")]
    for target in written:
        figure.savefig(target, dpi=150)
    plt.close(figure)
    return written
