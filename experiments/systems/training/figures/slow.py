"""Figure 5: iterations, one after the other, with what is wrong in the network or at a rank."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from gradbed.experiments.study.evaluation.courses import draw_line
from gradbed.experiments.study.evaluation.kinds import Sheet, figure_kind
from gradbed.experiments.tables.intervals import confidence_interval

SLOW, FAULTS = "ranks.slow", "faults"


def _label(configuration: Mapping[str, Any]) -> str:
    slow = [f"{host} computes {factor} times as long" for host, _, factor in _parts(configuration["ranks"]["slow"])]
    faults = [_fault(each) for each in configuration["faults"]]
    return "; ".join([*slow, *faults]) or "nothing"


def _parts(slow: list[str]) -> list[tuple[str, str, str]]:
    return [each.partition(":") for each in slow]


def _fault(fault: Mapping[str, Any]) -> str:
    where = "-".join(fault.get("link", ())) or fault.get("switch", "")
    return f"{fault['fault']} {where} at {fault['at_ms']:g} ms"


@figure_kind("training-slow", width_in=6.0, height_in=3.6)
def draw(sheet: Sheet) -> None:
    """Time of each iteration of the first job; means over repetitions."""
    [axes], results = sheet.axes, sheet.results
    configurations = results.configurations()
    times: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for point in results.points:
        for row in point.table("iterations"):
            if row["job"] == 1:
                times[_label(configurations[point.stored.digest])][row["iteration"]].append(1e3 * row["time_s"])
    for number, (label, found) in enumerate(times.items()):
        steps = sorted(found)
        values = [confidence_interval(found[step]) for step in steps]
        draw_line(axes, steps, values, label=label, number=number, has_band=False)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set(xlabel="iteration", ylabel="iteration time (ms)", ylim=(0, None))
    axes.legend()
