"""Write a timeline as JSON in Chrome's trace event format, for ui.perfetto.dev and chrome://tracing.

Trace Event Format, complete events ("ph": "X"): times in microseconds, a process for each job, two threads for each
rank.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

FILE = "timeline.perfetto.json"


def trace_events(rows: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the trace events of rows of the table "nodes"."""
    named = set()
    for row in rows:
        computes = row["kind"] in ("compute", "memory")
        thread = 2 * row["rank"] + (not computes)
        if (row["job"], thread) not in named:
            named.add((row["job"], thread))
            what = "computation" if computes else "communication"
            yield {
                "ph": "M",
                "name": "thread_name",
                "pid": row["job"],
                "tid": thread,
                "args": {"name": f"rank {row['rank']} {what}"},
            }
        yield {
            "ph": "X",
            "name": row["name"],
            "cat": row["kind"],
            "pid": row["job"],
            "tid": thread,
            "ts": 1e6 * row["begin_s"],
            "dur": 1e6 * (row["end_s"] - row["begin_s"]),
            "args": {"node": row["node"], "size_bytes": row["size_bytes"], "iteration": row["iteration"]},
        }


def write_timeline(rows: Iterable[dict[str, Any]], folder: Path) -> None:
    """Write the timeline into the folder; no file where no rank reported its nodes."""
    events = list(trace_events(rows))
    if events:
        text = json.dumps({"traceEvents": events, "displayTimeUnit": "ns"})
        (folder / FILE).write_text(text, encoding="utf-8")
