"""Configuration of a compression trial: what workers send, how they compress it, and at which rate."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, field_validator

from gradbed.common.errors import UserError
from gradbed.experiments.configuration.options import RUN_AND_OUTPUT
from gradbed.experiments.configuration.sections import (
    GRADIENTS_HELP,
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

    panel: ClassVar[str | None] = "Switches"

    congestion_packets: int = option(20, "ECN marking threshold of queues in packets; 0: no marking.", ge=0)


class CompressionSection(Section):
    """Compression of gradients, and what becomes of the values left out."""

    panel: ClassVar[str | None] = "Compression"

    compress: str = option(
        "none",
        "Compressor: none, topk:FRACTION, randomk:FRACTION, threshold:MAGNITUDE, quantise:8, quantise:4, sign or "
        "powersgd:RANK.",
    )
    error_feedback: bool = option(True, "Error feedback: add the compression error to the next gradient.")
    momentum: float = option(0.0, "Momentum, with DGC's momentum correction.", ge=0, lt=1, advanced=True)
    warm_up_rounds: int = option(
        0,
        "Number of warm-up rounds in which topk and randomk decrease the fraction sent from 1/4 to its target.",
        ge=0,
        advanced=True,
    )

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

    panel: ClassVar[str | None] = "Compression"

    rule: RatioRule = option(
        "corrected",
        "Rule for the fraction sent when the rate falls: none (everything), source (as published) or corrected.",
        name="ratio",
    )
    initial_rate: Literal["iteration", "run"] = option(
        "iteration",
        "Initial rate R0 of the rule: the first rate of each gradient (iteration) or the highest of these (run).",
        advanced=True,
    )
    floor: float = option(
        0.01, "Minimum fraction sent of the rest of a gradient.", name="ratio_floor", ge=0, le=1, advanced=True
    )
    settled_within: float = option(
        0.05,
        "Relative difference of two consecutive rates below which the rate counts as stable.",
        gt=0,
        advanced=True,
    )
    interval_us: int = option(5000, "Interval of rate measurements in us.", ge=100, advanced=True)


class CompressionTransportSection(Section):
    """Reliability, pacing and congestion control; times are nominal."""

    panel: ClassVar[str | None] = "Transport"

    protocol: Literal["packets", "tcp"] = option(
        "packets",
        "Transport: packets (this system's own) or tcp (the kernel's, as a baseline; real clock).",
        name="transport",
    )
    pacing: Pacing = option(
        "even",
        "Pacing of a worker: none (window only), even (B1/N), active (B1 over the workers still sending) or aimd.",
    )
    window_packets: int = option(64, "Maximum window of a worker in unacknowledged packets.", ge=4, le=SELECTIVE_BITS)
    congestion_control: CongestionControlName = option("aimd", f"{CONGESTION_CONTROL_HELP} Used with --pacing none.")
    min_timeout_us: int = option(
        10_000,
        "Minimum margin of the retransmission timeout over the smoothed round-trip time, in us.",
        ge=1000,
        advanced=True,
    )
    left_after_us: int = option(
        5_000_000, "Silence of a worker in us after which the server continues without it.", ge=1000, advanced=True
    )
    give_up_us: int = option(
        30_000_000, "Silence of the server in us after which a worker ends the run.", ge=1000, advanced=True
    )


class CompetingTrafficSection(Section):
    """Competing traffic: datagrams from a host without another part to the server's, at a constant rate."""

    load: float = option(
        0.0,
        "Background traffic offered to the server's link, as a fraction of its rate.",
        name="background_load",
        ge=0,
        le=10,
    )
    from_ms: float = option(
        0.0, "Start time of the background traffic in ms.", name="background_from_ms", ge=0, advanced=True
    )
    duration_ms: float = option(
        500.0, "Duration of the background traffic in ms.", name="background_ms", gt=0, advanced=True
    )
    frame_bytes: int = option(
        1000,
        "Frame size of the background traffic in bytes.",
        name="background_bytes",
        ge=64,
        le=1514,
        advanced=True,
    )


class QueueSamplesSection(Section):
    """Sampling of the queue of the server's link."""

    interval_us: int = option(
        10_000,
        "Sampling interval of the server's queue in us.",
        name="sample_us",
        ge=1,
        panel=RUN_AND_OUTPUT,
        advanced=True,
    )


class _CompressionWorkload(Section):
    workers: int = option(8, "Number of workers (the parameter server is one more host).", ge=1, le=256)


class _Rounds(_CompressionWorkload):
    rounds: int = option(10, "Number of training rounds: gradients that every worker sends.", ge=1)


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
    workload: Workload = Field(CompressionSyntheticWorkload(), description=GRADIENTS_HELP)

    def chance(self) -> tuple[str, ...]:
        # The seed decides which values are sent, and the code of their indices is as long as they are far apart.
        is_sparse = self.compression.compress.startswith(("topk", "randomk", "threshold"))
        drawn = self.workload.kind == "training" or is_sparse
        return (*super().chance(), *(["gradients"] if drawn else []))
