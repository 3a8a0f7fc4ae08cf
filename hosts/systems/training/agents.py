"""The agents of training: a rank, and a host that adds up what switches could not."""

from __future__ import annotations

import contextlib
from functools import lru_cache
from pathlib import Path

from gradbed.hosts.agents.context import AgentContext
from gradbed.hosts.systems.training.config import RankConfig, ServerConfig, read_job
from gradbed.hosts.systems.training.plans import Plans
from gradbed.hosts.systems.training.rank import Rank
from gradbed.hosts.systems.training.source import trace_of


def prepare(config: RankConfig | ServerConfig) -> None:
    """Read what all ranks of a job share."""
    if isinstance(config, RankConfig):
        _plans(config.file)


@lru_cache(maxsize=8)
def _plans(file: Path) -> Plans:
    return Plans(read_job(file))


def rank(context: AgentContext, config: RankConfig) -> None:
    """Execute the rank's graph as often as the job says; answer the others until stop."""
    job, number = read_job(config.file), config.rank
    with contextlib.closing(context.open_queue_pairs(job.ranks[number])) as pairs:
        graph = trace_of(job.source).nodes(number)
        executing = Rank(context, job, number, graph, pairs, _plans(config.file))
        context.emit("ready")
        if not context.wait_for_begin():
            return
        for iteration in range(job.iterations):
            report = executing.execute()
            if report is None:
                break
            context.emit("iteration", rank=number, iteration=iteration, **vars(report))
        executing.serve()
        context.emit("final", statistics=executing.statistics())


def server(context: AgentContext, config: ServerConfig) -> None:
    """Serve until stop; the NIC adds and answers by itself."""
    with contextlib.closing(context.open_queue_pairs(config.address)) as pairs:
        for number, options in config.streams.items():
            pairs.open_stream(number, options)
        context.emit("ready")
        while not context.stopped:
            context.wait()
        parts = {number: pairs.stream_statistics(number).parts for number in config.streams}
        context.emit("final", statistics={"parts": sum(parts.values())})
