"""Configuration of a shuffle trial: samples and where they are, the scheduler, and how packets are forwarded."""

from __future__ import annotations

from typing import Literal

from gradbed.controller.systems.shuffle.messages import Multicast, Unicast
from gradbed.controller.systems.shuffle.scheduling.instance import Replacement
from gradbed.controller.systems.shuffle.scheduling.schedule import TreeChoice
from gradbed.controller.systems.shuffle.scheduling.schedulers import scheduler_names
from gradbed.experiments.configuration.sections import Section, option
from gradbed.experiments.configuration.trial import TrialConfiguration
from gradbed.formats.shuffle import USUAL_BITS
from gradbed.hosts.systems.shuffle.samples import DigitSamples, SampleSource, SyntheticSamples


class DataSetSection(Section):
    """The data set, and how much of it workers store."""

    data: Literal["digits", "synthetic"] = option(
        "digits", "Data set: digits (handwritten digits of 65 bytes) or synthetic (random bytes)."
    )
    samples: int = option(160, "Number of samples in the data set.", ge=1)
    sample_bytes: int = option(1000, "Mean size of a synthetic sample in bytes.", ge=1, advanced=True)
    spread_bytes: int = option(
        0, "Largest deviation of a synthetic sample's size from the mean, in bytes.", ge=0, advanced=True
    )
    storage: float = option(
        0.25, "Storage fraction: share of all samples that a worker stores, from 1/workers to 1.", gt=0, le=1
    )
    replacement: Replacement = option(
        "random", "Replacement policy of a full cache: random or least-recent (needed longest ago)."
    )

    first: Literal["random", "sorted"] = option(
        "random", "Initial samples of a worker: random, or sorted (a few digits only, non-iid).", advanced=True
    )

    def source(self, seed: int) -> SampleSource:
        if self.data == "digits":
            return DigitSamples()
        return SyntheticSamples(seed=seed, mean_bytes=self.sample_bytes, spread_bytes=self.spread_bytes)


class ShuffleSection(Section):
    """Workers, scheduler and transport; times are nominal."""

    workers: int = option(0, "Number of workers; 0: every host.", ge=0)
    scheduler: str = option(
        "improved", f"Coding scheduler: {', '.join(scheduler_names())} (docs/shuffle-scheduling.md)."
    )
    trees: int = option(4, "Maximum number of multicast trees of a sender.", ge=1)
    tree_choice: TreeChoice = option(
        "least-loaded", "Choice among equally short trees: least-loaded, ecmp (by hash) or first."
    )
    plan_only: bool = option(False, "Compute the schedules without sending packets.")
    shuffles: int = option(1, "Number of shuffles, one before each epoch.", ge=1)
    multicast: Multicast = option(
        "bit-string",
        "Multicast addressing: bit-string (receivers in the header) or groups (a multicast group for each set).",
        panel="Switches",
        advanced=True,
    )
    bits: int = option(
        USUAL_BITS,
        "Length of the receiver bit string in bits.",
        ge=8,
        le=256,
        multiple_of=8,
        panel="Switches",
        advanced=True,
    )
    unicast: Unicast = option(
        "trees",
        "Routing of packets with a single receiver: trees (as multicast) or routes (IPv4).",
        panel="Switches",
        advanced=True,
    )
    fragment_bytes: int = option(
        1200, "Maximum payload of a packet in bytes.", ge=1, le=1300, panel="Transport", advanced=True
    )
    threshold_us: int = option(
        2000, "Maximum time in us that a sender waits for a sample it needs for coding.", ge=0, panel="Transport"
    )
    timeout_us: int = option(
        20_000, "Timeout in us after which a worker requests a missing packet.", ge=1, panel="Transport"
    )
    give_up_us: int = option(
        30_000_000,
        "Time in us without any answer after which a worker ends the run.",
        ge=1,
        panel="Transport",
        advanced=True,
    )


class TrainingSection(Section):
    """Training on what the shuffles bring (digits).

    Each worker trains for an epoch on its own samples, then all take the mean of the weights.
    """

    train: bool = option(False, "Train a classifier: one epoch before the first shuffle and one after each (digits).")
    hidden_units: int = option(
        32, "Number of hidden units of the trained classifier; 0: a linear classifier.", ge=0, le=65536, advanced=True
    )
    batch_samples: int = option(8, "Batch size in samples.", ge=1, advanced=True)
    learning_rate: float = option(0.2, "Learning rate of stochastic gradient descent.", gt=0, advanced=True)


class ShuffleConfiguration(TrialConfiguration):
    """Everything that a sweep of a shuffle study can vary."""

    samples: DataSetSection = DataSetSection()
    shuffle: ShuffleSection = ShuffleSection()
    training: TrainingSection = TrainingSection()

    def chance(self) -> tuple[str, ...]:
        # Where everybody stores everything nothing is sent, whoever needs what.
        is_drawn = self.samples.storage < 1 or self.training.train
        return (*super().chance(), *(["who stores which samples"] if is_drawn else []))
