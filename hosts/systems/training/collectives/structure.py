"""What a rank's steps wait for, without ranges: all that decides which steps may begin."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache


@dataclass(frozen=True)
class Structure:
    """Of a schedule's steps, by their places.

    after: what each waits for. dependents: those that wait for it. waits: how many it waits for. first: those that
    wait for none. peers: of each step, by keys that ranks may share (Steps.key). receives: for each peer the receives
    from it, in order. turn: for each send, which of those to its peer it is (others: 0). kinds: 0 send, 1 receive or
    add, 2 copy.
    """

    after: tuple[tuple[int, ...], ...]
    dependents: tuple[tuple[int, ...], ...]
    waits: tuple[int, ...]
    first: tuple[int, ...]
    receives: dict[int, tuple[int, ...]]
    turn: tuple[int, ...]
    kinds: bytes
    peers: tuple[int, ...]

    @cached_property
    def first_of_each_peer(self) -> tuple[int, ...]:
        """A message of each, by place."""
        firsts: dict[int, int] = {}
        for place, (peer, kind) in enumerate(zip(self.peers, self.kinds, strict=True)):
            if kind != 2:
                firsts.setdefault(peer, place)
        return tuple(firsts.values())

    @cached_property
    def awaited(self) -> bytes:
        """1 for a send for which something waits that is no receive: it goes on as soon as the send is complete."""
        return bytes(
            kind == 0 and any(self.kinds[place] != 1 for place in dependents)
            for kind, dependents in zip(self.kinds, self.dependents, strict=True)
        )


_KINDS = {"send": 0, "receive": 1, "add": 1, "copy": 2}


def structure_of(steps: Iterable[tuple[str, int, tuple[int, ...]]]) -> Structure:
    """Of steps given as action, peer's key and places of the earlier steps that they wait for."""
    actions, peers, after = zip(*steps, strict=True) if (steps := tuple(steps)) else ((), (), ())
    dependents: list[list[int]] = [[] for _ in after]
    turn = []
    kinds = bytes(_KINDS[action] for action in actions)
    sends: defaultdict[int, int] = defaultdict(int)
    receives: defaultdict[int, list[int]] = defaultdict(list)
    for place, (kind, peer) in enumerate(zip(kinds, peers, strict=True)):
        turn.append(sends[peer] if kind == 0 else 0)
        if kind == 0:
            sends[peer] += 1
        elif kind == 1:
            receives[peer].append(place)
        for earlier in after[place]:
            dependents[earlier].append(place)
    return Structure(
        after=after,
        dependents=tuple(map(tuple, dependents)),
        waits=tuple(map(len, after)),
        first=tuple(place for place, earlier in enumerate(after) if not earlier),
        receives={peer: tuple(places) for peer, places in receives.items()},
        turn=tuple(turn),
        kinds=kinds,
        peers=peers,
    )


@lru_cache(1024)
def shared_structure(steps: tuple[tuple[str, int, tuple[int, ...]], ...]) -> Structure:
    """Of equal steps the same one."""
    return structure_of(steps)
