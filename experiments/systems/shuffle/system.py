"""The shuffle system: between epochs workers exchange samples by coded packets along trees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gradbed.common.errors import UserError
from gradbed.controller.systems.shuffle.scheduling.instance import places_of
from gradbed.controller.systems.shuffle.scheduling.schedulers import scheduler_named
from gradbed.experiments.phases import Trial
from gradbed.experiments.scale import Scale
from gradbed.experiments.setup import SwitchCollectives, TrialTask
from gradbed.experiments.system import SwitchCapabilities, System, SystemOptions, SystemReport
from gradbed.experiments.systems.shuffle import figures as _figures  # noqa: F401  # their kinds
from gradbed.experiments.systems.shuffle.collectives import switch_collectives
from gradbed.experiments.systems.shuffle.configuration import ShuffleConfiguration
from gradbed.experiments.systems.shuffle.metrics import METRICS
from gradbed.experiments.systems.shuffle.planning import PlanOnlyTrial, choose_hosts
from gradbed.experiments.systems.shuffle.trial import ShuffleTrial
from gradbed.experiments.tables.metric import Metric
from gradbed.formats.shuffle import most_fragment_bytes
from gradbed.topo.graph import Topology


class ShuffleSystem(System[ShuffleConfiguration]):
    """Bring workers other samples between epochs, several by one coded packet, in few hops."""

    name = "shuffle"
    configuration = ShuffleConfiguration
    service = "gradbed.controller.systems.shuffle.service:ShuffleService"
    metrics: Mapping[str, Metric] = METRICS
    options = SystemOptions(
        defaults={"clock": "virtual"},
    )
    switches = SwitchCapabilities(
        collective="broadcast",
    )
    report = SystemReport(
        main_metrics=("shuffle_time_s", "counted_hops", "samples_per_packet", "requests"),
        assurance=(
            "The schedule serves every demand. Where it was sent, every worker stores exactly its samples, byte for "
            "byte; without losses and faults, link counters equal the schedule."
        ),
        colours={
            "unicast-random": 0,
            "unicast-nearest": 1,
            "coded-master": 2,
            "coded-largest": 3,
            "hop-aware": 4,
            "hop-aware-corrected": 5,
            "improved": 6,
        },
    )

    def check(self, configuration: ShuffleConfiguration) -> None:
        shuffle, samples = configuration.shuffle, configuration.samples
        scheduler_named(shuffle.scheduler)
        workers, _ = choose_hosts(configuration.topology.build(Scale()), shuffle.workers, shuffle.scheduler)
        places_of(samples.samples, len(workers), samples.storage)
        if configuration.training.train and shuffle.plan_only:
            raise UserError("--train: with --plan-only no worker gets samples to train on")
        if configuration.training.train and samples.data != "digits":
            raise UserError("--train: there is nothing to learn of random bytes: take --data digits")
        samples.source(seed=1).sizes_bytes(samples.samples)
        if shuffle.multicast == "bit-string" and len(workers) > shuffle.bits:
            raise UserError(
                f"--bits: {len(workers)} workers do not fit bit strings of {shuffle.bits} bits: take longer ones, or "
                "--multicast groups"
            )
        if shuffle.fragment_bytes > most_fragment_bytes(shuffle.bits):
            raise UserError(
                f"--fragment-bytes: with bit strings of {shuffle.bits} bits at most "
                f"{most_fragment_bytes(shuffle.bits)} fit a frame"
            )

    def collectives(self, topology: Topology, groups: Sequence[tuple[Sequence[str], str]]) -> SwitchCollectives:
        return switch_collectives(self.name, self.service, topology, groups)

    def trial(self, task: TrialTask[ShuffleConfiguration]) -> Trial[ShuffleConfiguration]:
        kind = PlanOnlyTrial if task.configuration.shuffle.plan_only else ShuffleTrial
        return kind(task)
