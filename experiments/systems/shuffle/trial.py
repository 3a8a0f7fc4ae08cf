"""One trial of the shuffle system: its network, its shuffles, and its result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import islice
from statistics import mean
from typing import Any

from gradbed.controller.systems.shuffle.delivery import PROGRAM
from gradbed.controller.systems.shuffle.messages import ShuffleRequest, ShuffleSettings
from gradbed.controller.systems.shuffle.scheduling.instance import ShuffleInstance
from gradbed.experiments.configuration.faults import stopped_agents
from gradbed.experiments.configuration.sections import link_classes
from gradbed.experiments.conservation.checks import host_accounts
from gradbed.experiments.conservation.counts import first_lines, rows
from gradbed.experiments.phases import PhaseResult, Trial, TrialResult
from gradbed.experiments.programs import Program
from gradbed.experiments.setup import NetworkSetup, TrialTask
from gradbed.experiments.systems.shuffle.checks import contradictions, failures
from gradbed.experiments.systems.shuffle.configuration import ShuffleConfiguration
from gradbed.experiments.systems.shuffle.metrics import CLASSES, counted_loads, load_metrics, repair_hops
from gradbed.experiments.systems.shuffle.phase import AGENT, ShuffleJob, ShufflePhase, accuracies, held, originals
from gradbed.experiments.systems.shuffle.planning import below_bound, draw, means, planned_row, scheduler_timing
from gradbed.experiments.tables.metric import Value
from gradbed.topo.graph import Switch

PORT_STEP = 8


class ShuffleTrial(Trial[ShuffleConfiguration]):
    """Samples change workers, once before each epoch."""

    phases: Sequence[ShufflePhase]

    def __init__(self, task: TrialTask[ShuffleConfiguration]) -> None:
        super().__init__(task)
        shuffle, drawn = self.configuration.shuffle, draw(task, self.topology)
        self.source, self.first = drawn.source, drawn.first
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
            classes=CLASSES,
        )
        self.phases = [
            self._phase(number, instance, following.stored)
            for number, (instance, following) in enumerate(
                zip(self.instances, self.instances[1:], strict=False), start=1
            )
        ]

    def _ports(self, switch: Switch) -> int:
        return max(self.topology.neighbours(switch.name).values(), default=0)

    def _phase(self, number: int, instance: ShuffleInstance, keep: Sequence[Sequence[int]]) -> ShufflePhase:
        shuffle = self.configuration.shuffle
        request = ShuffleRequest(
            workers=instance.workers,
            sizes_bytes=instance.sizes_bytes,
            stored=instance.stored,
            needed=instance.needed,
            master=instance.master,
            scheduler=shuffle.scheduler,
            seed=self.task.seed + number,
            timing=scheduler_timing(self.task, self.topology, instance),
            variants=shuffle.trees,
            tree_choice=shuffle.tree_choice,
            multicast=shuffle.multicast,
            unicast=shuffle.unicast,
        )

        def job(answer: Mapping[str, Any]) -> ShuffleJob:
            return ShuffleJob(self.task, self.topology, instance, keep, answer, self.source)

        return ShufflePhase(f"shuffle {number}", request, job, stopped_agents(self.configuration.faults))

    def result(self, measured: Sequence[PhaseResult]) -> TrialResult:
        pairs = list(zip(self.phases, measured, strict=True))
        found = [self._row(phase, each) for phase, each in pairs]
        courses = self._courses(measured)
        return TrialResult(
            metrics={**means(found), **{f"accuracy_{name}": course[-1] for name, course in courses.items()}},
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
                    row
                    for phase, each in pairs
                    for row in rows(
                        phase.name, 1, host_accounts(self.topology, each.network.counts, each.agents.final)
                    )
                ],
            },
            failures=[
                line
                for (phase, each), row in zip(pairs, found, strict=True)
                for line in (
                    *below_bound(phase.name, row),
                    *self._failures(phase, each),
                    *first_lines(
                        f"{phase.name}, {line}"
                        for line in contradictions(phase, each, self.topology, row, self.configuration.faults)
                    ),
                )
            ],
        )

    def _failures(self, phase: ShufflePhase, found: PhaseResult) -> list[str]:
        scale, timing = self.task.scale, self.configuration.timing
        held = self.configuration.clock == "virtual" and not timing.compute_us
        return failures(
            phase,
            found,
            self.topology,
            self.source,
            self.configuration.faults,
            scale.time_us(self.configuration.shuffle.threshold_us),
            scale.time_us(timing.receive_coalescing_us) if held else None,
        )

    def _courses(self, measured: Sequence[PhaseResult]) -> dict[str, list[float]]:
        """Return the accuracy after each epoch, with shuffles ("global") and without ("local").

        With shuffles, workers train on the bytes that they held after each one.
        """
        training = self.configuration.training
        if not training.train:
            return {}
        first = [originals(self.source, numbers) for numbers in self.first]
        brought = [first, *(held(phase.job, found) for phase, found in zip(self.phases, measured, strict=True))]
        courses = {"global": brought, "local": [first] * len(brought)}
        return {name: accuracies(parts, training, self.task.seed) for name, parts in courses.items()}

    def _row(self, phase: ShufflePhase, found: PhaseResult) -> dict[str, Value]:
        job = phase.job
        counted = counted_loads(self.topology, found.network.counts)
        seconds = partial(_seconds, self.task)
        waits = list(phase.waits_us.values())
        return {
            **planned_row(job.instance, job.schedule, job.trees),
            "counted_hops": sum(load.transmissions for load in counted.values()),
            "shuffle_time_s": seconds(phase.time_us),
            "max_wait_s": seconds(max(waits, default=0)),
            "planned_wait_s": seconds(max((each.wait_us for each in job.schedule.transmissions), default=0)),
            "mean_wait_s": seconds(mean(waits)) if waits else 0.0,
            "repairs": _total(found, "repairs"),
            "coded_repairs": _total(found, "coded_repairs"),
            "repair_hops": repair_hops(self.topology, found.network.counts),
            "requests": _total(found, "requests"),
            "byte_hops": found.network.counts.byte_hops,
            **load_metrics(self.topology, counted),
        }

    def _load_rows(self, phase: ShufflePhase, found: PhaseResult) -> list[dict[str, Value]]:
        return [
            {
                "phase": phase.name,
                "from": a,
                "to": b,
                "class": min(link_classes(self.topology, self.topology.link(a, b))),
                "transmissions": load.transmissions,
                "packets": load.packets,
            }
            for (a, b), load in counted_loads(self.topology, found.network.counts).items()
        ]

    def _wait_rows(self, phase: ShufflePhase) -> list[dict[str, Value]]:
        return [
            {
                "phase": phase.name,
                "transmission": number,
                "planned_wait_s": _seconds(self.task, phase.job.schedule.transmissions[number].wait_us),
                "wait_s": _seconds(self.task, wait_us),
            }
            for number, wait_us in sorted(phase.waits_us.items())
        ]


def _total(found: PhaseResult, name: str) -> int:
    return sum(final.get(name, 0) for final in found.agents.final.values())


def _seconds(task: TrialTask, emulated_us: float) -> float:
    """Return emulated microseconds as nominal seconds."""
    return task.scale.nominal_time(1e-6 * emulated_us)
