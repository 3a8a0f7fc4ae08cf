"""Configuration of a compression trial: what workers send, how they compress it, and at which rate."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, field_validator

from gradbed.common.errors import UserError
from gradbed.experiments.configuration.sections import (
    SYNTHETIC_UNLESS_SAID,
    Section,
    SyntheticGradients,
    TrainedGradients,
    option,
)
from gradbed.experiments.configuration.trial import TrialConfiguration
from gradbed.experiments.torch_scripts import ScriptSection
from gradbed.hosts.compressors.methods import parsed
from gradbed.hosts.systems.compression.config import Pacing, RatioRule
from gradbed.hosts.transport.congestion_window import CONGESTION_CONTROL_HELP, CongestionControlName
from gradbed.hosts.transport.stream_receiver import SELECTIVE_BITS


class CompressionSwitchesSection(Section):
    """Congestion marking in switches."""

    congestion_packets: int = option(
        20, "Queue length in packets from which packets are marked (ECN); 0: never.", ge=0
    )


class CompressionSection(Section):
    """Compression of gradients, and what becomes of the values left out."""

    compress: str = option(
        "none",
        "none, topk:PART, randomk:PART, threshold:MAGNITUDE, quantise:8, quantise:4, sign or powersgd:RANK.",
    )
    error_feedback: bool = option(True, "Add what is left out to the next gradient.")
    momentum: float = option(0.0, "Momentum of each worker, corrected for what is held back.", ge=0, lt=1)
    warm_up_rounds: int = option(0, "Rounds in which topk and randomk go from a quarter to their fraction.", ge=0)

    @field_validator("compress")
    @classmethod
    def _known(cls, compress: str) -> str:
        try:
            parsed(compress)
        except UserError as error:
            raise ValueError(str(error)) from None
        return compress


class RatioSection(Section):
    """Rule for the fraction that is sent when the rate falls during a gradient; times are nominal."""

    rule: RatioRule = option(
        "corrected",
        "What is kept when the rate falls: none (all), source (as published) or corrected (corrected).",
        name="ratio",
    )
    initial_rate: Literal["iteration", "run"] = option(
        "iteration", "R0: the first rate of each gradient, or the highest of these in the run so far."
    )
    floor: float = option(0.01, "Smallest fraction of the remainder that is sent.", name="ratio_floor", ge=0, le=1)
    settled_within: float = option(
        0.05, "Relative difference of two consecutive rates below which the rate is settled.", gt=0
    )
    interval_us: int = option(5000, "Interval of rate readings.", ge=100)


class CompressionTransportSection(Section):
    """Reliability, pacing and congestion control; times are nominal."""

    protocol: Literal["packets", "tcp"] = option(
        "packets", "packets (of this system), or tcp: the kernel's, as a baseline (real clock).", name="transport"
    )
    pacing: Pacing = option(
        "even", "Rate of a worker: none (its window's), even (B1/N), active (over those still sending) or aimd."
    )
    window_packets: int = option(64, "Largest number of unacknowledged packets of a worker.", ge=4, le=SELECTIVE_BITS)
    congestion_control: CongestionControlName = option("aimd", f"{CONGESTION_CONTROL_HELP} It counts without pacing.")
    min_timeout_us: int = option(
        10_000, "Smallest margin of the retransmission timeout over a usual round trip.", ge=1000
    )
    left_after_us: int = option(5_000_000, "Silence after which a worker counts as having left.", ge=1000)
    give_up_us: int = option(30_000_000, "Silence of the server after which a worker ends the run.", ge=1000)


class CompetingTrafficSection(Section):
    """Competing traffic: datagrams from a host without another part to the server's, at a constant rate."""

    load: float = option(
        0.0,
        "Competing traffic offered to the server's link, as a fraction of its rate.",
        name="background_load",
        ge=0,
        le=10,
    )
    from_ms: float = option(0.0, "Start of the competing traffic.", name="background_from_ms", ge=0)
    duration_ms: float = option(500.0, "Duration of the competing traffic.", name="background_ms", gt=0)
    frame_bytes: int = option(1000, "Frame size of the competing traffic.", name="background_bytes", ge=64, le=1514)


class QueueSamplesSection(Section):
    """Sampling of the queue of the server's link."""

    interval_us: int = option(10_000, "Sampling interval of the queue of the server's link.", name="sample_us", ge=1)


class _CompressionWorkload(Section):
    workers: int = option(8, "Number of workers, besides the server.", ge=1, le=256)


class _Rounds(_CompressionWorkload):
    rounds: int = option(10, "Gradients that every worker sends.", ge=1)


class CompressionSyntheticWorkload(SyntheticGradients, _Rounds):
    """Random gradients, to load the network without learning."""


class CompressionTrainingWorkload(TrainedGradients, _Rounds):
    """Gradients of a model that the workers train."""


class CompressionScriptWorkload(ScriptSection, _CompressionWorkload):
    """Gradients of a PyTorch script (docs/torch.md)."""


Workload = Annotated[
    CompressionSyntheticWorkload | CompressionTrainingWorkload | CompressionScriptWorkload,
    Field(discriminator="kind"),
    SYNTHETIC_UNLESS_SAID,
]


class CompressionConfiguration(TrialConfiguration):
    """Everything that a sweep of a compression study can vary."""

    switches: CompressionSwitchesSection = CompressionSwitchesSection()
    compression: CompressionSection = CompressionSection()
    ratio: RatioSection = RatioSection()
    transport: CompressionTransportSection = CompressionTransportSection()
    background: CompetingTrafficSection = CompetingTrafficSection()
    samples: QueueSamplesSection = QueueSamplesSection()
    workload: Workload = CompressionSyntheticWorkload()

    def chance(self) -> tuple[str, ...]:
        # The seed decides which values are sent, and the code of their indices is as long as they are far apart.
        is_sparse = self.compression.compress.startswith(("topk", "randomk", "threshold"))
        drawn = self.workload.kind == "training" or is_sparse
        return (*super().chance(), *(["gradients"] if drawn else []))
