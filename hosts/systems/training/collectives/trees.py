"""Trees: vectors are added on the way up and copied on the way down, chunk after chunk.

One binary tree keeps its leaves' links half idle. Of two, in which nobody has children twice, each takes half of the
chunks, and every rank sends and receives at its link's rate (P. Sanders, J. Speck, J. L. Träff, "Two-tree algorithms
for full bandwidth broadcast, reduction and scan", Parallel Computing 35, 2009). Both are trees in order: the leaves
of the first are every second rank, and the second is its mirror image, or shifted by one where the number is odd.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gradbed.hosts.collectives.schedule import CollectiveAction, CollectiveStep, part


@dataclass(frozen=True)
class TreePosition:
    """A rank's in a tree: None above the root."""

    parent: int | None
    children: tuple[int, ...]


def binary_tree(size: int, rank: int, root: int) -> TreePosition:
    """The complete binary tree, level by level from the root on."""
    place = (rank - root) % size
    below = (child for child in (2 * place + 1, 2 * place + 2) if child < size)
    parent = None if place == 0 else ((place - 1) // 2 + root) % size
    return TreePosition(parent, tuple((child + root) % size for child in below))


def _in_order(size: int, number: int) -> tuple[int, tuple[int, ...]]:
    """Parent (0: none) and children of a number from 1 on: odd ones are leaves, the root is a power of two."""
    lowest = number & -number
    parent = (number - lowest) | 2 * lowest
    if parent > size:
        parent = number - lowest
    children = [number - lowest // 2] if lowest > 1 else []
    step = lowest // 2
    while step and number + step > size:
        step //= 2
    if step:
        children.append(number + step)
    return parent, tuple(children)


def _second(size: int, number: int) -> int:
    """Return a number in the second tree.

    Applied to numbers, what is a leaf in one has children in the other, if any.
    """
    return size + 1 - number if size % 2 == 0 else number % size + 1


def _first(size: int, number: int) -> int:
    """The inverse."""
    return size + 1 - number if size % 2 == 0 else (number - 2) % size + 1


def two_trees(size: int, rank: int) -> tuple[TreePosition, TreePosition]:
    """Return a rank's places in two trees of all ranks."""
    number = rank + 1
    parent, children = _in_order(size, number)
    one = TreePosition(parent - 1 if parent else None, tuple(child - 1 for child in children))
    parent, children = _in_order(size, _second(size, number))
    other = TreePosition(
        _first(size, parent) - 1 if parent else None, tuple(_first(size, child) - 1 for child in children)
    )
    return one, other


def two_trees_below(size: int, rank: int, root: int) -> tuple[TreePosition, TreePosition]:
    """Return a rank's places in two trees of all ranks but the root, which is above both."""
    if size == 1:
        return TreePosition(None, ()), TreePosition(None, ())

    def named(place: TreePosition) -> TreePosition:
        parent = root if place.parent is None else (place.parent + 1 + root) % size
        return TreePosition(parent, tuple((child + 1 + root) % size for child in place.children))

    if rank == root:
        tops = []
        for tree in range(2):
            tops.append(next(r for r in _tops(size - 1) if two_trees(size - 1, r)[tree].parent is None))
        return TreePosition(None, ((tops[0] + 1 + root) % size,)), TreePosition(None, ((tops[1] + 1 + root) % size,))
    one, other = two_trees(size - 1, (rank - root - 1) % size)
    return named(one), named(other)


def _tops(size: int) -> tuple[int, int]:
    """The ranks that are a tree's root."""
    top = 1 << (size.bit_length() - 1)
    return top - 1, _first(size, top) - 1


def steps(trees: Sequence[TreePosition], elements: int, chunks: int, *, up: bool, down: bool) -> list[CollectiveStep]:
    """up: reduce; down: broadcast; both: all-reduce. Chunks take trees in turn; each tree has `chunks` of them."""
    made: list[CollectiveStep] = []
    for chunk in range(chunks * len(trees)):
        place = trees[chunk % len(trees)]
        start, stop = part(elements, chunks * len(trees), chunk)
        came: list[int] = []
        if up:
            for child in place.children:
                came.append(len(made))
                made.append(CollectiveStep(CollectiveAction.ADD, child, start, stop))
            if place.parent is not None:
                made.append(CollectiveStep(CollectiveAction.SEND, place.parent, start, stop, after=tuple(came)))
                came = [len(made) - 1]
        if down:
            if place.parent is not None:
                made.append(CollectiveStep(CollectiveAction.RECEIVE, place.parent, start, stop, after=tuple(came)))
                came = [len(made) - 1]
            for child in place.children:
                made.append(CollectiveStep(CollectiveAction.SEND, child, start, stop, after=tuple(came)))
    return made
