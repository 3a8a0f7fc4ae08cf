"""Gradients of the workers of a job: random ones, or those of a classifier that they train together.

A system's workload has a class of its own for either, with its further options.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BeforeValidator

from gradbed.experiments.configuration.sections import Section, option
from gradbed.hosts.learning.settings import SyntheticSettings, TrainingSettings


class SyntheticGradients(Section):
    """Random gradients of `values` int32 each, to load the network without learning."""

    kind: Literal["synthetic"] = "synthetic"
    values: int = option(35_200, "int32 values of a gradient.", ge=1)

    def settings(self, rounds: int, seed: int) -> SyntheticSettings:
        return SyntheticSettings(values=self.values, rounds=rounds, seed=seed)


class TrainedGradients(Section):
    """Gradients of a classifier of the digits data set (hosts/learning)."""

    kind: Literal["training"] = "training"
    hidden_units: int = option(64, "Hidden units of the classifier; 0: a linear one.", ge=0, le=65536)
    batch_samples: int = option(32, "Samples of each worker per round.", ge=1)
    learning_rate: float = option(0.5, "Learning rate of stochastic gradient descent.", gt=0)

    def settings(self, rounds: int, seed: int, exponent: int | None = None) -> TrainingSettings:
        """Return the learning settings; `exponent` is that of TrainingSettings."""
        return TrainingSettings(
            hidden_units=self.hidden_units,
            rounds=rounds,
            batch_samples=self.batch_samples,
            learning_rate=self.learning_rate,
            seed=seed,
            exponent=exponent,
        )


def _synthetic_unless_said(workload: Any) -> Any:
    if isinstance(workload, dict) and "kind" not in workload:
        return {"kind": "synthetic", **workload}
    return workload


SYNTHETIC_UNLESS_SAID = BeforeValidator(_synthetic_unless_said)
"""Validator of a union of workloads: one without a kind is synthetic."""
