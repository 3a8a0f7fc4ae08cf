"""What a shuffle is asked to do: who stores which samples, and who needs which (S2 of the source)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from gradbed.common.errors import UserError


@dataclass(frozen=True)
class Instance:
    """Storage before a shuffle and demand after it; samples are numbered from 0, workers by their place in `workers`.

    workers: hosts' names. sizes_bytes: of every sample. stored, needed: for each worker sample numbers in ascending
    order. needed is all that a worker must hold in the end; what it stores already is no demand. master: a host that
    is no worker and stores every sample; it has the number len(workers), and only the classical scheme uses it.

    Making one checks it: UserError for unknown samples, for one that somebody needs and nobody stores, and for
    lists that do not fit together.
    """

    workers: tuple[str, ...]
    sizes_bytes: tuple[int, ...]
    stored: tuple[tuple[int, ...], ...]
    needed: tuple[tuple[int, ...], ...]
    master: str | None = None

    def __post_init__(self) -> None:
        if len(set(self.workers)) != len(self.workers):
            raise UserError("a worker is named twice")
        if self.master in self.workers:
            raise UserError(f"the master {self.master} is a worker, too: it takes a host of its own")
        for name, lists in (("stored", self.stored), ("needed", self.needed)):
            if len(lists) != len(self.workers):
                raise UserError(f"{len(self.workers)} workers, but {len(lists)} lists of {name} samples")
            for worker, samples in zip(self.workers, lists, strict=True):
                if list(samples) != sorted(set(samples)):
                    raise UserError(f"{name} samples of {worker} are not in ascending order, each once")
                if samples and not 0 <= samples[0] <= samples[-1] < len(self.sizes_bytes):
                    wrong = samples[0] if samples[0] < 0 else samples[-1]
                    raise UserError(
                        f"{worker} has sample {wrong} among its {name} ones, but samples are numbered from 0 to "
                        f"{len(self.sizes_bytes) - 1}"
                    )
        if any(size < 1 for size in self.sizes_bytes):
            raise UserError("a sample has at least one byte")
        for number, sample in self.demands:
            if not self.holders[sample]:
                raise UserError(f"{self.workers[number]} needs sample {sample}, which nobody stores")

    @classmethod
    def of(
        cls,
        stored: Mapping[str, Iterable[int]],
        needed: Mapping[str, Iterable[int]],
        sizes_bytes: Sequence[int],
        master: str | None = None,
    ) -> Instance:
        """From sets of samples by host; workers are the hosts of `stored`, in its order."""
        unknown = needed.keys() - stored.keys()
        if unknown:
            raise UserError(f"{min(unknown)} needs samples, but is no worker")
        return cls(
            workers=tuple(stored),
            sizes_bytes=tuple(sizes_bytes),
            stored=tuple(tuple(sorted(set(samples))) for samples in stored.values()),
            needed=tuple(tuple(sorted(set(needed.get(worker, ())))) for worker in stored),
            master=master,
        )

    @property
    def samples(self) -> int:
        """How many samples there are."""
        return len(self.sizes_bytes)

    @property
    def hosts(self) -> tuple[str, ...]:
        """By number: the workers, then the master where there is one."""
        return self.workers if self.master is None else (*self.workers, self.master)

    @cached_property
    def holders(self) -> tuple[int, ...]:
        """For each sample the workers that store it, as a set of bits: bit w is worker w. The master is none."""
        found = [0] * len(self.sizes_bytes)
        for worker, samples in enumerate(self.stored):
            for sample in samples:
                found[sample] |= 1 << worker
        return tuple(found)

    @cached_property
    def every_holder(self) -> tuple[int, ...]:
        """The same with the master, where there is one."""
        master = 0 if self.master is None else 1 << len(self.workers)
        return tuple(holders | master for holders in self.holders)

    @cached_property
    def demands(self) -> tuple[tuple[int, int], ...]:
        """(worker, sample) of everything that is needed and not stored, in ascending order."""
        return tuple(
            (worker, sample)
            for worker, (needed, stored) in enumerate(zip(self.needed, map(set, self.stored), strict=True))
            for sample in needed
            if sample not in stored
        )

    def stores(self, sender: int, sample: int) -> bool:
        """Whether a worker, or the master, stores a sample."""
        if sender == len(self.workers):
            return self.master is not None
        return bool(self.holders[sample] >> sender & 1)
