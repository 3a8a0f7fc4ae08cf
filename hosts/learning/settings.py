"""What is trained, and how: the training section of a job description."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class TrainingSettings(BaseModel):
    """Synchronous stochastic gradient descent; every worker takes one minibatch of its shard per round."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    dataset: Literal["digits"] = "digits"
    hidden_units: int = Field(default=64, ge=0, le=65536)
    """Units of the hidden layer; 0: no hidden layer (softmax regression)."""
    rounds: int = Field(default=100, ge=1)
    batch_samples: int = Field(default=32, ge=1)
    """Samples per worker and round (at most the worker's whole shard)."""
    learning_rate: float = Field(default=0.5, gt=0, allow_inf_nan=False)
    seed: int = Field(default=1, ge=0)
    """Of the initial weights and the choice of minibatches."""
