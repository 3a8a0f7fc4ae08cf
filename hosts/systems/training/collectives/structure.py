"""What a rank's steps wait for, without ranges: all that decides which steps may begin."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain

import numpy as np

from gradbed.hosts.agents.card_collectives import ADD, COPY, RECEIVE, SEND, CardSchedule, Lists


@dataclass(frozen=True)
class Structure:
    """Of a schedule's steps, by their places.

    after: what each waits for. dependents: those that wait for it. waits: how many it waits for. first: those that
    wait for none. peers: of each step, by keys that ranks may share (Steps.key). receives: for each peer the receives
    from it, in order. turn: for each send, which of those to its peer it is (others: 0). kinds: those of
    gradbed.hosts.agents.card_collectives.
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
            if kind != COPY:
                firsts.setdefault(peer, place)
        return tuple(firsts.values())

    @cached_property
    def on_card(self) -> CardSchedule:
        """The same for a card; its peers are those of first_of_each_peer, in that order."""
        keys = [self.peers[place] for place in self.first_of_each_peer]
        places = {key: place for place, key in enumerate(keys)}
        return CardSchedule(
            kinds=np.frombuffer(self.kinds, np.uint8),
            waits=np.array(self.waits, np.uint32),
            dependents=_lists(self.dependents),
            peer=np.array([places.get(key, 0) for key in self.peers], np.uint32),
            turn=np.array(self.turn, np.uint32),
            receives=_lists([self.receives.get(key, ()) for key in keys]),
        )


def _lists(lists: Sequence[Sequence[int]]) -> Lists:
    ends = np.cumsum([0, *map(len, lists)], dtype=np.uint32)
    return ends, np.fromiter(chain.from_iterable(lists), np.uint32, int(ends[-1]))


_KINDS = {"send": SEND, "receive": RECEIVE, "add": ADD, "copy": COPY}


def structure_of(steps: Iterable[tuple[str, int, tuple[int, ...]]]) -> Structure:
    """Of steps given as action, peer's key and places of the earlier steps that they wait for."""
    actions, peers, after = zip(*steps, strict=True) if (steps := tuple(steps)) else ((), (), ())
    dependents: list[list[int]] = [[] for _ in after]
    turn = []
    kinds = bytes(_KINDS[action] for action in actions)
    sends: defaultdict[int, int] = defaultdict(int)
    receives: defaultdict[int, list[int]] = defaultdict(list)
    for place, (kind, peer) in enumerate(zip(kinds, peers, strict=True)):
        turn.append(sends[peer] if kind == SEND else 0)
        if kind == SEND:
            sends[peer] += 1
        elif kind != COPY:
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
