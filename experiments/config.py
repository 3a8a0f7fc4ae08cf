"""Configurations: of a network, and of the aggregation experiment over one."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from switch.link import LinkModel


class NetworkConfig(BaseModel):
    """What is built, and what every link does; loss and duplicate are probabilities for each direction."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    topology: str = "fat-tree:4"
    lanes: int = Field(default=352, ge=32, le=352, multiple_of=32)
    rate_mbps: float = Field(default=20.0, ge=0)
    """0: unlimited."""
    delay_us: int = Field(default=50, ge=0)
    loss: float = Field(default=0.0, ge=0, lt=1)
    duplicate: float = Field(default=0.0, ge=0, lt=1)
    queue_packets: int = Field(default=1000, ge=1)
    switch: Literal["gradbed", "bmv2"] = "gradbed"
    links: Literal["memory", "veth"] = "memory"
    seed: int = Field(default=1, ge=0)

    @property
    def link_model(self) -> LinkModel:
        return LinkModel(
            rate_bps=round(self.rate_mbps * 1e6) or None,
            delay_us=self.delay_us,
            loss=self.loss,
            duplicate=self.duplicate,
            queue_packets=self.queue_packets,
        )


class AggregationConfig(NetworkConfig):
    """One job trained twice over one network: gradients summed in the switches, and by the server alone."""

    workers: int = Field(default=8, ge=1)
    rounds: int = Field(default=60, ge=1)
    min_timeout_ms: int = Field(default=50, ge=1)
    """Workers wait at least this long before they send a packet again."""
    hidden_units: int = Field(default=64, ge=0)
    batch_samples: int = Field(default=32, ge=1)
    """For each worker and round."""
    output: Path = Path("results")
