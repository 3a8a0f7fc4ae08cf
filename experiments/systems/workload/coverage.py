"""What of the programs the packets of a point reached, as metrics and rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradbed.experiments.tables.metric import Value
from gradbed.switch.insight.coverage.coverage import Report


def coverage_metrics(reports: Sequence[Report]) -> dict[str, Value]:
    """Of all programs together; None where coverage was not asked for."""
    if not reports:
        return dict.fromkeys(("covered_statements", "unused_entries"))
    reached, total = _sum(reports, "statements")
    used, entries = _sum(reports, "table entries")
    return {"covered_statements": reached / total if total else None, "unused_entries": entries - used}


def _sum(reports: Sequence[Report], category: str) -> tuple[int, int]:
    """Reached, and how many there are."""
    pairs = [report.reached(category) for report in reports]
    return sum(reached for reached, _ in pairs), sum(total for _, total in pairs)


def coverage_rows(reports: Sequence[Report]) -> list[dict[str, Any]]:
    """One row for each thing that packets may reach."""
    return [
        {
            "program": report.program,
            "category": category,
            "name": item.name,
            "file": item.source.file if item.source else None,
            "line": item.source.line if item.source else None,
            "hits": item.hits,
        }
        for report in reports
        for category, items in report.items.items()
        for item in items
    ]
