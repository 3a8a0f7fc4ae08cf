"""Upper bounds on what the interconnect carries of a traffic, by linear programs (SciPy, HiGHS) over all paths.

`saturation_load` is the load at which the best possible split of the traffic fills some link. Beyond it packets are
lost; those that avoid the full links arrive all the same. `most_accepted_bytes` is what can arrive in the measured
time, of what was sent in it and of what was in flight when it began. No routing policy does better.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array

from gradbed.experiments.systems.interconnect.links import MeasurementWindow, turn_share
from gradbed.topo.graph import Direction, Topology
from gradbed.topo.optical_electrical import (
    PLANES,
    WAVELENGTH_BYTES,
    hybrid_name,
    light_links,
    optical_name,
    place_of,
    size_of,
)

Place = tuple[int, int]
"""(unit x, sub-unit y) of a hybrid switch."""
Member = tuple[int | str, ...]
"""A member of a link class: ("mesh", x, y, y'), ("light", plane, y, x, x'), ("uplink", ...) or ("downlink", ...)."""


def ways(here: Place, there: Place, per_wavelength: bool) -> Iterator[tuple[Member, ...]]:
    """Yield the links between switches of each path from one hybrid switch to another."""
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


def saturation_load(
    topology: Topology, rates_bps: Mapping[tuple[str, str], float], frame_bytes: int, load: float | None
) -> float | None:
    """Return the load at which a link is full when all rates are scaled alike.

    Args:
        rates_bps: by sender and receiver.
        frame_bytes: longest frame.
        load: current load; None: the mean of what hosts send over the rate of their links.

    Returns:
        None if links have no rate, or different rates.
    """
    rates = {link.model.rate_bps for link in topology.links}
    rate_bps = next(iter(rates))
    if len(rates) > 1 or not rate_bps:
        return None
    place = _places(topology)
    access: defaultdict[tuple[str, str], float] = defaultdict(float)
    between: defaultdict[tuple[Place, Place], float] = defaultdict(float)
    for (sender, receiver), pair_bps in rates_bps.items():
        access["from", sender] += pair_bps
        access["to", receiver] += pair_bps
        between[place[sender], place[receiver]] += pair_bps
    demands = tuple(sorted((here, there, bps / rate_bps) for (here, there), bps in between.items() if here != there))
    share = light_share(topology, frame_bytes)
    largest = max(max(access.values()) / rate_bps, least_largest_load(demands, share))
    return (load or sum(rates_bps.values()) / len(topology.hosts) / rate_bps) / largest


def light_share(topology: Topology, frame_bytes: int) -> float | None:
    """Return the largest fraction of the link's rate that a light path carries of such frames.

    Frames are longer as light, by a tag, and a circuit has a part of the time. None: a fibre is one channel, so light
    paths have no rate of their own.
    """
    model = topology.link(*next(iter(light_links(topology)))).model
    if model.channels == 1:
        return None
    light_bytes = frame_bytes + WAVELENGTH_BYTES
    return turn_share(model, 8e9 * light_bytes / (model.rate_bps or 1)) * frame_bytes / light_bytes


@lru_cache(maxsize=64)
def least_largest_load(demands: tuple[tuple[Place, Place, float], ...], share: float | None) -> float:
    """Return the smallest possible load of the busiest link between switches, over all splits of the demands.

    Args:
        demands: between hybrid switches, in link rates.
        share: of a light path, see light_share.
    """
    program = _LinearProgram()
    largest = program.variable(cost=1.0)
    members: dict[Member, list[Term]] = defaultdict(list)
    for here, there, load in demands:
        split = []
        for way in ways(here, there, share is not None):
            split.append((program.variable(), 1.0))
            for member in way:
                of_link = load / share if share and member[0] == "light" else load
                members[member].append((split[-1][0], of_link))
        program.equal(split, 1.0)
    for terms in members.values():
        program.at_most([*terms, (largest, -1.0)], 0.0)
    return program.least()


def most_accepted_bytes(
    topology: Topology, window: MeasurementWindow, sent_bytes: Mapping[tuple[str, str], int], frame_bytes: int
) -> float | None:
    """Return the largest number of bytes that can arrive at hosts in the window.

    What is sent in the window crosses every link of its path in it. What was in flight when it began has to cross the
    link that it was at, and is supposed to be at its host then.

    Args:
        sent_bytes: sent in the window, by sender and receiver.

    Returns:
        None if a link has no rate.
    """
    if any(not link.model.rate_bps for link in topology.links):
        return None
    n, place, program = size_of(topology), _places(topology), _LinearProgram()
    per_wavelength = topology.link(*next(iter(light_links(topology)))).model.channels > 1
    demands: defaultdict[tuple[Place, str], int] = defaultdict(int)
    for (sender, receiver), size in sent_bytes.items():
        demands[place[sender], receiver] += size
    used: dict[Direction, dict[int, list[Term]]] = defaultdict(lambda: defaultdict(list))
    leaving: dict[Place, list[Term]] = defaultdict(list)
    between: dict[tuple[Place, Place], list[Term]] = defaultdict(list)
    for (here, receiver), size in demands.items():
        arriving = program.variable(cost=-1.0, most=size), 1.0
        leaving[here].append(arriving)
        between[here, place[receiver]].append(arriving)
        used[hybrid_name(*place[receiver]), receiver][0].append(arriving)
    for (here, there), terms in between.items():
        for way in ways(here, there, per_wavelength) if here != there else ():
            taken = program.variable()
            terms.append((taken, -1.0))
            for member in way:
                direction, channel = _link(member, n)
                longer = WAVELENGTH_BYTES / frame_bytes if member[0] != "mesh" else 0.0
                used[direction][channel].append((taken, 1.0 + longer))
        if here != there:
            program.equal(terms, 0.0)
    access: dict[Place, float] = defaultdict(float)
    for direction in window.before:
        model = topology.link(*direction).model
        packet_bytes = frame_bytes + WAVELENGTH_BYTES * (not any(map(topology.is_host, direction)))
        channels = range(1, model.channels) if model.channels > 1 else (0,)
        # A packet may have been sent for the most part before.
        capacity = {
            channel: packet_bytes + (window.capacity_bytes(model, packet_bytes, channel) or 0.0)
            for channel in channels
        }
        older = program.variable(cost=-1.0, most=packet_bytes * window.under_way(direction)), 1.0
        if topology.is_host(direction[0]):
            leaving[place[direction[0]]].append(older)
            access[place[direction[0]]] += capacity[0]
            continue
        for channel, terms in used[direction].items():
            program.at_most(terms, capacity[channel])
        program.at_most(
            [older, *(term for terms in used[direction].values() for term in terms)], sum(capacity.values())
        )
    for here, terms in leaving.items():
        program.at_most(terms, access[here])
    most = sum(
        window.capacity_bytes(link.model, frame_bytes) or 0.0 for link in topology.host_links
    ) + frame_bytes * len(topology.hosts)
    return min(most, -program.least())


def _places(topology: Topology) -> dict[str, Place]:
    return {host.name: place_of(topology.attachment(host.name).name) for host in topology.hosts}


def _link(member: Member, n: int) -> tuple[Direction, int]:
    """Return the link direction of a member, and its channel."""
    kind, *at = member
    if kind == "mesh":
        x, y, other = map(int, at)
        return (hybrid_name(x, y), hybrid_name(x, other)), 0
    plane, y, x = map(int, at[:3])
    optical, hybrid = optical_name(y + n * plane), hybrid_name(x, y)
    if kind == "downlink":
        return (optical, hybrid), 0
    return (hybrid, optical), (int(at[3]) - x) % n if kind == "light" else 0


Term = tuple[int, float]
"""Number of a variable, and its factor."""


class _LinearProgram:
    """A linear program that is built row by row; variables are not negative."""

    def __init__(self) -> None:
        self._costs: list[float] = []
        self._most: list[float | None] = []
        self._rows: dict[bool, list[tuple[Sequence[Term], float]]] = {True: [], False: []}

    def variable(self, cost: float = 0.0, most: float | None = None) -> int:
        self._costs.append(cost)
        self._most.append(most)
        return len(self._costs) - 1

    def at_most(self, terms: Sequence[Term], limit: float) -> None:
        self._rows[False].append((terms, limit))

    def equal(self, terms: Sequence[Term], value: float) -> None:
        self._rows[True].append((terms, value))

    def least(self) -> float:
        """Return the smallest cost."""
        (a_ub, b_ub), (a_eq, b_eq) = (self._matrix(self._rows[equal]) for equal in (False, True))
        bounds = [(0.0, most) for most in self._most]
        solved = linprog(self._costs, A_ub=a_ub, b_ub=b_ub, A_eq=a_eq, b_eq=b_eq, bounds=bounds)
        if solved.status != 0:
            raise RuntimeError(f"the linear program of the bound: {solved.message}")
        return float(solved.fun)

    def _matrix(self, rows: Sequence[tuple[Sequence[Term], float]]) -> tuple[csr_array | None, list[float] | None]:
        if not rows:
            return None, None
        ends = np.cumsum([0, *(len(terms) for terms, _ in rows)])
        places, factors = ([term[part] for terms, _ in rows for term in terms] for part in (0, 1))
        matrix = csr_array(
            (np.array(factors, float), np.array(places, int), ends), shape=(len(rows), len(self._costs))
        )
        return matrix, [limit for _, limit in rows]
