"""How much the network can carry of a traffic at most: the load at which the best possible split fills some link.

A linear program (scipy, HiGHS): for every pair of hybrid switches the share of each of its ways, such that the
largest load of any link, over its rate, is least. No policy does better in the long run.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import lru_cache

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array

from experiments.systems.interconnect.links import light_share
from topo.graph import Topology
from topo.shapes.optical_electrical import PLANES, place_of, size_of

Place = tuple[int, int]
Member = tuple[int | str, ...]
"""Of a class of links: ("mesh", x, y, y') or ("light", plane, y, x, x'), or ("uplink", ...) and ("downlink", ...)."""


def ways(here: Place, there: Place, per_wavelength: bool) -> Iterator[tuple[Member, ...]]:
    """The members between switches that each way from one hybrid switch to another uses."""
    (x, y), (to_x, to_y) = here, there
    if here == there:
        yield ()
    elif x == to_x:
        yield (("mesh", x, y, to_y),)
    else:
        for plane in range(PLANES):
            for by in sorted({y, to_y}):
                if per_wavelength:
                    light: tuple[Member, ...] = (("light", plane, by, x, to_x),)
                else:
                    light = (("uplink", plane, by, x), ("downlink", plane, by, to_x))
                if y == to_y:
                    yield light
                elif by == to_y:
                    yield (("mesh", x, y, to_y), *light)
                else:
                    yield (*light, ("mesh", to_x, y, to_y))


def saturation_bound(topology: Topology, rates_bps: Mapping[tuple[str, str], float]) -> float | None:
    """What hosts may send on average, over the rate of their links, when all rates are scaled alike until a link is
    full. None if links have no rate, or different ones."""
    rates = {link.model.rate_bps for link in topology.links}
    rate_bps = next(iter(rates))
    if len(rates) > 1 or not rate_bps:
        return None
    place = {host.name: place_of(topology.attachment(host.name).name) for host in topology.hosts}
    access: defaultdict[tuple[str, str], float] = defaultdict(float)
    between: defaultdict[tuple[Place, Place], float] = defaultdict(float)
    for (sender, receiver), pair_bps in rates_bps.items():
        access["from", sender] += pair_bps
        access["to", receiver] += pair_bps
        between[place[sender], place[receiver]] += pair_bps
    demands = tuple(sorted((here, there, bps / rate_bps) for (here, there), bps in between.items() if here != there))
    largest = max(max(access.values()) / rate_bps, least_largest_load(demands, light_share(topology)))
    mean = sum(rates_bps.values()) / len(topology.hosts) / rate_bps
    # size_of: only of this kind of network.
    return mean / largest if size_of(topology) else None


@lru_cache(maxsize=64)
def least_largest_load(demands: tuple[tuple[Place, Place, float], ...], share: float | None) -> float:
    """demands: between hybrid switches, in link rates. share: of a light path, see links.light_share. What the
    busiest link between switches carries at least, of what it can."""
    members: dict[Member, int] = {}
    rows, columns, values, pairs = [], [], [], []
    column = 0
    for pair, (here, there, load) in enumerate(demands):
        for way in ways(here, there, share is not None):
            pairs.append((pair, column))
            for member in way:
                rows.append(members.setdefault(member, len(members)))
                columns.append(column)
                values.append(load / share if share and member[0] == "light" else load)
            column += 1
    if not members:
        return 0.0
    # The last variable is the largest load, which no member exceeds.
    count = len(members)
    upper = coo_array(
        ([*values, *[-1.0] * count], ([*rows, *range(count)], [*columns, *[column] * count])),
        shape=(count, column + 1),
    ).tocsr()
    shares = coo_array(
        (np.ones(len(pairs)), tuple(zip(*pairs, strict=True))), shape=(len(demands), column + 1)
    ).tocsr()
    objective = np.zeros(column + 1)
    objective[-1] = 1.0
    solved = linprog(objective, A_ub=upper, b_ub=np.zeros(count), A_eq=shares, b_eq=np.ones(len(demands)))
    if solved.status != 0:
        raise RuntimeError(f"the linear program of the bound: {solved.message}")
    return float(solved.fun)
