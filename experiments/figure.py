"""The figure of the aggregation experiment."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from experiments.outcome import ModeOutcome

COLOURS = {"parameter server": "#b35806", "in-network": "#2166ac"}


def draw(outcomes: Sequence[ModeOutcome], path: Path) -> list[Path]:
    """Draw bytes into the server's link, round time and accuracy; write `path` as PNG and as PDF."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    plt.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False})
    figure, (traffic, time, accuracy) = plt.subplots(1, 3, figsize=(10.5, 3.2), layout="constrained")
    labels = [outcome.mode for outcome in outcomes]
    colours = [COLOURS[outcome.mode] for outcome in outcomes]

    kilobytes = [outcome.server_in.bytes / outcome.rounds / 1e3 for outcome in outcomes]
    bars = traffic.bar(labels, kilobytes, color=colours, width=0.6)
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

    # Sums are exact, so both modes give the same weights in every round: one line lies on the other.
    for outcome, style in zip(outcomes, ("-", ":"), strict=True):
        accuracy.plot(
            [row.round + 1 for row in outcome.per_round],
            [100 * row.accuracy for row in outcome.per_round],
            style, color=COLOURS[outcome.mode], label=outcome.mode, linewidth=1.2 if style == "-" else 2.4,
        )  # fmt: skip
    accuracy.set_xlabel("round")
    accuracy.set_ylabel("test accuracy (%)")
    accuracy.legend(frameon=False, loc="lower right")

    written = [path.with_suffix(suffix) for suffix in (".png", ".pdf")]
    for target in written:
        figure.savefig(target, dpi=150)
    plt.close(figure)
    return written
