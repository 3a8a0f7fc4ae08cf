"""Check a training trial: ranks executed their graphs, results equal a closed form, and hosts agree with their
links.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from gradbed.experiments.phases import PhaseResult
from gradbed.experiments.systems.training.phase import TrainingPhase
from gradbed.hosts.systems.training.plans import VALUE_BYTES, digest
from gradbed.hosts.systems.training.traces.graph import Kind

# ---- Results by formula: nothing is sent or added up ----


def expected_result(
    operation: str, group: tuple[int, ...], rank: int, collective: int, values: int, root: int | None
) -> NDArray[np.int64] | None:
    """Return the result of a collective at a rank, (values,), to be taken modulo 2^32; None if the rank gets none.

    It is a closed form: nothing is sent or summed. Input value i of rank r in collective c is i (r + 1) + c. Of p
    ranks, the one at position k keeps the part from k values / p to (k + 1) values / p, rounded down.

    Args:
        values: of each rank's input.
    """
    place, count = group.index(rank), len(group)
    weight = sum(member + 1 for member in group)
    first, last = place * values // count, (place + 1) * values // count
    if operation == "all-reduce" or (operation == "reduce" and rank == root):
        return np.arange(values) * weight + collective * count
    if operation == "reduce-scatter":
        return np.arange(first, last) * weight + collective * count
    if operation == "all-gather" or (operation == "gather" and rank == root):
        return np.concatenate([np.arange(values) * (member + 1) + collective for member in group])
    if operation == "all-to-all":
        return np.concatenate([np.arange(first, last) * (member + 1) + collective for member in group])
    if operation == "broadcast" and root is not None:
        return np.arange(values) * (root + 1) + collective
    if operation == "scatter" and root is not None:
        return np.arange(first, last) * (root + 1) + collective
    return None


# ---- Checks ----


def wrong_executions(phase: TrainingPhase) -> Iterator[str]:
    """Report ranks that did not execute each node of their graph once in each iteration."""
    for job, reports in sorted(phase.reports.items()):
        for (rank, iteration), report in sorted(reports.items()):
            wanted = len(phase.trace.nodes(rank))
            if report["nodes"] != wanted:
                yield f"job {job + 1}, rank {rank}, iteration {iteration}: did {report['nodes']} of {wanted} nodes"


def wrong_results(phase: TrainingPhase) -> Iterator[str]:
    """Report collectives with contents whose results differ from the closed form."""
    if not phase.configuration.collectives.contents:
        return
    for job, reports in sorted(phase.reports.items()):
        everybody = tuple(range(len(phase.jobs[job])))
        for (rank, _), report in sorted(reports.items()):
            graph = phase.trace.nodes(rank)
            for place, instance, _begin_ns, _end_ns, told in report["collectives"]:
                node = graph[place]
                if node.operation is None:
                    continue
                values = node.size_bytes // VALUE_BYTES
                group = node.group or everybody
                expected = expected_result(node.operation.value, group, rank, instance, values, node.root)
                wanted = digest(np.zeros(0, np.int32) if expected is None else expected.astype(np.int32))
                if told != wanted:
                    yield (
                        f"job {job + 1}, rank {rank}, node {node.number} ({node.name}): the result of "
                        f"{node.operation.value} {instance} is wrong"
                    )


def wrong_times(phase: TrainingPhase, found: PhaseResult) -> Iterator[str]:
    """Report impossible times.

    Accelerators must be busy exactly as long as their traces say, and ranks cannot receive faster than their links
    carry.
    """
    for job, reports in sorted(phase.reports.items()):
        begin_ns = min(each["begin_ns"] for each in reports.values())
        end_ns = max(each["end_ns"] for each in reports.values())
        for (rank, iteration), report in sorted(reports.items()):
            wanted_ns = sum(
                round(node.duration_ns * phase.slowdown(job, rank))
                for node in phase.trace.nodes(rank)
                if node.kind is Kind.COMPUTE and not node.on_cpu
            )
            if report["compute_ns"] != wanted_ns:
                yield (
                    f"job {job + 1}, rank {rank}, iteration {iteration}: computed for {report['compute_ns']} ns, by "
                    f"its trace {wanted_ns} ns"
                )
            if report["end_ns"] - report["begin_ns"] < wanted_ns:
                yield f"job {job + 1}, rank {rank}, iteration {iteration}: ended before it could have computed"
        if not phase.configuration.faults:
            yield from _faster_than_links(phase, found, job, end_ns - begin_ns)


def _faster_than_links(phase: TrainingPhase, found: PhaseResult, job: int, span_ns: int) -> Iterator[str]:
    topology = phase.topology
    for rank, host in enumerate(phase.jobs[job]):
        rate_bps = topology.link(host, topology.attachment(host).name).model.rate_bps
        received = found.agents.final.get((phase.number(job), f"rank {rank}"), {}).get("received_bytes")
        # The begin of the first rank is not that of the first bit: a packet's time is more than enough for rounding.
        if rate_bps and received is not None and 8e9 * received > rate_bps * (span_ns + 1000):
            yield f"{host} received {received} bytes of messages in {span_ns} ns, more than its link carries"
