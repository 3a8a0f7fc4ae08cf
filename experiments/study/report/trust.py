"""What verdicts mean, and why a run has its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from gradbed.experiments.fidelity.report import GRAVITY, FidelityReport, VerdictWord
from gradbed.experiments.fidelity.verdict import LIMITS
from gradbed.experiments.records.run_files import DonePoint
from gradbed.experiments.study.report.reading import Run
from gradbed.experiments.study.report.tables import HtmlTable, plain_table

SHORT: Mapping[VerdictWord, str] = {
    "model": "Time is simulated, so no machine had a part in the numbers",
    "valid": "In real time, and the machine kept up",
    "unknown": "In real time; whether the machine kept up is not known",
    "doubtful": "In real time, and the machine may have had a part in the numbers",
    "invalid": "In real time, and the machine was too slow for the network",
}
"""Beside the verdict, wherever it stands alone."""

MEANING: Mapping[VerdictWord, str] = {
    "model": "The virtual clock: time was computed from event to event, so the machine had no part in the numbers. "
    "The same run gives the same numbers again, to the last byte. What a real machine adds is not in them.",
    "valid": "Real time, and the machine kept up: links sent at their rates, timers were on time, and there were "
    "processors enough. The numbers are those of the network.",
    "unknown": "Real time, but too little could be measured to say whether the machine kept up, such as where no "
    "link has a rate.",
    "doubtful": "Real time, and a measure of the machine went over its first limit. The numbers may be those of the "
    "network, or partly of the machine: run it again with nothing else running, or at a smaller scale.",
    "invalid": "Real time, and the machine was the limit, not the network. Means and figures leave such points out. "
    "Run it again at a smaller scale (--scale), or on the virtual clock.",
}


def meanings(run: Run) -> list[tuple[str, int, str]]:
    """Verdict, how many points have it, and what it means; the worst first."""
    counts = Counter(str(point.row["verdict"]) for point in _once(run).values())
    return [(word, counts[word], MEANING[word]) for word in reversed(GRAVITY) if counts[word]]


def reasons(run: Run) -> list[tuple[str, int]]:
    """Why verdicts are not better, and of how many points."""
    found: Counter[str] = Counter()
    for point in _once(run).values():
        found.update(filter(None, str(point.row.get("verdict_reasons") or "").split("; ")))
    return found.most_common()


def measures(run: Run) -> HtmlTable | None:
    """Of points in real time: for each rule the worst measure, beside its limits. None on the virtual clock."""
    reports = []
    for point in _once(run).values():
        if point.row.get("clock") == "real":
            try:
                reports.append(FidelityReport.of_columns(point.row).measures)
            except KeyError:
                continue  # of an older version
    if not reports:
        return None
    rows = []
    for limit in LIMITS:
        values = [value for each in reports if (value := limit.value(each)) is not None]
        factor, unit = (100, " %") if limit.unit == "%" else (1, f" {limit.unit}")
        worst = f"{factor * max(values):.3g}{unit}" if values else "not measured"
        limits = [
            "never" if bound == float("inf") else f"{factor * bound:g}{unit}"
            for bound in (limit.doubtful, limit.invalid)
        ]
        rows.append((limit.what.rstrip(":"), worst, *limits))
    columns = ("measure", "worst point", "doubtful from", "invalid from")
    return plain_table("Measures of the machine", columns, rows, columns[1:])


def _once(run: Run) -> dict[str, DonePoint]:
    return {point.stored.digest: point for point in run.points}
