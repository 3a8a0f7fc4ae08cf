"""One phase of a shuffle trial: one shuffle, the configuration of its agents, and their events."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gradbed.controller.systems.shuffle.messages import NewShuffle, ShuffleRequest
from gradbed.controller.systems.shuffle.scheduling.instance import ShuffleInstance, parts
from gradbed.controller.systems.shuffle.scheduling.queues import Timing
from gradbed.controller.systems.shuffle.scheduling.schedule import Schedule, Transmission
from gradbed.controller.systems.shuffle.scheduling.trees import Trees, bits_of, links_above
from gradbed.experiments.configuration.sections import agent_config
from gradbed.experiments.phases import Phase, PhaseResult, Progress
from gradbed.experiments.runtimes.agents import AgentSpec
from gradbed.experiments.setup import TrialTask
from gradbed.experiments.systems.shuffle.configuration import ShuffleConfiguration, TrainingSection
from gradbed.formats.shuffle import frame_overhead_bytes
from gradbed.hosts.agents.config import worker_addresses
from gradbed.hosts.learning.dataset import SHAPES, Samples, load
from gradbed.hosts.learning.model import NeuralNetwork
from gradbed.hosts.systems.shuffle.config import (
    PlannedReception,
    PlannedTransmission,
    RepairGroup,
    RepairTree,
    ShuffleConfig,
    even_fragment_bytes,
    fragments_of,
)
from gradbed.hosts.systems.shuffle.samples import DigitSamples, SampleSource, from_base64
from gradbed.topo.graph import Topology, is_hop

# ---- The shuffle and its agents ----


AGENT = "gradbed.hosts.systems.shuffle.agents:worker"


class ShuffleJob:
    """Job of one shuffle of a trial, once the service has answered.

    Workers that train report the bytes that they hold at the end.
    """

    def __init__(
        self,
        task: TrialTask[ShuffleConfiguration],
        topology: Topology,
        instance: ShuffleInstance,
        keep: Sequence[Sequence[int]],
        answer: Mapping[str, Any],
        source: SampleSource,
    ) -> None:
        """Prepare the shuffle.

        Args:
            keep: samples that each worker holds in the end.
        """
        self._task = task
        options = task.configuration.shuffle
        self.topology = topology
        self.instance = instance
        self.keep = keep
        self.answer = NewShuffle.model_validate(answer)
        self.fragment_bytes = even_fragment_bytes(instance.sizes_bytes, options.fragment_bytes)
        self._source = source
        self.trees = Trees(topology, instance.hosts, options.trees)
        self._workers = worker_addresses(topology, instance.hosts)

    @property
    def schedule(self) -> Schedule:
        return self.answer.schedule

    def fragments(self, transmission: Transmission) -> int:
        """Return the number of packets of a transmission."""
        longest = max(self.instance.sizes_bytes[sample] for sample in transmission.samples)
        return fragments_of(longest, self.fragment_bytes)

    def interval_us(self, sender: int) -> float:
        """Return the time between two packets of a sender."""
        return frame_interval_us(self.topology, self.instance.hosts[sender], self.answer.bits, self.fragment_bytes)

    def agents(self) -> list[AgentSpec]:
        sent_us: dict[int, int] = {}
        place: dict[int, int] = {}
        for sender, queue in enumerate(self.schedule.queues):
            frames = accumulate(self.fragments(self.schedule.transmissions[number]) for number in queue)
            for index, (number, total) in enumerate(zip(queue, frames, strict=True)):
                place[number] = index
                sent_us[number] = math.ceil(total * self.interval_us(sender))
        incoming: defaultdict[int, list[PlannedReception]] = defaultdict(list)
        for each in self.schedule.transmissions:
            for worker, sample in each.receivers:
                incoming[worker].append(
                    PlannedReception(
                        number=each.number,
                        sender=each.sender,
                        place=place[each.number],
                        planned_us=sent_us[each.number],
                        samples=each.samples,
                        wanted=sample,
                        asked=self._asked(each, worker, sample),
                        lent_for=each.lent_for,
                    )
                )
        return [
            AgentSpec(host, AGENT, self.agent_name(index), self._config(index, incoming[index]), 0, self.answer.job)
            for index, host in enumerate(self.instance.hosts)
        ]

    def agent_name(self, index: int) -> str:
        return f"worker {index}" if index < len(self.instance.workers) else "master"

    def _asked(self, transmission: Transmission, worker: int, sample: int) -> tuple[int, ...]:
        """Return the holders that a worker asks for a sample, in order.

        First comes the sender, or who lent the sample to it; then all others that store it, the nearest to the worker
        first.
        """
        first = transmission.sender
        if not self.instance.stores(first, sample):
            loans = [self.schedule.transmissions[number] for number in transmission.waits_for]
            first = next(loan.sender for loan in loans if loan.samples == (sample,))
        others = [each for each in range(len(self.instance.hosts)) if self.instance.stores(each, sample)]
        others.sort(key=self.trees.distances[worker].__getitem__)
        return first, *(each for each in others if each != first)

    def _config(self, index: int, incoming: Sequence[PlannedReception]) -> ShuffleConfig:
        instance, schedule = self.instance, self.schedule
        own = [schedule.transmissions[number] for number in schedule.queues[index]] if schedule.queues else []
        is_worker = index < len(instance.workers)
        stored = instance.stored[index] if is_worker else tuple(range(instance.samples))
        met = {*stored, *(s for each in incoming for s in each.samples), *(s for each in own for s in each.samples)}
        return agent_config(
            ShuffleConfig,
            self._task.scale,
            self._task.configuration.shuffle,
            job=self.answer.job,
            index=index,
            workers=self._workers,
            source=self._source,
            bits=self.answer.bits,
            fragment_bytes=self.fragment_bytes,
            sizes_bytes={sample: instance.sizes_bytes[sample] for sample in sorted(met)},
            stored=stored,
            keep=tuple(self.keep[index]) if is_worker else stored,
            outgoing=tuple(self._outgoing(each) for each in own),
            incoming=tuple(incoming),
            holders={sample: instance.holders[sample] for sample in stored},
            repair_routes=(*self._repair_trees(own), *self._repair_groups(own)),
            distances=tuple(map(int, self.trees.distances[index])),
            interval_us=self.interval_us(index),
            tell_contents=self._task.configuration.training.train,
        )

    def _outgoing(self, each: Transmission) -> PlannedTransmission:
        delivery = self.answer.deliveries[each.number]
        return PlannedTransmission(
            number=each.number,
            samples=each.samples,
            receivers=each.receivers,
            dst_ip=delivery.dst_ip,
            bift_id=delivery.bift_id,
            waits_for=each.waits_for,
            is_loan=each.lent_for is not None,
        )

    def _repair_trees(self, own: Sequence[Transmission]) -> Iterator[RepairTree]:
        """Yield the trees on which the sender sends by bit string.

        Such copies need no group, so any set of receivers can have one.
        """
        for number in sorted({sent.tree for sent in own if self.answer.deliveries[sent.number].dst_ip is None}):
            above = links_above(self.schedule.trees[number], self.trees.is_inside)
            yield RepairTree(
                bift_id=self.answer.first_bift_id + number,
                hosts=bits_of(place for place, host in enumerate(self.instance.hosts) if host in above),
                up=tuple(above.get(host, 0) for host in self.instance.hosts),
            )

    def _repair_groups(self, own: Sequence[Transmission]) -> Iterator[RepairGroup]:
        """Yield the groups of the sender's transmissions to several receivers."""
        for each in {self.answer.deliveries[sent.number].dst_ip: sent for sent in own}.values():
            dst_ip = self.answer.deliveries[each.number].dst_ip
            if dst_ip is not None and len(each.receivers) > 1:
                members = bits_of(worker for worker, _ in each.receivers)
                yield RepairGroup(dst_ip=dst_ip, members=members, cost_hops=each.hops)


def frame_interval_us(topology: Topology, host: str, bits: int, fragment_bytes: int) -> float:
    """Return the time between two packets at the rate of the slowest of a host's own links; 0 without any limit."""
    links = [topology.link(host, other) for other in topology.neighbours(host)]
    if not all(is_hop(topology, link) for link in links):  # its NICs are those of its relay
        relay = topology.attachment(host).name
        links = [topology.link(relay, other) for other in topology.neighbours(relay)]
        links = [link for link in links if is_hop(topology, link)]
    rates_bps = [link.model.rate_bps for link in links if link.model.rate_bps is not None]
    return 1e6 * 8 * (frame_overhead_bytes(bits) + fragment_bytes) / min(rates_bps) if rates_bps else 0.0


def timing(
    topology: Topology, instance: ShuffleInstance, bits: int, most_fragment_bytes: int, threshold_us: int
) -> Timing:
    """Return how long hosts and switches take to send a packet as long as the longest sample, and links to deliver
    it.
    """
    fragment_bytes = even_fragment_bytes(instance.sizes_bytes, most_fragment_bytes)
    frames = fragments_of(max(instance.sizes_bytes), fragment_bytes)
    packet_us = math.ceil(frames * frame_interval_us(topology, instance.hosts[0], bits, fragment_bytes))
    hop_delay_us = max(link.model.delay_us + link.model.jitter_us for link in topology.links)
    return Timing(host_us=packet_us, router_us=packet_us, threshold_us=threshold_us, hop_delay_us=hop_delay_us)


# ---- The phase ----


class ShufflePhase(Phase):
    """Phase of one shuffle."""

    def __init__(
        self,
        name: str,
        request: ShuffleRequest,
        make_job: Callable[[Mapping[str, Any]], ShuffleJob],
        stopped: Collection[str] = (),
    ) -> None:
        """Prepare the phase.

        Args:
            make_job: makes the shuffle from the service's answer.
            stopped: names of agents that are stopped for good, which the phase does not wait for.
        """
        super().__init__(name, [request])
        self._make_job = make_job
        self._stopped = frozenset(stopped)
        self._waited_for: frozenset[str] = frozenset()
        self._begun_us: list[int] = []
        self._shuffled_us: dict[str, int] = {}
        """End time of each agent that has sent and decoded everything, by its name."""
        self.waits_us: dict[int, int] = {}
        """Wait of each transmission of class A."""

    def agents(self, answers: Sequence[Mapping[str, Any]]) -> list[AgentSpec]:
        (answer,) = answers
        self.job = self._make_job(answer)
        specs = self.job.agents()
        self._waited_for = frozenset(spec.name for spec in specs) - self._stopped
        return specs

    def take(self, event: Mapping[str, Any]) -> Sequence[AgentSpec] | None:
        if event["event"] == "begun":
            self._shuffled_us.pop(event["name"], None)  # it was started anew
        elif event["event"] == "shuffled":
            self._begun_us.append(event["begun_us"])
            self._shuffled_us[event["name"]] = event["shuffled_us"]
            self.waits_us.update({int(number): wait for number, wait in event["waits_us"].items()})
        return None

    @property
    def _done(self) -> frozenset[str]:
        return self._waited_for & self._shuffled_us.keys()

    @property
    def complete(self) -> bool:
        return self._done == self._waited_for

    def progress(self) -> list[Progress]:
        return [Progress(self.name, len(self._done), len(self._waited_for))]

    @property
    def time_us(self) -> int:
        """Time from the first worker's beginning until the last has sent and decoded everything; 0 if all were
        stopped.
        """
        return max(self._shuffled_us.values()) - min(self._begun_us) if self._shuffled_us else 0


# ---- Training on the shuffled samples ----


Parts = Sequence[Sequence[int]]
"""For each worker, the numbers of its samples."""


def first_parts(
    source: SampleSource, samples: int, workers: int, how: Literal["random", "sorted"], seed: int
) -> list[list[int]]:
    """Return the workers' samples before the first shuffle: random ones, or runs of the samples sorted by digit."""
    if how == "random":
        return parts(samples, workers, random.Random(f"first {seed}"))
    order = list(range(samples))
    if isinstance(source, DigitSamples):
        order.sort(key=lambda number: int(source.sample(number)[-1]))
    cuts = [samples * place // workers for place in range(workers + 1)]
    return [sorted(order[low:high]) for low, high in pairwise(cuts)]


def originals(source: SampleSource, numbers: Sequence[int]) -> NDArray[np.uint8]:
    """Return samples as they are in the data set, shape (samples, bytes)."""
    return np.stack([source.sample(number) for number in numbers])


def held(job: ShuffleJob, found: PhaseResult) -> list[NDArray[np.uint8]]:
    """Return for each worker the samples that it needs for the next epoch, as the bytes that it holds: (samples,
    bytes).

    It cannot train on samples that it does not hold.
    """
    parts = []
    for index, needed in enumerate(job.instance.needed):
        contents = found.agents.final.get((job.answer.job, job.agent_name(index)), {}).get("contents", {})
        own = [from_base64(contents[str(number)]) for number in needed if str(number) in contents]
        parts.append(np.stack(own) if own else np.zeros((0, 0), np.uint8))
    return parts


def _samples(table: NDArray[np.uint8]) -> Samples:
    """Convert bytes to samples: 64 pixels from 0 to 16, and the digit."""
    return Samples(table[:, :-1].astype(np.float32) / np.float32(16), table[:, -1].astype(np.int64))


def accuracies(epochs: Sequence[Sequence[NDArray[np.uint8]]], section: TrainingSection, seed: int) -> list[float]:
    """Return the test accuracy of the mean weights after each epoch on these samples of each worker."""
    shape = SHAPES["digits"]
    network = NeuralNetwork(shape.features, section.hidden_units, shape.classes)
    weights = network.initial_weights(seed)
    test = load("digits").test
    course = []
    for epoch, of_workers in enumerate(epochs):
        trained = [
            _epoch(network, weights, _samples(part), section, np.random.default_rng([seed, epoch, worker]))
            for worker, part in enumerate(of_workers)
            if len(part)
        ]
        weights = np.stack(trained or [weights]).mean(axis=0, dtype=np.float64).astype(np.float32)
        course.append(float(network.accuracy(weights, test)))
    return course


def _epoch(
    network: NeuralNetwork,
    weights: NDArray[np.float32],
    samples: Samples,
    section: TrainingSection,
    draw: np.random.Generator,
) -> NDArray[np.float32]:
    """Return a worker's weights after one pass over its samples."""
    own = weights.copy()
    order = draw.permutation(len(samples))
    for start in range(0, len(order), section.batch_samples):
        batch = order[start : start + section.batch_samples]
        _, gradient = network.loss_and_gradient(own, Samples(samples.features[batch], samples.labels[batch]))
        np.subtract(own, np.float32(section.learning_rate) * gradient, out=own)
    return own
