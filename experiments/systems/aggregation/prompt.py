"""The aggregation system's part of the prompt of `gradbed up`: its jobs, and the slots of its switches."""

from __future__ import annotations

from statistics import median

from gradbed.experiments.configuration.options import model_options, nested, within
from gradbed.experiments.phases import Phase
from gradbed.experiments.prompt.job_commands import JobCommands
from gradbed.experiments.prompt.network_commands import bar
from gradbed.experiments.prompt.prompt import Prompt
from gradbed.experiments.systems.aggregation.configuration import AggregationConfiguration
from gradbed.experiments.systems.aggregation.metrics import event_at
from gradbed.experiments.systems.aggregation.phase import AggregationPhase
from gradbed.experiments.systems.aggregation.trial import AggregationTrial
from gradbed.topo.selectors import choose_hosts

JOB_OPTIONS = (
    *(f"switches.{each}" for each in ("placement", "programmable", "named", "capacity_mbps", "demand_mbps")),
    *(f"switches.{each}" for each in ("slots", "slot_policy")),
    *(f"workload.{each}" for each in ("kind", "workers", "rounds", "window_fragments", "congestion_control")),
    *(f"workload.{each}" for each in ("exchange", "min_timeout_us", "values", "hidden_units", "batch_samples")),
    "workload.learning_rate",
)
USUAL_WORKERS = 4
USUAL_PROGRAMMABLE = 2
USUAL_ROUNDS = 60


class AggregationPrompt(JobCommands, Prompt):
    """Prompt of the aggregation system."""

    job_options = within(model_options(AggregationConfiguration, {}), JOB_OPTIONS)
    complete_slots = Prompt.complete_switches

    def job_phase(self, given: dict[str, str]) -> Phase:
        network = self._configuration
        busy = {
            host for row in self.runtime.client.jobs(self.system.name) for host in (row["server"], *row["workers"])
        }
        free = len(self.topology.hosts) - len(busy)
        named = network.switches.named
        defaults = {
            **({"switches.placement": "lp", "switches.named": named} if named else {}),
            "switches.programmable": USUAL_PROGRAMMABLE,
            "workload.kind": "training",
            "workload.rounds": USUAL_ROUNDS,
            "workload.workers": max(1, min(USUAL_WORKERS, free - 1)),
            "workload.lanes": network.workload.lanes,
        }
        values = nested(list(self.job_options), given, defaults)
        values["topology"] = network.topology
        kept = {name: getattr(network.switches, name) for name in ("congestion_packets", "legacy", "links")}
        values["switches"] = {**kept, "slots": network.switches.slots, **values["switches"]}
        configuration = AggregationConfiguration.model_validate(values)
        hosts = choose_hosts(self.topology, configuration.workload.workers, busy)
        return AggregationTrial(self.task.with_configuration(configuration), [hosts]).phases[0]

    def job_result(self, phase: Phase) -> str:
        assert isinstance(phase, AggregationPhase)
        (job,), (rounds,) = phase.jobs, phase.rounds
        (progress,) = phase.progress()
        over = rounds[: progress.completed]
        if phase.mismatches:
            return f"WRONG: {phase.mismatches[0]}"
        if not over:
            return "no round was completed"
        text = f"{len(over)} rounds of {1e3 * median(each.seconds for each in over):.1f} ms (median), all sums exact"
        return text + (f", accuracy {100 * job.accuracies[len(over) - 1]:.2f} %" if job.accuracies else "")

    def do_slots(self, line: str) -> None:
        """Show how many aggregation slots are held, and what happened to gradient packets in them, by job.
        Usage: slots [SWITCH ...]
        The events are described in p4src/include/aggregation/events.p4."""
        slots = self._configuration.switches.slots
        for name in self.switches(line):
            counters = self.runtime.counters(name)
            if "events" not in counters:
                self.say(f"{name}: does not sum")
                continue
            words = self.runtime.registers(name, "held_bits")
            used = [value for index, value in words.items() if index <= (slots - 1) // 64]
            if None in used:
                self.say(f"{name}: how many slots are held: not on BMv2")
            else:
                held = sum(value.bit_count() for value in used if value is not None)
                self.say(f"{name}: {bar(held / slots)} {held} of {slots} held")
            events: dict[int, list[str]] = {}
            for cell in counters["events"]:
                job, event = event_at(cell["index"])
                events.setdefault(job, []).append(f"{event} {cell['packets']}")
            for job, told in events.items():
                self.say(f"  job {job}: {', '.join(told)}")

    @property
    def _configuration(self) -> AggregationConfiguration:
        assert isinstance(self.task.configuration, AggregationConfiguration)
        return self.task.configuration
