"""The figure of a run of one point: the phases of a job side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gradbed.experiments.plotting.style import figure, save
from gradbed.experiments.systems.aggregation.phase import IN_NETWORK, PARAMETER_SERVER

Row = Mapping[str, Any]

COLOURS = {PARAMETER_SERVER: "#b35806", IN_NETWORK: "#2166ac", "ring": "#1b7837", "gloo": "#762a83"}
STYLES = {PARAMETER_SERVER: "-", IN_NETWORK: ":", "ring": "--", "gloo": "-."}


def draw(summary: Sequence[Row], rounds: Sequence[Row], path: Path) -> list[Path]:
    """Draw one job's bytes into the server's link, round times, accuracy if it trained, and with several phases the
    bytes on all links; write `path` in every format. summary: a row for each phase; rounds: one for each round."""
    served = [row for row in summary if row["has_server"]]
    panels = [
        *([_draw_traffic] if served else []),
        _draw_times,
        *([_draw_accuracy] if all(row["accuracy"] is not None for row in summary) else []),
        *([_draw_all_links] if len(served) < len(summary) else []),
    ]
    with figure(3.5, 3.2, columns=len(panels)) as (made, axes):
        for panel, own in zip(panels, axes, strict=True):
            panel(own, summary, rounds)
        return save(made, path)


def _draw_traffic(axes: Any, summary: Sequence[Row], rounds: Sequence[Row]) -> None:
    served = [row for row in summary if row["has_server"]]
    kilobytes = [row["server_in_gradient_bytes"] / row["rounds"] / 1e3 for row in served]
    names = [row["phase"] for row in served]
    axes.bar_label(axes.bar(names, kilobytes, color=[COLOURS[name] for name in names], width=0.6), fmt="%.1f")
    if len(served) > 1:
        workers = served[0]["workers"]
        axes.axhline(kilobytes[0] / workers, color="black", linewidth=0.8, linestyle="--")
        axes.annotate(
            f"1/{workers} of the server alone", (1, kilobytes[0] / workers), xytext=(0, 14),
            textcoords="offset points", ha="center", fontsize=8,
        )  # fmt: skip
    axes.set_ylabel("gradient bytes into the\nserver's link (kB per round)")


def _draw_times(axes: Any, summary: Sequence[Row], rounds: Sequence[Row]) -> None:
    for phase in summary:
        name = phase["phase"]
        values = sorted(1e3 * row["round_time_s"] for row in rounds if row["phase"] == name)
        share = [(i + 1) / len(values) for i in range(len(values))]
        axes.step(values, share, where="post", color=COLOURS[name], label=name)
        if phase["least_round_time_s"]:
            axes.axvline(1e3 * phase["least_round_time_s"], color=COLOURS[name], linewidth=0.8, linestyle="--")
    axes.set_xlabel("round time (ms);\ndashed: the least that the links allow")
    axes.set_ylabel("share of rounds")
    axes.set_xlim(left=0)
    axes.set_ylim(0, 1.02)
    axes.legend(loc="lower right")


def _draw_accuracy(axes: Any, summary: Sequence[Row], rounds: Sequence[Row]) -> None:
    # Sums are exact, so all phases give the same weights in every round: one line lies on the other.
    for name in (row["phase"] for row in summary):
        own = [row for row in rounds if row["phase"] == name]
        axes.plot(
            [row["round"] + 1 for row in own], [100 * row["accuracy"] for row in own],
            STYLES[name], color=COLOURS[name], label=name, linewidth=1.2 if STYLES[name] == "-" else 2.4,
        )  # fmt: skip
    axes.set_xlabel("round")
    axes.set_ylabel("test accuracy (%)")
    axes.legend(loc="lower right")


def _draw_all_links(axes: Any, summary: Sequence[Row], rounds: Sequence[Row]) -> None:
    kilobytes = [row["byte_hops"] / row["rounds"] / 1e3 for row in summary]
    names = [row["phase"] for row in summary]
    bars = axes.bar([name.replace(" ", "\n") for name in names], kilobytes, color=[COLOURS[name] for name in names])
    axes.bar_label(bars, fmt="%.0f")
    axes.set_ylabel("bytes on all links (kB per round)")
