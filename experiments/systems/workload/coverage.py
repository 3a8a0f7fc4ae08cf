"""What of the program the packets of a point reached, as metrics and rows."""

from __future__ import annotations

from typing import Any

from experiments.system import Value
from switch.insight.coverage import Report


def coverage_metrics(report: Report | None) -> dict[str, Value]:
    """None where coverage was not asked for."""
    if report is None:
        return dict.fromkeys(("covered_statements", "unused_entries"))
    reached, total = report.reached("statements")
    used, entries = report.reached("table entries")
    return {"covered_statements": reached / total if total else None, "unused_entries": entries - used}


def coverage_rows(report: Report | None) -> list[dict[str, Any]]:
    """One row for each thing that packets may reach."""
    if report is None:
        return []
    return [
        {
            "category": category,
            "name": item.name,
            "file": item.source.file if item.source else None,
            "line": item.source.line if item.source else None,
            "hits": item.hits,
        }
        for category, items in report.items.items()
        for item in items
    ]
