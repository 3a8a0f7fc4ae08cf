"""Where samples come from: the same bytes for the same number, whoever makes them."""

from __future__ import annotations

import base64
import functools
import hashlib
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from gradbed.common.errors import UserError
from gradbed.hosts.agents.config import AgentConfig
from gradbed.hosts.learning.dataset import load


class DigitSamples(AgentConfig):
    """Training samples of the digits data set: 64 pixels from 0 to 16, and the digit, a byte each."""

    kind: Literal["digits"] = "digits"

    def sizes_bytes(self, samples: int) -> list[int]:
        """UserError if the data set has fewer."""
        if samples > len(_digits()):
            raise UserError(f"the digits data set has {len(_digits())} training samples, not {samples}")
        return [_digits().shape[1]] * samples

    def sample(self, number: int) -> NDArray[np.uint8]:
        found: NDArray[np.uint8] = _digits()[number]
        return found


class SyntheticSamples(AgentConfig):
    """Random bytes. Sizes are spread evenly over mean_bytes - spread_bytes .. mean_bytes + spread_bytes."""

    kind: Literal["synthetic"] = "synthetic"
    seed: int = 1
    mean_bytes: int = Field(ge=1)
    spread_bytes: int = Field(default=0, ge=0)

    def sizes_bytes(self, samples: int) -> list[int]:
        if self.spread_bytes >= self.mean_bytes:
            raise UserError("samples have at least one byte: the spread of their sizes must be less than the mean")
        draw = np.random.default_rng([self.seed, 0x512E])
        low, high = self.mean_bytes - self.spread_bytes, self.mean_bytes + self.spread_bytes
        return [int(size) for size in draw.integers(low, high, samples, endpoint=True)]

    def sample(self, number: int) -> NDArray[np.uint8]:
        """Return bytes as many as the longest sample has; this one is their beginning."""
        return _random_bytes(self.seed, number, self.mean_bytes + self.spread_bytes)


SampleSource = Annotated[DigitSamples | SyntheticSamples, Field(discriminator="kind")]


@functools.lru_cache(maxsize=1 << 14)
def _random_bytes(seed: int, number: int, count: int) -> NDArray[np.uint8]:
    """Return random bytes, for ever the same. On the virtual clock many workers ask for each."""
    drawn = np.random.default_rng([seed, number]).integers(0, 256, count, np.uint8)
    drawn.flags.writeable = False
    return drawn


@functools.cache
def _digits() -> NDArray[np.uint8]:
    """(samples, 65)"""
    train = load("digits").train
    return np.hstack([np.rint(16 * train.features), train.labels[:, None]]).astype(np.uint8)


def original(source: SampleSource, number: int, size_bytes: int) -> NDArray[np.uint8]:
    """The bytes of a sample, shape (size_bytes,)."""
    return source.sample(number)[:size_bytes]


def digest(sample: NDArray[np.uint8]) -> str:
    """SHA-256 of a sample's bytes, in hexadecimal."""
    return hashlib.sha256(sample.tobytes()).hexdigest()


def in_base64(sample: NDArray[np.uint8]) -> str:
    """A sample's bytes as text."""
    return base64.b64encode(sample.tobytes()).decode("ascii")


def from_base64(text: str) -> NDArray[np.uint8]:
    """The bytes that `in_base64` was given."""
    return np.frombuffer(base64.b64decode(text), np.uint8)
