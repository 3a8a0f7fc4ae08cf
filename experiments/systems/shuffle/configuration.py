"""Configuration of a shuffle trial: samples and where they are, the scheduler, and how packets are forwarded."""

from __future__ import annotations

from typing import Literal

from gradbed.controller.systems.shuffle.messages import Multicast, Unicast
from gradbed.controller.systems.shuffle.scheduling.instance import Replacement
from gradbed.controller.systems.shuffle.scheduling.schedule import TreeChoice
from gradbed.controller.systems.shuffle.scheduling.schedulers import SCHEDULERS
from gradbed.experiments.configuration.sections import Section, option
from gradbed.experiments.configuration.trial import TrialConfiguration
from gradbed.formats.shuffle import USUAL_BITS
from gradbed.hosts.systems.shuffle.samples import DigitSamples, SampleSource, SyntheticSamples


class DataSetSection(Section):
    """The data set, and how much of it workers store."""

    data: Literal["digits", "synthetic"] = option("digits", "Handwritten digits (65 bytes each), or random bytes.")
    samples: int = option(160, "Number of samples of the data set that are shuffled.", ge=1)
    sample_bytes: int = option(1000, "Mean size of a synthetic sample.", ge=1)
    spread_bytes: int = option(0, "Largest deviation of a synthetic sample's size from the mean.", ge=0)
    storage: float = option(
        0.25, "Storage fraction: part of all samples that a worker stores, from 1/workers to 1.", gt=0, le=1
    )
    replacement: Replacement = option("random", "Which samples leave a full cache: any, or those needed longest ago.")

    first: Literal["random", "sorted"] = option(
        "random", "A worker's own samples at first: any, or some digits only, as data that comes sorted."
    )

    def source(self, seed: int) -> SampleSource:
        if self.data == "digits":
            return DigitSamples()
        return SyntheticSamples(seed=seed, mean_bytes=self.sample_bytes, spread_bytes=self.spread_bytes)


class ShuffleSection(Section):
    """Workers, scheduler and transport; times are nominal."""

    workers: int = option(0, "Number of workers; 0: all hosts.", ge=0)
    scheduler: str = option("improved", f"Scheduler of the packets: {', '.join(SCHEDULERS)}.")
    trees: int = option(4, "Largest number of trees that every sender may choose from.", ge=1)
    tree_choice: TreeChoice = option(
        "least-loaded", "Which of equally short trees a packet takes; ecmp: by a hash; the first."
    )
    plan_only: bool = option(False, "Compute schedules and send nothing.")
    shuffles: int = option(1, "One after the other, each before an epoch.", ge=1)
    multicast: Multicast = option("bit-string", "Receivers in a bit string, or a group for each set of them.")
    bits: int = option(USUAL_BITS, "Length of bit strings.", ge=8, le=256, multiple_of=8)
    unicast: Unicast = option("trees", "Single receivers on trees, like all others, or on IPv4 routes.")
    fragment_bytes: int = option(1200, "Largest part of a sample in one packet.", ge=1, le=1300)
    threshold_us: int = option(2000, "Longest wait of a packet for a neighbour's sample.", ge=0)
    timeout_us: int = option(20_000, "Delay of an expected packet after which a worker asks for it.", ge=1)
    give_up_us: int = option(
        30_000_000, "Time without an answer of any holder after which a worker ends the run.", ge=1
    )


class TrainingSection(Section):
    """Training on what the shuffles bring (digits).

    Each worker trains for an epoch on its own samples, then all take the mean of the weights.
    """

    train: bool = option(False, "Train for an epoch before the first shuffle, and after each.")
    hidden_units: int = option(32, "Hidden units of the classifier; 0: a linear one.", ge=0, le=65536)
    batch_samples: int = option(8, "Samples of a step.", ge=1)
    learning_rate: float = option(0.2, "Learning rate of stochastic gradient descent.", gt=0)


class ShuffleConfiguration(TrialConfiguration):
    """Everything that a sweep of a shuffle study can vary."""

    samples: DataSetSection = DataSetSection()
    shuffle: ShuffleSection = ShuffleSection()
    training: TrainingSection = TrainingSection()

    def chance(self) -> tuple[str, ...]:
        # Where everybody stores everything nothing is sent, whoever needs what.
        is_drawn = self.samples.storage < 1 or self.training.train
        return (*super().chance(), *(["who stores which samples"] if is_drawn else []))
