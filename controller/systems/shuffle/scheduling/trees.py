"""The trees that coded packets take, as sets of links: breadth-first trees, and Steiner trees where those are
longer.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, product

import numpy as np
from numpy.typing import NDArray

from gradbed.common.errors import UserError
from gradbed.topo.graph import Topology, is_hop

# ---- Sets of small numbers as the bits of an int ----


def members(bits: int) -> Iterator[int]:
    """Yield the numbers in a set, in ascending order."""
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest


def bits_of(numbers: Iterable[int]) -> int:
    """Return the set of some numbers."""
    found = 0
    for number in numbers:
        found |= 1 << number
    return found


# ---- Breadth-first trees ----
#
# Multicast trees and what they cost in hops (S1 of the source).
#
# A breadth-first tree from a sender to all hosts, without the branches that lead to none: packets for some receivers
# take the links of it that lie between the sender and them, so that any two receivers' common way is taken once. Such
# a tree may be a breadth-first tree for other senders as well, once their packets climb and descend it; a fat-tree
# needs one tree for each core switch, however many hosts it has. Where nodes have several equally near parents,
# variants of the tree differ in which they take: the n-th in order of ports, the same n for all nodes of a tier.
#
# Links inside servers count as no hop (gradbed.topo.graph).


NEIGHBOUR_HOPS = 2
"""Workers at most this far apart may lend each other samples."""


@dataclass(frozen=True)
class Tree:
    """A tree that spans the hosts, or some of them. links: (parent, child), a parent's own link before its
    children's. The root is a host."""

    root: str
    links: tuple[tuple[str, str], ...]

    def branches(self, sender: str, receivers: Iterable[str]) -> tuple[tuple[str, str], ...]:
        """Return the links (from, to) that a packet takes from a host to others, each after the one that leads to it
        (S1).

        Links inside servers are among them.
        """
        ends = {sender, *receivers}
        passed = Counter(link for end in ends for link in self._to_root(end))
        beside: defaultdict[str, list[str]] = defaultdict(list)
        for (parent, child), times in passed.items():
            # What all have on their way to the root leads to none of them.
            if times < len(ends):
                beside[parent].append(child)
                beside[child].append(parent)
        found: list[tuple[str, str]] = []
        waiting = deque([("", sender)])
        while waiting:
            before, node = waiting.popleft()
            onward = [(node, other) for other in beside[node] if other != before]
            found += onward
            waiting += onward
        return tuple(found)

    @cached_property
    def nodes(self) -> frozenset[str]:
        return frozenset({self.root, *self._parents})

    @cached_property
    def _parents(self) -> dict[str, str]:
        return {child: parent for parent, child in self.links}

    def _to_root(self, node: str) -> Iterator[tuple[str, str]]:
        while node != self.root:
            yield self._parents[node], node
            node = self._parents[node]


class Trees:
    """Trees for a set of hosts, and hop counts on them.

    hosts: the workers in order of their numbers, then the master where there is one; numbers in arguments are places
    in it, and a set of hosts is an int whose bit w is host w. variants: at most so many trees for each sender.
    UserError if a host cannot be reached.
    """

    def __init__(self, topology: Topology, hosts: Sequence[str], variants: int = 1) -> None:
        self.topology = topology
        self.hosts = tuple(hosts)
        self.trees: list[Tree] = []
        self._up: list[tuple[int, ...]] = []
        self._compared: dict[tuple[int, int], bool] = {}
        graph = _Graph(topology, self.hosts)
        serving: list[list[int]] = [[] for _ in self.hosts]
        reaches = [graph.distances(host) for host in self.hosts]
        for variant in range(min(variants, graph.variants(reaches[0])) if self.hosts else 0):
            first = len(self.trees)
            for sender, distances in enumerate(reaches):
                to_hosts = np.array([distances[node] for node in graph.host_nodes])
                for number in range(first, len(self.trees)):
                    if np.array_equal(self._lengths[number][sender], to_hosts):
                        serving[sender].append(number)
                        break
                else:
                    self._add(graph.tree(sender, distances, variant))
                    serving[sender].append(len(self.trees) - 1)
        self.of_sender = tuple(map(tuple, serving))
        """For each host the numbers of the trees on which it may send."""
        self._unequal = tuple(map(self._of_unequal_lengths, self.of_sender))

    @cached_property
    def _lengths(self) -> dict[int, NDArray[np.int64]]:
        """Matrix of the number of links between any two hosts, by tree; links inside servers are included."""
        return {}

    def _of_unequal_lengths(self, trees: Sequence[int]) -> tuple[int, ...]:
        """Return of some trees the first of each length between all hosts.

        Lengths between them say what a tree's part for any of them takes, so the others take as many hops.
        """
        found: list[int] = []
        for tree in trees:
            if not any(self._alike(tree, other) for other in found):
                found.append(tree)
        return tuple(found)

    def _alike(self, tree: int, other: int) -> bool:
        pair = tree, other
        if pair not in self._compared:
            self._compared[pair] = np.array_equal(self._lengths[tree], self._lengths[other])
        return self._compared[pair]

    def _add(self, tree: Tree) -> None:
        every = links_above(tree)
        costed = links_above(tree, self.is_inside)
        self._lengths[len(self.trees)] = _pairwise([every[host] for host in self.hosts])
        self.trees.append(tree)
        self._up.append(tuple(costed[host] for host in self.hosts))

    @cached_property
    def are_shortest(self) -> bool:
        """The trees are shortest between all hosts, since one of them is breadth-first for every sender.

        A walk around any tree passes its links twice, and is at least as long as the distances between the hosts that
        it passes, one after the other. On a tree with these distances such a walk passes each link of the hosts' part
        at least twice. So that part is no longer.
        """
        return bool(self.of_sender) and bool(set.intersection(*map(set, self.of_sender)))

    def is_inside(self, a: str, b: str) -> bool:
        """Return whether a link is the inside of a server, which counts as no hop."""
        return not is_hop(self.topology, self.topology.link(a, b))

    def up(self, tree: int) -> tuple[int, ...]:
        """Return for each host the links between it and the tree's root as a set of bits, without those inside
        servers.

        A packet between some hosts takes the links that are in one of their sets and not in all.
        """
        return self._up[tree]

    def hops_on(self, tree: int, sender: int, receivers: int) -> int:
        """Links of a tree that a packet takes from a host to a set of hosts."""
        return self._joined(tree, sender, self._span(tree, receivers))

    def _span(self, tree: int, hosts: int) -> tuple[int, int]:
        """Links above some of a set of hosts, and above all of them."""
        up = self._up[tree]
        union, common = 0, -1
        for host in members(hosts):
            union |= up[host]
            common &= up[host]
        return union, common

    def _joined(self, tree: int, sender: int, span: tuple[int, int]) -> int:
        up = self._up[tree][sender]
        return ((span[0] | up) ^ (span[1] & up)).bit_count()

    def hops_of_each(self, senders: Iterable[int], receivers: int) -> Iterator[int]:
        """Return the fewest hops from each of some hosts to a set of hosts."""
        spans: dict[int, tuple[int, int]] = {}
        for sender in senders:
            unequal = self._unequal[sender]
            for tree in unequal:
                if tree not in spans:
                    spans[tree] = self._span(tree, receivers)
            yield min(self._joined(tree, sender, spans[tree]) for tree in unequal)

    def best(self, sender: int, receivers: int) -> tuple[int, int]:
        """Return the fewest hops, and the first of the sender's trees that takes no more."""
        return min((self.hops_on(tree, sender, receivers), tree) for tree in self._unequal[sender])

    def hops(self, sender: int, receivers: int) -> int:
        """Return the fewest hops from a host to a set of hosts on any of its trees."""
        return self.best(sender, receivers)[0]

    @cached_property
    def distances(self) -> NDArray[np.int64]:
        """Hops of a packet from one host to another, of shape (hosts, hosts)."""
        found = np.empty((len(self.hosts), len(self.hosts)), np.int64)
        for number, up in enumerate(self._up):
            senders = [sender for sender, trees in enumerate(self.of_sender) if trees[0] == number]
            if senders:
                found[senders] = _pairwise(up, senders)
        return found

    @cached_property
    def neighbours(self) -> tuple[int, ...]:
        """The set of other hosts at most NEIGHBOUR_HOPS away, for each host."""
        near = self.distances <= NEIGHBOUR_HOPS
        return tuple(sum(1 << int(other) for other in np.flatnonzero(row)) & ~(1 << h) for h, row in enumerate(near))


def links_above(tree: Tree, is_free: Callable[[str, str], bool] = lambda a, b: False) -> dict[str, int]:
    """Return for each node the links between it and the root as a set of bits, without those that are free."""
    found = {tree.root: 0}
    for number, (parent, child) in enumerate(tree.links):
        assert child not in found, "a tree has one parent for each node"
        found[child] = found[parent] | (0 if is_free(parent, child) else 1 << number)
    return found


def _pairwise(sets: Sequence[int], rows: Iterable[int] | None = None) -> NDArray[np.int64]:
    """Sizes of the symmetric differences of sets of bits, (rows, sets)."""
    size_bytes = max(map(int.bit_length, sets)) // 8 + 1
    packed = np.frombuffer(b"".join(each.to_bytes(size_bytes, "little") for each in sets), np.uint8)
    # Numbers below 2**24 are exact in this type, whose matrices are multiplied fast.
    bits = np.unpackbits(packed.reshape(len(sets), size_bytes), axis=1).astype(np.float32)
    sizes = bits.sum(axis=1)
    chosen = slice(None) if rows is None else list(rows)
    differences: NDArray[np.int64] = (sizes[chosen, None] + sizes - 2 * bits[chosen] @ bits.T).astype(np.int64)
    return differences


class _Graph:
    """The topology with nodes as numbers; hosts never forward."""

    def __init__(self, topology: Topology, hosts: Sequence[str]) -> None:
        names = [*(host.name for host in topology.hosts), *(switch.name for switch in topology.switches)]
        number = {name: index for index, name in enumerate(names)}
        self.names = names
        self.hosts = len(topology.hosts)
        self.host_nodes = [number[topology.host(host).name] for host in hosts]
        self.neighbours = [[number[other] for other in topology.neighbours(name)] for name in names]
        self.tiers = [""] * self.hosts + [switch.tier for switch in topology.switches]

    def distances(self, host: str) -> dict[int, int]:
        """Links from a host to every node."""
        start = self.names.index(host)
        found = {start: 0}
        waiting = deque([start])
        while waiting:
            node = waiting.popleft()
            if node < self.hosts and node != start:
                continue
            for other in self.neighbours[node]:
                if other not in found:
                    found[other] = found[node] + 1
                    waiting.append(other)
        for node in self.host_nodes:
            if node not in found:
                raise UserError(f"the network is not connected: no path from {host} to {self.names[node]}")
        return found

    def _parents(self, node: int, distances: Mapping[int, int]) -> list[int]:
        nearer = distances[node] - 1
        # A host on the way is the sender, at distance 0.
        return [
            other
            for other in self.neighbours[node]
            if distances.get(other) == nearer and (other >= self.hosts or nearer == 0)
        ]

    def _choices(self, distances: Mapping[int, int]) -> dict[str, int]:
        """Return for each tier the most parents that one of its nodes could take."""
        found: dict[str, int] = {}
        for node in distances:
            if distances[node]:
                tier = self.tiers[node]
                found[tier] = max(found.get(tier, 1), len(self._parents(node, distances)))
        return found

    def variants(self, distances: Mapping[int, int]) -> int:
        return math.prod(self._choices(distances).values())

    def tree(self, sender: int, distances: Mapping[int, int], variant: int) -> Tree:
        choices = self._choices(distances)
        total = math.prod(choices.values())
        places = next(islice(product(*map(range, choices.values())), variant % total, None))
        place = dict(zip(choices, places, strict=True))
        parents: dict[int, int] = {}
        for node in self.host_nodes:
            while distances[node] and node not in parents:
                candidates = self._parents(node, distances)
                parents[node] = candidates[place[self.tiers[node]] % len(candidates)]
                node = parents[node]
        links = sorted((distances[child], parent, child) for child, parent in parents.items())
        return Tree(
            self.names[self.host_nodes[sender]],
            tuple((self.names[parent], self.names[child]) for _, parent, child in links),
        )


# ---- Steiner trees ----
#
# Trees of fewest links for some hosts (Steiner trees), on networks where breadth-first trees are longer.
#
# By dynamic programming over sets of ends (Dreyfus and Wagner, "The Steiner problem in graphs", Networks 1, 1971).
# The tree of a set and one node more is kept for every node, so that one table serves all senders, and clusters that
# grow share what they have in common.


MOST_RECEIVERS = 9
"""Behind so many switches; the work grows as three to the power of it."""

FAR = 1 << 13
"""Hops to what cannot be reached."""

Edge = tuple[str, str]


class SteinerTrees:
    """Steiner trees of the hosts of some breadth-first trees. Hosts never forward, so trees are sought among
    switches."""

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
        """Return for each host the fewest links between it and a set of others, of shape (hosts,); None: too many."""
        ends = self._ends(receivers)
        if ends.bit_count() > MOST_RECEIVERS:
            return None
        own = int(sum(self._own[host] for host in members(receivers)))
        found: NDArray[np.int64] = self._costs(ends)[self._at] + self._own + own
        return found

    def _costs(self, ends: int) -> NDArray[np.int32]:
        """Return for each switch the links of a least tree that joins it with the ends."""
        found = self._joined.get(ends)
        if found is None:
            if ends.bit_count() == 1:
                found = self._apart[ends.bit_length() - 1]
            else:
                found = (self._meeting(ends)[:, None] + self._apart).min(axis=0)
            self._joined[ends] = found
        return found

    def _meeting(self, ends: int) -> NDArray[np.int32]:
        """Return the links of least trees of two or more parts that meet in each switch."""
        halves = [(self._costs(one), self._costs(other)) for one, other in _halves(ends)]
        found: NDArray[np.int32] = (np.array([one for one, _ in halves]) + [other for _, other in halves]).min(axis=0)
        return found

    def tree(self, sender: int, receivers: int) -> Tree:
        """Return a tree of as few links as `hops` gives. Its root is the sender; it reaches these hosts and no
        others."""
        hosts = [self._hosts[sender], *(self._hosts[host] for host in members(receivers))]
        links = [
            (self._names[a], self._names[b]) for a, b in self._links(self._ends(receivers), int(self._at[sender]))
        ]
        links += [(self._names[int(self._at[host])], self._hosts[host]) for host in (sender, *members(receivers))]
        return rooted(hosts[0], links)

    def _links(self, ends: int, node: int) -> Iterator[tuple[int, int]]:
        """Return the links of a least tree of the ends and a switch."""
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
    """Yield all ways to part a set in two; the first one has the least member."""
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
        """Return the place of a tree that has this one as a part."""
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
        """The joined trees by place."""
        return tuple(rooted(root, ((a, b) for a, b in sorted(map(sorted, links)))) for root, _, links in self._kept)


def rooted(root: str, links: Iterable[Edge]) -> Tree:
    """Return the links of a tree in their order from a host."""
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
