"""Configuration of an NDN trial: routers, peers, and what they exchange."""

from __future__ import annotations

import math
from typing import Annotated, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from gradbed.experiments.configuration.options import FAULTS, RUN_AND_OUTPUT
from gradbed.experiments.configuration.sections import (
    GRADIENTS_HELP,
    SYNTHETIC_UNLESS_SAID,
    Section,
    SyntheticGradients,
    TrainedGradients,
    option,
)
from gradbed.experiments.configuration.trial import CLOCK_HELP, Clock, TrialConfiguration
from gradbed.experiments.scale import Scale
from gradbed.hosts.systems.ndn.config import Mode

Exchange = Literal["push", "pull", "unicast", "ring", "recursive-doubling"]
ALL_REDUCE = ("ring", "recursive-doubling")
"""Exchanges without names: the peers sum among themselves over UDP."""


class RoutersSection(Section):
    """Sizes of every router's tables."""

    panel: ClassVar[str | None] = "Switches"

    contents: int = option(
        4096, "Content Store size of every router in Data packets, a power of two; 0: no store.", ge=0, le=1 << 20
    )
    subscriptions: int = option(
        4096, "Size of the persistent PIT in entries, a power of two.", ge=2, le=1 << 20, advanced=True
    )
    pending: int = option(16384, "Size of the PIT in entries, a power of two.", ge=2, le=1 << 20, advanced=True)
    epoch_shift: int = option(
        20,
        "Subscription lifetime: an epoch lasts 2^N us, and a face not refreshed for a whole epoch is unsubscribed.",
        ge=14,
        le=40,
        advanced=True,
    )

    def emulated_epoch_shift(self, scale: Scale) -> int:
        """Return the shift of an emulated epoch.

        The epoch has at least as many transmission times of a packet as the nominal one, up to 2^40 us, which no run
        lasts for.
        """
        return min(40, self.epoch_shift + math.ceil(-math.log2(scale.factor)))

    @field_validator("contents", "subscriptions", "pending")
    @classmethod
    def _power_of_two(cls, value: int) -> int:
        if value & (value - 1) or value == 1:
            raise ValueError(f"a power of two is wanted, not {value}")
        return value


class ObserverSection(Section):
    """A host that subscribes and publishes nothing."""

    join_ms: float = Field(default=0.0, ge=0)
    """Nominal time from the beginning at which it subscribes."""
    leave_ms: float | None = Field(default=None, ge=0)
    """Nominal time from the beginning at which it leaves; null: at the end."""


class _NdnWorkload(Section):
    """Options that all workloads of peers share; times are nominal."""

    peers: int = option(16, "Number of training peers.", ge=2, le=1024)
    rounds: int = option(10, "Number of training rounds: gradients (versions) that every peer publishes.", ge=1)
    lanes: int = option(
        96,
        "Number of int32 values in a Data packet (BMv2: at most 96).",
        ge=64,
        le=352,
        multiple_of=32,
        advanced=True,
    )
    exchange: Exchange = option(
        "push",
        "Gradient exchange: push (subscriptions), pull (an Interest for each fragment), unicast, ring or "
        "recursive-doubling (all-reduce over UDP).",
    )
    mode: Mode = option(
        "synchronous", "Training: synchronous (each round waits for all peers' gradients) or asynchronous."
    )
    pace: float = option(
        0.95,
        "Pacing: rate of all publishers together as a fraction of the link rate; 0: no pacing.",
        ge=0,
        le=1,
        panel="Transport",
    )
    window_fragments: int = option(
        32,
        "Maximum window of a peer: outstanding Interests (pull) or unacknowledged packets to a peer (all-reduce).",
        ge=1,
        panel="Transport",
    )
    first_probe_us: int = option(
        200_000, "Initial probe timeout in us, before any measurement.", ge=1, panel="Transport", advanced=True
    )
    least_probe_us: int = option(
        5_000,
        "Minimum margin of the probe timeout over the usual gap, in us.",
        ge=1,
        panel="Transport",
        advanced=True,
    )
    retry_us: int = option(
        20_000,
        "Retransmission timeout in us of subscribe and unsubscribe messages.",
        ge=1,
        panel="Transport",
        advanced=True,
    )
    give_up_ms: float = option(
        30_000.0,
        "Time in ms without data from other peers after which a waiting peer ends training.",
        gt=0,
        panel="Transport",
        advanced=True,
    )
    slow_peers: int = option(0, "Number of stragglers among the peers.", ge=0, panel=FAULTS)
    slowness: int = option(1, "Slow-down of a straggler: factor on its compute time.", ge=1, panel=FAULTS)
    target_loss: float | None = option(
        None, "Stop training when the mean loss of all peers falls below this value.", gt=0, advanced=True
    )
    observers: tuple[ObserverSection, ...] = Field(default=(), json_schema_extra={"option": False})


class NdnSyntheticWorkload(SyntheticGradients, _NdnWorkload):
    """Random gradients, to load the network without learning."""

    values: int = option(960, "Number of int32 values in a synthetic gradient.", ge=1)


class NdnTrainingWorkload(TrainedGradients, _NdnWorkload):
    """Gradients of a model that the peers train."""


Workload = Annotated[NdnSyntheticWorkload | NdnTrainingWorkload, Field(discriminator="kind"), SYNTHETIC_UNLESS_SAID]


class NdnConfiguration(TrialConfiguration):
    """Everything that a sweep of an NDN study can vary."""

    clock: Clock = option("virtual", CLOCK_HELP, panel=RUN_AND_OUTPUT)
    routers: RoutersSection = RoutersSection()
    workload: Workload = Field(NdnSyntheticWorkload(), description=GRADIENTS_HELP)

    def chance(self) -> tuple[str, ...]:
        return (*super().chance(), *(["training"] if self.workload.kind == "training" else []))

    def canonical(self) -> NdnConfiguration:
        if self.workload.exchange in ("push", "unicast"):
            return self
        means_nothing: dict[str, object] = {"pace": 0.0}
        if self.workload.exchange in ALL_REDUCE:
            return self.model_copy(
                update={
                    "routers": RoutersSection(contents=0),
                    "workload": self.workload.model_copy(update=means_nothing),
                }
            )
        return self.model_copy(update={"workload": self.workload.model_copy(update=means_nothing)})

    @model_validator(mode="after")
    def _possible(self) -> NdnConfiguration:
        workload = self.workload
        if workload.mode == "asynchronous" and (
            not isinstance(workload, NdnTrainingWorkload) or workload.exchange not in ("push", "unicast")
        ):
            raise ValueError("--mode asynchronous: such peers train (--workload training) and push (--exchange push)")
        if workload.observers and workload.exchange != "push":
            raise ValueError("observers follow pushes: use --exchange push")
        if workload.target_loss is not None and workload.kind != "training":
            raise ValueError("--target-loss: give something to learn (--workload training)")
        if workload.slow_peers > workload.peers:
            raise ValueError(f"--slow-peers: there are {workload.peers} peers")
        return self
