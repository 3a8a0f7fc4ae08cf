"""A scheduler of coded shuffles of one's own: `--scheduler first-holder`."""

from __future__ import annotations

from collections.abc import Iterator

from gradbed.plugin import ShuffleInstance, Trees


def first_holder(
    instance: ShuffleInstance, trees: Trees, seed: int
) -> Iterator[tuple[int, tuple[tuple[int, int], ...]]]:
    """Send each sample on its own, from the first worker that stores it."""
    for worker, sample in instance.demands:
        sender = next(holder for holder, stored in enumerate(instance.stored) if sample in stored)
        yield sender, ((worker, sample),)
