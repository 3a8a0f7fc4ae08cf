"""Draw the random part of a trial before anything is decided: workers, samples, and where they are stored."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gradbed.common.errors import UserError
from gradbed.controller.systems.shuffle.scheduling.instance import Instance
from gradbed.controller.systems.shuffle.scheduling.queues import Timing
from gradbed.controller.systems.shuffle.scheduling.storage import epochs
from gradbed.experiments.setup import TrialTask
from gradbed.experiments.systems.shuffle.configuration import ShuffleConfiguration
from gradbed.experiments.systems.shuffle.jobs import timing
from gradbed.experiments.systems.shuffle.training import Parts, first_parts
from gradbed.hosts.systems.shuffle.samples import SampleSource
from gradbed.topo.graph import Topology

MASTER_SCHEDULERS = ("coded-master",)


@dataclass(frozen=True)
class RandomInstances:
    """The random part of a trial."""

    source: SampleSource
    first: Parts
    """Samples that each worker has at first."""
    instances: Iterator[Instance]
    """The shuffle before each epoch; endless."""


def draw(task: TrialTask[ShuffleConfiguration], topology: Topology) -> RandomInstances:
    """Draw the samples and shuffles of a trial; equal seeds give equal results."""
    shuffle, samples = task.configuration.shuffle, task.configuration.samples
    source = samples.source(task.seed)
    workers, master = choose_hosts(topology, shuffle.workers, shuffle.scheduler)
    sizes_bytes = source.sizes_bytes(samples.samples)
    first = first_parts(source, samples.samples, len(workers), samples.first, task.seed)
    instances = epochs(workers, sizes_bytes, samples.storage, task.seed, samples.replacement, master, first)
    return RandomInstances(source, first, instances)


def choose_hosts(topology: Topology, workers: int, scheduler: str) -> tuple[list[str], str | None]:
    """Return the workers and the master.

    Workers (0: all hosts) are spread evenly over the hosts; the master, if the scheduler takes one, is the last host.
    """
    names = [host.name for host in topology.hosts]
    master = names.pop() if scheduler in MASTER_SCHEDULERS else None
    if workers > len(names):
        raise UserError(f"{workers} workers need as many hosts, {topology.name} has {len(names)} for them")
    workers = workers or len(names)
    return [names[place * len(names) // workers] for place in range(workers)], master


def scheduler_timing(task: TrialTask[ShuffleConfiguration], topology: Topology, instance: Instance) -> Timing:
    """Return the times by which a scheduler lets packets wait for loans."""
    shuffle = task.configuration.shuffle
    threshold_us = task.scale.time_us(shuffle.threshold_us)
    return timing(topology, instance, shuffle.bits, shuffle.fragment_bytes, threshold_us)
