"""Trees of fewest links for some hosts (Steiner trees), on networks where breadth-first trees are longer.

By dynamic programming over sets of ends (Dreyfus and Wagner, "The Steiner problem in graphs", Networks 1, 1971). The
tree of a set and one node more is kept for every node, so that one table serves all senders, and clusters that grow
share what they have in common.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from gradbed.controller.systems.shuffle.scheduling.trees.bits import bits_of, members
from gradbed.controller.systems.shuffle.scheduling.trees.trees import Tree, Trees

MOST_RECEIVERS = 9
"""Behind so many switches; the work grows as three to the power of it."""

FAR = 1 << 13
"""Hops to what cannot be reached."""

Edge = tuple[str, str]


class SteinerTrees:
    """Of the hosts of some breadth-first trees. Hosts never forward, so trees are sought among switches."""

    def __init__(self, trees: Trees) -> None:
        self._hosts = trees.hosts
        topology = trees.topology
        names = [switch.name for switch in topology.switches]
        number = {name: place for place, name in enumerate(names)}
        self._names = names
        self._neighbours = [
            [number[other] for other in topology.neighbours(name) if other in number] for name in names
        ]
        self._apart = np.array([self._distances(node) for node in range(len(names))], np.int32)
        access = [topology.attachment(host).name for host in trees.hosts]
        self._at = np.array([number[name] for name in access])
        self._own = np.array(
            [not trees.is_inside(host, name) for host, name in zip(trees.hosts, access, strict=True)], np.int64
        )
        self._joined: dict[int, NDArray[np.int32]] = {}

    def _distances(self, start: int) -> list[int]:
        found = [FAR] * len(self._names)
        found[start] = 0
        waiting = deque([start])
        while waiting:
            node = waiting.popleft()
            for other in self._neighbours[node]:
                if found[other] == FAR:
                    found[other] = found[node] + 1
                    waiting.append(other)
        return found

    def _ends(self, receivers: int) -> int:
        """Switches of a set of hosts, as a set."""
        return bits_of({int(self._at[host]) for host in members(receivers)})

    def hops(self, receivers: int) -> NDArray[np.int64] | None:
        """For each host the fewest links between it and a set of others, shape (hosts,); None: these are too many."""
        ends = self._ends(receivers)
        if ends.bit_count() > MOST_RECEIVERS:
            return None
        own = int(sum(self._own[host] for host in members(receivers)))
        found: NDArray[np.int64] = self._costs(ends)[self._at] + self._own + own
        return found

    def _costs(self, ends: int) -> NDArray[np.int32]:
        """For each switch the links of a least tree that joins it with the ends."""
        found = self._joined.get(ends)
        if found is None:
            if ends.bit_count() == 1:
                found = self._apart[ends.bit_length() - 1]
            else:
                found = (self._meeting(ends)[:, None] + self._apart).min(axis=0)
            self._joined[ends] = found
        return found

    def _meeting(self, ends: int) -> NDArray[np.int32]:
        """The same for trees of two or more parts that meet in the switch."""
        halves = [(self._costs(one), self._costs(other)) for one, other in _halves(ends)]
        found: NDArray[np.int32] = (np.array([one for one, _ in halves]) + [other for _, other in halves]).min(axis=0)
        return found

    def tree(self, sender: int, receivers: int) -> Tree:
        """One of as few links as `hops` says; its root is the sender. It reaches these hosts and no others."""
        hosts = [self._hosts[sender], *(self._hosts[host] for host in members(receivers))]
        links = [
            (self._names[a], self._names[b]) for a, b in self._links(self._ends(receivers), int(self._at[sender]))
        ]
        links += [(self._names[int(self._at[host])], self._hosts[host]) for host in (sender, *members(receivers))]
        return rooted(hosts[0], links)

    def _links(self, ends: int, node: int) -> Iterator[tuple[int, int]]:
        """Of a least tree of the ends and a switch."""
        if ends.bit_count() == 1:
            yield from self._path(node, ends.bit_length() - 1)
            return
        meeting = self._meeting(ends)
        place = int((meeting + self._apart[node]).argmin())
        yield from self._path(node, place)
        one, other = min(_halves(ends), key=lambda half: self._costs(half[0])[place] + self._costs(half[1])[place])
        yield from self._links(one, place)
        yield from self._links(other, place)

    def _path(self, node: int, end: int) -> Iterator[tuple[int, int]]:
        while node != end:
            nearer = min(self._neighbours[node], key=lambda other: self._apart[other, end])
            yield node, nearer
            node = nearer


def _halves(ends: int) -> Iterator[tuple[int, int]]:
    """All ways to part a set in two; the first one has the least member."""
    first = ends & -ends
    rest = part = ends ^ first
    while part:
        part = (part - 1) & rest
        yield first | part, rest ^ part


class JoinedTrees:
    """Trees in which others are kept as parts, so that switches hold few of them.

    Two trees that have a node in common and no circle together are one: between hosts of either it
    has the same links.
    """

    def __init__(self) -> None:
        self._kept: list[tuple[str, set[str], set[frozenset[str]]]] = []

    def add(self, tree: Tree) -> int:
        """The place of a tree that has this one as a part."""
        links = set(map(frozenset, tree.links))
        nodes = {node for link in tree.links for node in link}
        for place, (_, other_nodes, other_links) in enumerate(self._kept):
            if nodes & other_nodes and len(links | other_links) == len(nodes | other_nodes) - 1:
                other_nodes |= nodes
                other_links |= links
                return place
        self._kept.append((tree.root, nodes, links))
        return len(self._kept) - 1

    @property
    def trees(self) -> tuple[Tree, ...]:
        """By place."""
        return tuple(rooted(root, ((a, b) for a, b in sorted(map(sorted, links)))) for root, _, links in self._kept)


def rooted(root: str, links: Iterable[Edge]) -> Tree:
    """The links of a tree in their order from a host."""
    beside: defaultdict[str, list[str]] = defaultdict(list)
    for a, b in links:
        beside[a].append(b)
        beside[b].append(a)
    found: list[Edge] = []
    waiting = deque([("", root)])
    while waiting:
        above, node = waiting.popleft()
        below = [(node, other) for other in beside[node] if other != above]
        found += below
        waiting += below
    return Tree(root, tuple(found))
