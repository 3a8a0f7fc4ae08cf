"""Samples: where they come from, the same bytes for a number at every host, and where a worker keeps them."""

from __future__ import annotations

import base64
import functools
import hashlib
from collections.abc import Iterable
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


# ---- A worker's store: samples of its own and lent ones, as padded fragments ----


Fragments = NDArray[np.uint8]
"""A sample, shape (fragments, fragment_bytes): the last fragment is padded with zeros."""


def cut(sample: NDArray[np.uint8], fragment_bytes: int) -> Fragments:
    """A sample's bytes as fragments."""
    fragments = -(-len(sample) // fragment_bytes)
    padded = np.zeros(fragments * fragment_bytes, np.uint8)
    padded[: len(sample)] = sample
    return padded.reshape(fragments, fragment_bytes)


def encode(parts: Iterable[Fragments], fragment_bytes: int) -> Fragments:
    """The XOR of samples, each padded with zeros to the longest."""
    parts = list(parts)
    total = np.zeros((max(map(len, parts)), fragment_bytes), np.uint8)
    for part in parts:
        total[: len(part)] ^= part
    return total


class Store:
    """fragment_bytes: of every packet of the job."""

    def __init__(self, fragment_bytes: int) -> None:
        self._fragment_bytes = fragment_bytes
        self._zeros = np.zeros(fragment_bytes, np.uint8)
        self._own: dict[int, Fragments] = {}
        self._lent: dict[int, dict[int, Fragments]] = {}
        """By the transmission that they are lent for, and by sample."""
        self.borrowed = 0
        """Samples that were ever lent to the worker."""

    def put(self, sample: int, fragments: Fragments) -> None:
        self._own[sample] = fragments

    def lend(self, sample: int, fragments: Fragments, transmission: int) -> None:
        """Take in a neighbour's sample, for that transmission alone."""
        self._lent.setdefault(transmission, {})[sample] = fragments
        self.borrowed += 1

    def give_back(self, transmission: int) -> None:
        """Delete what was lent for a transmission."""
        self._lent.pop(transmission, None)

    @property
    def lent(self) -> int:
        """Lent samples that are still there."""
        return sum(map(len, self._lent.values()))

    def holds(self, sample: int) -> bool:
        """Return whether a sample is held for good."""
        return sample in self._own

    def find(self, sample: int, transmission: int) -> Fragments | None:
        """A sample that is held, or lent for this transmission."""
        found = self._own.get(sample)
        return self._lent.get(transmission, {}).get(sample) if found is None else found

    def fragment(self, sample: int, number: int) -> NDArray[np.uint8] | None:
        """Return a fragment of a sample that is held for good; zeros beyond its end."""
        found = self._own.get(sample)
        if found is None:
            return None
        return found[number] if number < len(found) else self._zeros

    def encoded(self, samples: Iterable[int], transmission: int) -> Fragments:
        """The XOR of samples that are all held or lent for this transmission."""
        parts = [self.find(sample, transmission) for sample in samples]
        return encode([part for part in parts if part is not None], self._fragment_bytes)

    def keep(self, samples: Iterable[int]) -> None:
        """Delete all others of the worker's own."""
        kept = set(samples)
        self._own = {sample: fragments for sample, fragments in self._own.items() if sample in kept}

    def contents(self, sizes_bytes: dict[int, int]) -> dict[int, NDArray[np.uint8]]:
        """The bytes of all samples that are held for good."""
        return {sample: parts.reshape(-1)[: sizes_bytes[sample]] for sample, parts in self._own.items()}
