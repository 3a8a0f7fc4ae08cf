"""Routes to prefixes, by the fewest prefixes that need no longer one to win: halves that go the same way become one.

No address changes its way. In particular those that nobody has stay without a route: a shorter prefix that covered
them, such as a default, would send their packets from switch to switch until their TTL ends.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping
from ipaddress import IPv4Network
from typing import TypeVar

Way = TypeVar("Way", bound=Hashable)

_ADDRESS_BITS = 32


def summarised(routes: Mapping[IPv4Network, Way]) -> dict[IPv4Network, Way]:
    """The same way for every address, by as few prefixes as can be where none of them lies in another.

    Ways are compared by ==: ports, next hops, sets of them. The order is that of the routes: a prefix takes the place
    of the first that it stands for. ValueError if one of the prefixes lies in another.
    """
    by_length: defaultdict[int, dict[int, tuple[Way, int]]] = defaultdict(dict)
    for place, (prefix, way) in enumerate(routes.items()):
        by_length[prefix.prefixlen][int(prefix.network_address)] = (way, place)
    _check_disjoint(routes)
    for length in range(_ADDRESS_BITS, 0, -1):
        prefixes, half = by_length[length], 1 << (_ADDRESS_BITS - length)
        for low in [address for address in prefixes if not address & half]:
            found, other = prefixes[low], prefixes.get(low | half)
            if other is None or other[0] != found[0]:
                continue
            del prefixes[low], prefixes[low | half]
            by_length[length - 1][low] = (found[0], min(found[1], other[1]))
    left = [
        (place, IPv4Network((address, length)), way)
        for length, prefixes in by_length.items()
        for address, (way, place) in prefixes.items()
    ]
    return {prefix: way for _, prefix, way in sorted(left, key=lambda each: each[0])}


def _check_disjoint(routes: Mapping[IPv4Network, Way]) -> None:
    before: IPv4Network | None = None
    for prefix in sorted(routes):
        if before is not None and prefix.subnet_of(before):
            raise ValueError(f"{prefix} lies in {before}")
        before = prefix
