"""One point of the shuffle system: its network, its shuffles, and what came of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import islice
from statistics import mean
from typing import Any

from controller.systems.shuffle.delivery import PROGRAM
from controller.systems.shuffle.messages import ShuffleRequest, ShuffleSettings
from controller.systems.shuffle.scheduling.bounds import bounds
from controller.systems.shuffle.scheduling.instance import Instance
from controller.systems.shuffle.scheduling.storage import epochs
from experiments.accounting import disagreements as host_disagreements
from experiments.accounting import rows
from experiments.configuration.sections import link_classes
from experiments.fidelity.report import FidelityReport
from experiments.host_accounts import host_accounts
from experiments.programs import Program
from experiments.system import Measured, NetworkSetup, PointResult, PointTask, Value
from experiments.systems.shuffle.configuration import ShuffleConfiguration
from experiments.systems.shuffle.jobs import AGENT, ShuffleJob, timing
from experiments.systems.shuffle.loads import (
    counted_loads,
    disagreements,
    lossless,
    max_over_mean,
    planned_loads,
    repair_hops,
)
from experiments.systems.shuffle.phase import ShufflePhase
from experiments.systems.shuffle.training import Parts, accuracies, first_parts
from hosts.systems.shuffle.samples import digest, original
from switch.errors import UserError
from topo.graph import Switch, Topology

MOST_FAILURES = 5
"""Of a kind that a point tells."""
PORT_STEP = 8
MASTER_SCHEDULERS = ("coded-master",)


def choose_hosts(topology: Topology, workers: int, scheduler: str) -> tuple[list[str], str | None]:
    """The workers, spread evenly over the hosts (0: all), and the master, if the scheduler takes one: the last
    host."""
    names = [host.name for host in topology.hosts]
    master = names.pop() if scheduler in MASTER_SCHEDULERS else None
    if workers > len(names):
        raise UserError(f"{workers} workers need as many hosts, {topology.name} has {len(names)} for them")
    workers = workers or len(names)
    return [names[place * len(names) // workers] for place in range(workers)], master


class ShufflePoint:
    """experiments.system.PointRun."""

    def __init__(self, task: PointTask, configuration: ShuffleConfiguration) -> None:
        self._task = task
        self._configuration = configuration
        self.topology = configuration.topology.build(task.scale)
        shuffle, samples = configuration.shuffle, configuration.samples
        self.source = samples.source(task.seed)
        workers, master = choose_hosts(self.topology, shuffle.workers, shuffle.scheduler)
        sizes_bytes = self.source.sizes_bytes(samples.samples)
        self.first = first_parts(self.source, samples.samples, len(workers), samples.first, task.seed)
        drawn = epochs(workers, sizes_bytes, samples.storage, task.seed, samples.replacement, master, self.first)
        self.instances = list(islice(drawn, shuffle.shuffles + 1))
        # Counters are read cell by cell: as many as the largest switch has ports, in steps.
        ports = PORT_STEP * (1 + max(map(self._ports, self.topology.switches)) // PORT_STEP)
        program = Program.own(PROGRAM, BITS=shuffle.bits, PORTS=ports)
        self.network = NetworkSetup(
            self.topology,
            {switch.name: program for switch in self.topology.switches},
            ShuffleSettings(bits=shuffle.bits),
            capture=[workers[0]],
            preload=[AGENT.partition(":")[0]],
        )
        self.phases = [
            self._phase(number, instance, following.stored)
            for number, (instance, following) in enumerate(
                zip(self.instances, self.instances[1:], strict=False), start=1
            )
        ]

    def _ports(self, switch: Switch) -> int:
        return max(self.topology.neighbours(switch.name).values(), default=0)

    def _phase(self, number: int, instance: Instance, keep: Sequence[Sequence[int]]) -> ShufflePhase:
        shuffle = self._configuration.shuffle
        request = ShuffleRequest(
            workers=instance.workers,
            sizes_bytes=instance.sizes_bytes,
            stored=instance.stored,
            needed=instance.needed,
            master=instance.master,
            scheduler=shuffle.scheduler,
            seed=self._task.seed + number,
            timing=timing(
                self.topology,
                instance,
                shuffle.bits,
                shuffle.fragment_bytes,
                self._task.scale.time_us(shuffle.threshold_us),
            ),
            variants=shuffle.trees,
            multicast=shuffle.multicast,
            unicast=shuffle.unicast,
        )

        def job(answer: Mapping[str, Any]) -> ShuffleJob:
            return ShuffleJob(
                self.topology,
                instance,
                keep,
                answer,
                self.source,
                shuffle.fragment_bytes,
                self._task.scale.time_us(shuffle.timeout_us),
                shuffle.trees,
            )

        return ShufflePhase(f"shuffle {number}", request, job)

    def result(self, measured: Sequence[Measured]) -> PointResult:
        pairs = list(zip(self.phases, measured, strict=True))
        found = [self._row(phase, each) for phase, each in pairs]
        courses = self._courses()
        return PointResult(
            metrics={**_means(found), **{f"accuracy_{name}": course[-1] for name, course in courses.items()}},
            fidelity=FidelityReport(),
            decisions={"hosts": list(self.instances[0].hosts)},
            tables={
                "shuffles": [{"phase": phase.name, **row} for (phase, _), row in zip(pairs, found, strict=True)],
                "loads": [row for phase, each in pairs for row in self._load_rows(phase, each)],
                "epochs": [
                    {"shuffling": name, "epoch": epoch, "accuracy": accuracy}
                    for name, course in courses.items()
                    for epoch, accuracy in enumerate(course, start=1)
                ],
                "waits": [row for phase, _ in pairs for row in self._wait_rows(phase)],
                "hosts": [
                    row for phase, each in pairs for row in rows(phase.name, 1, host_accounts(self.topology, each))
                ],
            },
            failures=[line for phase, each in pairs for line in self._failures(phase, each)],
        )

    def _courses(self) -> dict[str, list[float]]:
        """Accuracy after each epoch, with the samples that shuffles have brought, and with the first ones only."""
        training = self._configuration.training
        if not training.train:
            return {}
        brought: list[Parts] = [self.first, *(phase.job.instance.needed for phase in self.phases)]
        courses: dict[str, Sequence[Parts]] = {"global": brought, "local": [self.first] * len(brought)}
        return {name: accuracies(self.source, parts, training, self._task.seed) for name, parts in courses.items()}

    def _row(self, phase: ShufflePhase, found: Measured) -> dict[str, Value]:
        job, schedule = phase.job, phase.job.schedule
        counted = counted_loads(self.topology, found.counts)
        carrying = [each for each in schedule.transmissions if each.lent_for is None]
        demands = len(job.instance.demands)
        seconds = partial(_seconds, self._task)
        waits = list(phase.waits_us.values())
        return {
            "hops": schedule.hops,
            "counted_hops": sum(load.transmissions for load in counted.values()),
            "bound_hops": bound_hops(job),
            "hops_per_sample": schedule.hops / demands if demands else None,
            "samples_per_packet": demands / len(carrying) if carrying else None,
            "loans": len(schedule.transmissions) - len(carrying),
            "shuffle_time_s": seconds(phase.time_us),
            "max_wait_s": seconds(max(waits, default=0)),
            "mean_wait_s": seconds(mean(waits)) if waits else 0.0,
            "repairs": _total(found, "repairs"),
            "coded_repairs": _total(found, "coded_repairs"),
            "repair_hops": repair_hops(self.topology, found.counts),
            "requests": _total(found, "requests"),
            "byte_hops": found.counts.byte_hops,
            "load_max_over_mean": max_over_mean([load.packets for load in counted.values()]),
        }

    def _load_rows(self, phase: ShufflePhase, found: Measured) -> list[dict[str, Value]]:
        return [
            {
                "phase": phase.name,
                "from": a,
                "to": b,
                "class": min(link_classes(self.topology, self.topology.link(a, b))),
                "transmissions": load.transmissions,
                "packets": load.packets,
            }
            for (a, b), load in counted_loads(self.topology, found.counts).items()
        ]

    def _wait_rows(self, phase: ShufflePhase) -> list[dict[str, Value]]:
        return [
            {
                "phase": phase.name,
                "transmission": number,
                "planned_wait_us": phase.job.schedule.transmissions[number].wait_us,
                "wait_s": _seconds(self._task, wait_us),
            }
            for number, wait_us in sorted(phase.waits_us.items())
        ]

    def _failures(self, phase: ShufflePhase, found: Measured) -> list[str]:
        job = phase.job
        lines = host_disagreements(host_accounts(self.topology, found))
        if (least := bound_hops(job)) is not None and job.schedule.hops < least:
            lines.append(f"{job.schedule.hops} hops are less than the bound, {least}")
        if lossless(found.counts):
            lines += disagreements(planned_loads(job), counted_loads(self.topology, found.counts))
            lines += [
                f"{switch.name} dropped {tally.packets} packets (cause {cause})"
                for switch in self.topology.switches
                for cause, tally in found.counts.counters.get(switch.name, {}).get("drops", {}).items()
                if tally.packets
            ]
        for index in range(len(job.instance.hosts)):
            name = job.agent_name(index)
            final = found.final[job.answer.job, name]
            lines += [f"{name}: {line}" for line in self._placement_failures(job, index, final)]
        more = len(lines) - MOST_FAILURES
        shown = [*lines[:MOST_FAILURES], *([f"and {more} more"] if more > 0 else [])]
        return [f"{phase.name}, {line}" for line in shown]

    def _placement_failures(self, job: ShuffleJob, index: int, final: Mapping[str, Any]) -> list[str]:
        """Does a worker hold what it was to hold, and are those samples' bytes the original ones?"""
        lines = []
        if final["lent_left"]:
            lines.append(f"{final['lent_left']} samples that were lent to it were left")
        if index == len(job.instance.workers):
            return lines
        held = {int(sample): value for sample, value in final["placement"].items()}
        asked = set(job.keep[index])
        if missing := sorted(asked - held.keys()):
            lines.append(f"does not hold {len(missing)} samples that it was to hold, such as {missing[0]}")
        if more := sorted(held.keys() - asked):
            lines.append(f"holds {len(more)} samples that it was not to hold, such as {more[0]}")
        sizes = job.instance.sizes_bytes
        wrong = [each for each in held if held[each] != digest(original(self.source, each, sizes[each]))]
        if wrong:
            lines.append(f"{len(wrong)} samples are not the original ones, such as {min(wrong)}")
        return lines


def bound_hops(job: ShuffleJob) -> int | None:
    """None where a master sends, of whom the bounds know nothing."""
    return None if job.instance.master else bounds(job.instance, job.trees).best


def _total(found: Measured, name: str) -> int:
    return sum(final[name] for final in found.final.values())


def _seconds(task: PointTask, emulated_us: float) -> float:
    """Nominal."""
    return task.scale.nominal_time(1e-6 * emulated_us)


def _means(found: Sequence[Mapping[str, Value]]) -> dict[str, Value]:
    """Of the shuffles of a point."""
    means: dict[str, Value] = {}
    for name in found[0]:
        values = [float(value) for row in found if (value := row[name]) is not None]
        means[name] = mean(values) if values else None
    return means
