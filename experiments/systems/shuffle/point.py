"""One point of the shuffle system: its network, its shuffles, and what came of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import islice
from statistics import mean
from typing import Any

from controller.systems.shuffle.delivery import PROGRAM
from controller.systems.shuffle.messages import ShuffleRequest, ShuffleSettings
from controller.systems.shuffle.scheduling.instance import Instance
from experiments.accounting import disagreements as host_disagreements
from experiments.accounting import rows
from experiments.configuration.sections import link_classes
from experiments.fidelity.report import FidelityReport
from experiments.host_accounts import host_accounts
from experiments.programs import Program
from experiments.system import Measured, NetworkSetup, PointResult, PointTask, Value
from experiments.systems.shuffle.configuration import ShuffleConfiguration
from experiments.systems.shuffle.drawn import draw, scheduler_timing
from experiments.systems.shuffle.jobs import AGENT, ShuffleJob
from experiments.systems.shuffle.loads import (
    counted_loads,
    disagreements,
    lossless,
    max_over_mean,
    planned_loads,
    repair_hops,
)
from experiments.systems.shuffle.phase import ShufflePhase
from experiments.systems.shuffle.planned import below_bound, means, planned_row
from experiments.systems.shuffle.training import Parts, accuracies
from hosts.systems.shuffle.samples import digest, original
from topo.graph import Switch

MOST_FAILURES = 5
"""Of a kind that a point tells."""
PORT_STEP = 8


class ShufflePoint:
    """experiments.system.PointRun."""

    def __init__(self, task: PointTask, configuration: ShuffleConfiguration) -> None:
        self._task = task
        self._configuration = configuration
        shuffle, drawn = configuration.shuffle, draw(task, configuration)
        self.topology, self.source, self.first = drawn.topology, drawn.source, drawn.first
        self.instances = list(islice(drawn.instances, shuffle.shuffles + 1))
        # Counters are read cell by cell: as many as the largest switch has ports, in steps.
        ports = PORT_STEP * (1 + max(map(self._ports, self.topology.switches)) // PORT_STEP)
        program = Program.own(PROGRAM, BITS=shuffle.bits, PORTS=ports)
        self.network = NetworkSetup(
            self.topology,
            {switch.name: program for switch in self.topology.switches},
            ShuffleSettings(bits=shuffle.bits),
            capture=[self.instances[0].workers[0]],
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
            timing=scheduler_timing(self._task, self._configuration, self.topology, instance),
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
            metrics={**means(found), **{f"accuracy_{name}": course[-1] for name, course in courses.items()}},
            fidelity=FidelityReport(),
            decisions={
                "hosts": list(self.instances[0].hosts),
                "joined_trees": [len(phase.job.schedule.trees) - len(phase.job.trees.trees) for phase in self.phases],
            },
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
            failures=[
                line
                for (phase, each), row in zip(pairs, found, strict=True)
                for line in (*below_bound(phase.name, row), *self._failures(phase, each))
            ],
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
        job = phase.job
        counted = counted_loads(self.topology, found.counts)
        seconds = partial(_seconds, self._task)
        waits = list(phase.waits_us.values())
        return {
            **planned_row(job.instance, job.schedule, job.trees),
            "counted_hops": sum(load.transmissions for load in counted.values()),
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


def _total(found: Measured, name: str) -> int:
    return sum(final[name] for final in found.final.values())


def _seconds(task: PointTask, emulated_us: float) -> float:
    """Nominal."""
    return task.scale.nominal_time(1e-6 * emulated_us)
