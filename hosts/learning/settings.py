"""What a job computes: the workload section of a job's config."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from gradbed.hosts.learning.quantise import HEADROOM_BITS, VALUE_LIMIT


class TrainingSettings(BaseModel):
    """Synchronous stochastic gradient descent; every worker takes one minibatch of its shard per round."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["training"] = "training"
    dataset: Literal["digits"] = "digits"
    hidden_units: int = Field(default=64, ge=0, le=65536)
    """Units of the hidden layer; 0: no hidden layer (softmax regression)."""
    rounds: int = Field(default=100, ge=1)
    batch_samples: int = Field(default=32, ge=1)
    """Samples per worker and round (at most the worker's whole shard)."""
    learning_rate: float = Field(default=0.5, gt=0, allow_inf_nan=False)
    seed: int = Field(default=1, ge=0)
    """Random seed of the initial weights and the choice of minibatches."""
    exponent: int | None = Field(default=None, ge=-64, le=64)
    """Gradients are scaled by 2^exponent for all rounds, so that what is held back in one can be added in another
    (gradbed.hosts.compressors). None: by what the sums of the round before allow."""
    blocks: float | None = Field(default=None, gt=0, le=1)
    """The part of each gradient's blocks that is sent, the same of all workers
    (gradbed.hosts.compressors.block_sparse); with an exponent, since the rest is held back. None: gradients are sent
    whole."""
    headroom_bits: int = Field(default=HEADROOM_BITS, ge=-6, le=24)
    """Gradients are scaled so that the largest global sum of the round before would be 2^-headroom_bits of what
    fits an int32. With the default sums practically never overflow; with a negative one they do in most rounds."""

    @model_validator(mode="after")
    def _blocks_at_one_scale(self) -> TrainingSettings:
        if self.blocks is not None and self.exponent is None:
            raise ValueError("blocks need an exponent: what is held back is of the scale of its round")
        return self


class SyntheticSettings(BaseModel):
    """Random gradients, summed and forgotten: measures the network without the time that learning takes."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["synthetic"] = "synthetic"
    values: int = Field(ge=1, le=1 << 28)
    """Length of a gradient."""
    rounds: int = Field(ge=1)
    magnitude: int = Field(default=1 << 24, ge=0, le=VALUE_LIMIT)
    """Values are spread evenly over -magnitude .. magnitude; up to 2^31 / workers no sum overflows."""
    seed: int = Field(default=1, ge=0)
    blocks: float | None = Field(default=None, gt=0, le=1)
    """See TrainingSettings."""


class ExternalSettings(BaseModel):
    """Gradients of a program that is not ours (gradbed.hosts.torch_hook), for as many rounds as it takes."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["external"] = "external"
    values: int = Field(default=1, ge=1, le=1 << 28)
    """Length of a gradient; known once the program has told it."""
    rounds: int = Field(default=1 << 40, ge=1)
    exponent: int | None = Field(default=None, ge=-64, le=64)
    """See TrainingSettings."""
    headroom_bits: int = Field(default=HEADROOM_BITS, ge=-6, le=24)
    """See TrainingSettings."""


Settings = Annotated[TrainingSettings | SyntheticSettings | ExternalSettings, Field(discriminator="kind")]
