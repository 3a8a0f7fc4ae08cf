"""Configuration of an NDN trial: routers, peers, and what they exchange."""

from __future__ import annotations

import math
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from gradbed.experiments.configuration.sections import (
    SYNTHETIC_UNLESS_SAID,
    Section,
    SyntheticGradients,
    TrainedGradients,
    option,
)
from gradbed.experiments.configuration.trial import Clock, TrialConfiguration
from gradbed.experiments.scale import Scale
from gradbed.hosts.systems.ndn.config import Mode

Exchange = Literal["push", "pull", "unicast", "ring", "recursive-doubling"]
ALL_REDUCE = ("ring", "recursive-doubling")
"""Exchanges without names: the peers sum among themselves over UDP."""


class RoutersSection(Section):
    """Sizes of every router's tables."""

    contents: int = option(4096, "Data that a content store holds, a power of two; 0: no store.", ge=0, le=1 << 20)
    subscriptions: int = option(4096, "Rows of the persistent PIT, a power of two.", ge=2, le=1 << 20)
    pending: int = option(16384, "Rows of the PIT, a power of two.", ge=2, le=1 << 20)
    epoch_shift: int = option(
        20, "An epoch is 2^N us; a port that is not refreshed for a whole one loses its subscription.", ge=14, le=40
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

    peers: int = option(16, "Hosts that train.", ge=2, le=1024)
    rounds: int = option(10, "Gradients (versions) that every peer makes.", ge=1)
    lanes: int = option(96, "int32 lanes of a Data packet; BMv2 takes at most 96.", ge=64, le=352, multiple_of=32)
    exchange: Exchange = option(
        "push",
        "push (subscriptions), pull (an Interest for each fragment), unicast, or an all-reduce: ring or "
        "recursive-doubling.",
    )
    mode: Mode = option("synchronous", "synchronous (all peers' versions, then the next) or asynchronous.")
    pace: float = option(
        0.95, "Rate of all publishers together as a fraction of a link's rate; 0: no pacing.", ge=0, le=1
    )
    window_fragments: int = option(
        32, "Largest number of outstanding Interests of a peer, or of packets to another peer of an all-reduce.", ge=1
    )
    first_probe_us: int = option(200_000, "Initial timeout of a probe, before any measurement.", ge=1)
    least_probe_us: int = option(5_000, "Smallest margin of a probe's timeout over the usual gap.", ge=1)
    retry_us: int = option(20_000, "Timeout after which an unanswered insertion or deletion is repeated.", ge=1)
    give_up_ms: float = option(
        30_000.0, "Time without any version of others after which a waiting peer ends training.", gt=0
    )
    slow_peers: int = option(0, "Number of slow peers.", ge=0)
    slowness: int = option(1, "Factor on the compute time of a slow peer.", ge=1)
    target_loss: float | None = option(None, "Mean of all losses below which training ends.", gt=0)
    observers: tuple[ObserverSection, ...] = Field(default=(), json_schema_extra={"option": False})


class NdnSyntheticWorkload(SyntheticGradients, _NdnWorkload):
    """Random gradients, to load the network without learning."""

    values: int = option(960, "int32 values of a gradient.", ge=1)


class NdnTrainingWorkload(TrainedGradients, _NdnWorkload):
    """Gradients of a model that the peers train."""


Workload = Annotated[NdnSyntheticWorkload | NdnTrainingWorkload, Field(discriminator="kind"), SYNTHETIC_UNLESS_SAID]


class NdnConfiguration(TrialConfiguration):
    """Everything that a sweep of an NDN study can vary."""

    clock: Clock = option("virtual", "real: Mininet, as root; virtual: one process, time goes from event to event.")
    routers: RoutersSection = RoutersSection()
    workload: Workload = NdnSyntheticWorkload()

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
