"""What a rank's steps wait for, without ranges: all that decides which steps may begin."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Structure:
    """Of a schedule's steps, by their places.

    dependents: for each step, those that wait for it. waits: for each, how many it waits for. first: those that wait
    for none. sends: for each peer the sends to it, in order; receives: likewise. turn: for each send, which of those
    to its peer it is (others: 0). kinds: 0 send, 1 receive or add, 2 copy. peers: of each step, as the keys of sends
    and receives.
    """

    dependents: tuple[tuple[int, ...], ...]
    waits: tuple[int, ...]
    first: tuple[int, ...]
    sends: dict[int, tuple[int, ...]]
    receives: dict[int, tuple[int, ...]]
    turn: tuple[int, ...]
    kinds: bytes
    peers: tuple[int, ...]


_KINDS = {"send": 0, "receive": 1, "add": 1, "copy": 2}


def structure_of(steps: Iterable[tuple[str, int, tuple[int, ...]]]) -> Structure:
    """Of steps given as action, peer and places of the earlier steps that they wait for."""
    dependents: list[list[int]] = []
    waits, turn, peers = [], [], []
    kinds = bytearray()
    sends: defaultdict[int, list[int]] = defaultdict(list)
    receives: defaultdict[int, list[int]] = defaultdict(list)
    for place, (action, peer, after) in enumerate(steps):
        dependents.append([])
        kind = _KINDS[action]
        kinds.append(kind)
        peers.append(peer)
        waits.append(len(after))
        turn.append(len(sends[peer]) if kind == 0 else 0)
        if kind != 2:
            (receives if kind else sends)[peer].append(place)
        for earlier in after:
            dependents[earlier].append(place)
    return Structure(
        dependents=tuple(map(tuple, dependents)),
        waits=tuple(waits),
        first=tuple(place for place, count in enumerate(waits) if count == 0),
        sends={peer: tuple(places) for peer, places in sends.items() if places},
        receives={peer: tuple(places) for peer, places in receives.items() if places},
        turn=tuple(turn),
        kinds=bytes(kinds),
        peers=tuple(peers),
    )
