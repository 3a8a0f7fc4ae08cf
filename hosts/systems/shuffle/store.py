"""What a worker holds: samples of its own, and samples that are lent to it, as padded fragments."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

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
