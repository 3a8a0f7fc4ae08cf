"""What ranks told, as rows of tables. Times are nominal, in seconds since the first rank of all began."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from gradbed.experiments.systems.training.phase import TrainingPhase


def _first_ns(phase: TrainingPhase) -> int:
    return min(int(report["begin_ns"]) for reports in phase.reports.values() for report in reports.values())


def _seconds(phase: TrainingPhase, nanoseconds: float) -> float:
    return phase.task.scale.nominal_time(nanoseconds / 1e9)


def iteration_rows(phase: TrainingPhase) -> Iterator[dict[str, Any]]:
    """For each iteration of each job, over all its ranks. exposed_s: what ranks did not compute in, their mean."""
    for job, reports in sorted(phase.reports.items()):
        for iteration in sorted({number for _, number in reports}):
            told = [report for (_, number), report in reports.items() if number == iteration]
            begin_ns, end_ns = min(each["begin_ns"] for each in told), max(each["end_ns"] for each in told)
            computed_ns = statistics.fmean(each["compute_ns"] for each in told)
            yield {
                "phase": phase.name,
                "job": job + 1,
                "iteration": iteration,
                "time_s": _seconds(phase, end_ns - begin_ns),
                "compute_s": _seconds(phase, computed_ns),
                "exposed_s": _seconds(phase, end_ns - begin_ns - computed_ns),
            }


def rank_rows(phase: TrainingPhase) -> Iterator[dict[str, Any]]:
    """For each rank and iteration."""
    first_ns = _first_ns(phase)
    for job, reports in sorted(phase.reports.items()):
        for (rank, iteration), report in sorted(reports.items()):
            yield {
                "phase": phase.name,
                "job": job + 1,
                "rank": rank,
                "host": phase.jobs[job][rank],
                "iteration": iteration,
                "begin_s": _seconds(phase, report["begin_ns"] - first_ns),
                "end_s": _seconds(phase, report["end_ns"] - first_ns),
                "compute_s": _seconds(phase, report["compute_ns"]),
            }


def collective_rows(phase: TrainingPhase) -> Iterator[dict[str, Any]]:
    """For each collective, over the ranks of its group: from the first one's begin to the last one's end. number:
    which of the group's it is. last_begin_s: when the last rank began it."""
    first_ns = _first_ns(phase)
    for job, reports in sorted(phase.reports.items()):
        spans: defaultdict[tuple[tuple[int, ...], int], list[tuple[int, int]]] = defaultdict(list)
        nodes = {}
        for (rank, _), report in sorted(reports.items()):
            graph = phase.trace.nodes(rank)
            for place, instance, begin_ns, end_ns, _digest in report["collectives"]:
                node = graph[place]
                key = node.group or tuple(range(len(phase.jobs[job]))), instance
                spans[key].append((begin_ns, end_ns))
                nodes[key] = node
        for (group, instance), times in spans.items():
            node = nodes[group, instance]
            begin_ns, end_ns = min(begin for begin, _ in times), max(end for _, end in times)
            yield {
                "phase": phase.name,
                "job": job + 1,
                "operation": node.operation.value if node.operation else "",
                "name": node.name,
                "size_bytes": node.size_bytes,
                "ranks": len(group),
                "first_rank": group[0],
                "number": instance,
                "begin_s": _seconds(phase, begin_ns - first_ns),
                "last_begin_s": _seconds(phase, max(begin for begin, _ in times) - first_ns),
                "end_s": _seconds(phase, end_ns - first_ns),
                "time_s": _seconds(phase, end_ns - begin_ns),
            }


def node_rows(phase: TrainingPhase) -> Iterator[dict[str, Any]]:
    """For each node of the ranks that told of them (--timeline)."""
    first_ns = _first_ns(phase)
    for job, reports in sorted(phase.reports.items()):
        for (rank, iteration), report in sorted(reports.items()):
            graph = phase.trace.nodes(rank) if report["spans"] else ()
            for place, begin_ns, end_ns in report["spans"]:
                node = graph[place]
                yield {
                    "phase": phase.name,
                    "job": job + 1,
                    "rank": rank,
                    "iteration": iteration,
                    "node": node.number,
                    "name": node.name,
                    "kind": node.operation.value if node.operation else node.kind.value,
                    "size_bytes": node.size_bytes,
                    "begin_s": _seconds(phase, begin_ns - first_ns),
                    "end_s": _seconds(phase, end_ns - first_ns),
                }
