"""Traffic between hosts: its section with nominal rates and times, patterns of pairs, and CSV matrices."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal

import networkx
import numpy as np
from pydantic import model_validator

from gradbed.common.errors import UserError, suggestion
from gradbed.experiments.configuration.sections import Section, option
from gradbed.experiments.scale import Scale
from gradbed.hosts.traffic.config import ArrivalKind, Arrivals, Sizes
from gradbed.topo.graph import Topology

Pair = tuple[str, str]
"""(sender, receiver)."""

Demands = Mapping[Pair, float]

Within = Literal["anywhere", "rack", "pod", "between-racks", "between-pods"]

HOTSPOT_SHARE = 0.5


def demands(pattern: str, topology: Topology, seed: int, within: Within = "anywhere") -> dict[Pair, float]:
    """Return the demand of each pair of hosts relative to the others, without pairs of no demand.

    Patterns are all-to-all; permutation (every host sends to one other and receives from one other, random by the
    seed); stride:N (to the N-th host after it); pairs (the first to the second, the third to the fourth, ...);
    incast:N (N hosts to the first, all others where no N is given); hotspot:SHARE (all-to-all, but this share of what
    each host sends goes to the first).

    Args:
        within: pairs that count: of one rack (the same switch) or pod, or of different ones.

    Raises:
        UserError: the pattern is not known, or no pair is left.
    """
    kind, _, argument = pattern.partition(":")
    if kind not in _PATTERNS:
        raise UserError(f"no traffic is called {pattern!r}{suggestion(kind, _PATTERNS)}")
    names = [host.name for host in topology.hosts]
    if len(names) < 2:
        raise UserError(f"{topology.name} has {len(names)} host(s), traffic needs two; of one, --replay sends frames")
    allowed = _allowed(topology, within)
    found = _PATTERNS[kind](names, argument, allowed, np.random.default_rng(seed % 2**63))
    chosen = {pair: weight for pair, weight in found.items() if allowed(*pair) and weight > 0}
    if not chosen:
        raise UserError(f"{topology.name} has no pair of hosts for {pattern} {within}")
    return chosen


Allowed = Callable[[str, str], bool]


def _allowed(topology: Topology, within: Within) -> Allowed:
    if within == "anywhere":
        return lambda a, b: a != b
    rack = {host.name: topology.attachment(host.name).name for host in topology.hosts}
    if "pod" in within:
        pod_of = pods(topology)
        place = {host: pod_of[edge] for host, edge in rack.items()}
    else:
        place = rack
    same = not within.startswith("between")
    return lambda a, b: a != b and (place[a] == place[b]) == same


def pods(topology: Topology) -> dict[str, str]:
    """Return the pod of every switch that has hosts, named by the pod's first switch.

    A pod is a connected component without the switches of the highest tier.

    Raises:
        UserError: there are no pods.
    """
    edges = [topology.attachment(host.name).name for host in topology.hosts]
    distance = networkx.multi_source_dijkstra_path_length(topology.graph, set(edges), weight=None)
    highest = max(distance[switch.name] for switch in topology.switches)
    inner = [switch.name for switch in topology.switches if distance[switch.name] < highest]
    found = {}
    for part in networkx.connected_components(topology.graph.subgraph(inner)):
        own = [edge for edge in dict.fromkeys(edges) if edge in part]
        found.update(dict.fromkeys(own, own[0]))
    if len(set(found.values())) < 2 or highest < 2:
        raise UserError(f"{topology.name} has no pods")
    return found


def _all_to_all(
    names: Sequence[str], argument: str, allowed: Allowed, random: np.random.Generator
) -> dict[Pair, float]:
    _no_argument("all-to-all", argument)
    return {(a, b): 1.0 for a in names for b in names if allowed(a, b)}


def _permutation(
    names: Sequence[str], argument: str, allowed: Allowed, random: np.random.Generator
) -> dict[Pair, float]:
    """Return a random perfect matching of allowed pairs, if there is one, by an assignment with random weights.

    It is uniform enough for a traffic pattern.
    """
    from scipy.optimize import linear_sum_assignment  # takes a while to load

    _no_argument("permutation", argument)
    # An allowed pair outweighs any sum of differences, so that the matching has as many pairs as possible.
    least = 2000 * (len(names) + 1)
    can = np.array([[allowed(a, b) for b in names] for a in names])
    weights = np.zeros(can.shape, np.int64)
    weights[can] = least + random.integers(1000, size=np.count_nonzero(can))
    matching = zip(*linear_sum_assignment(weights, maximize=True), strict=True)
    return dict.fromkeys(sorted((names[i], names[j]) for i, j in matching if weights[i, j]), 1.0)


def _stride(names: Sequence[str], argument: str, allowed: Allowed, random: np.random.Generator) -> dict[Pair, float]:
    step = _integer("stride", argument, default=len(names) // 2)
    return {(a, names[(place + step) % len(names)]): 1.0 for place, a in enumerate(names)}


def _pairs(names: Sequence[str], argument: str, allowed: Allowed, random: np.random.Generator) -> dict[Pair, float]:
    _no_argument("pairs", argument)
    return dict.fromkeys(zip(names[::2], names[1::2], strict=False), 1.0)


def _incast(names: Sequence[str], argument: str, allowed: Allowed, random: np.random.Generator) -> dict[Pair, float]:
    receiver = names[0]
    senders = [name for name in names[1:] if allowed(name, receiver)]
    count = _integer("incast", argument, default=len(senders))
    if count > len(senders):
        raise UserError(f"incast:{count} needs {count} senders, there are {len(senders)}")
    return {(senders[place * len(senders) // count], receiver): 1.0 for place in range(count)}


def _hotspot(names: Sequence[str], argument: str, allowed: Allowed, random: np.random.Generator) -> dict[Pair, float]:
    try:
        share = float(argument) if argument else HOTSPOT_SHARE
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise UserError(f"hotspot:SHARE has a share from 0 to 1, got {argument!r}")
    hot, found = names[0], {}
    for a in names:
        others = [b for b in names if b != hot and allowed(a, b)]
        to_hot = share if allowed(a, hot) and others else float(not others)
        found.update({(a, b): (1 - to_hot) / len(others) for b in others})
        if a != hot:
            found[a, hot] = to_hot
    return found


_PATTERNS: dict[str, Callable[[Sequence[str], str, Allowed, np.random.Generator], dict[Pair, float]]] = {
    "all-to-all": _all_to_all,
    "permutation": _permutation,
    "stride": _stride,
    "pairs": _pairs,
    "incast": _incast,
    "hotspot": _hotspot,
}


def _integer(kind: str, argument: str, default: int) -> int:
    if argument and (not argument.isdecimal() or int(argument) == 0):
        raise UserError(f"{kind}:N has a whole number from 1 on, got {argument!r}")
    return int(argument) if argument else default


def _no_argument(kind: str, argument: str) -> None:
    if argument:
        raise UserError(f"{kind} takes nothing behind a colon, got {argument!r}")


# ---- Matrices ----


def read_matrix(path: Path, topology: Topology) -> dict[Pair, float]:
    """Read the nominal rate of each pair of hosts in Mbit/s from a CSV file.

    The file is a table, with the receivers in the first line and a sender at the beginning of each other line; or has
    lines "sender,receiver,rate" under the heading "from,to,mbps".

    Raises:
        UserError: the file has errors, with FILE:LINE.
    """
    try:
        with path.open(newline="") as file:
            lines = [
                (number, [cell.strip() for cell in row]) for number, row in enumerate(csv.reader(file), 1) if row
            ]
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{path} is no CSV file: {error}") from None
    if len(lines) < 2:
        raise UserError(f"{path}:1: a heading and a line for each sender should stand here")
    names = [host.name for host in topology.hosts]
    (_, heading), *rest = lines
    found: dict[Pair, float] = {}
    for number, row in rest:
        where = f"{path}:{number}"
        if len(row) != len(heading):
            raise UserError(f"{where}: {len(row)} cells instead of {len(heading)}")
        if [cell.lower() for cell in heading] == ["from", "to", "mbps"]:
            cells = [(row[0], row[1], row[2])]
        else:
            cells = [(row[0], receiver, rate) for receiver, rate in zip(heading[1:], row[1:], strict=True)]
        for sender, receiver, rate in cells:
            for name in (sender, receiver):
                if name not in names:
                    raise UserError(f"{where}: {topology.name} has no host {name!r}{suggestion(name, names)}")
            rate_mbps = _rate(rate, where)
            if rate_mbps and sender == receiver:
                raise UserError(f"{where}: {sender} cannot send to itself")
            if (sender, receiver) in found:
                raise UserError(f"{where}: {sender} to {receiver} stands twice")
            if rate_mbps:
                found[sender, receiver] = rate_mbps
    if not found:
        raise UserError(f"{path}: no host sends anything")
    return found


def _rate(text: str, where: str) -> float:
    try:
        rate_mbps = float(text or 0)
    except ValueError:
        rate_mbps = math.nan
    if not 0 <= rate_mbps < math.inf:
        raise UserError(f"{where}: {text!r} is no rate in Mbit/s")
    return rate_mbps


class TrafficSection(Section):
    """Traffic between hosts: UDP with sequence numbers and timestamps in the packets, or the kernel's TCP."""

    pattern: str = option(
        "all-to-all",
        "Traffic pattern: all-to-all, permutation, stride:N, pairs, incast[:N] or hotspot[:SHARE].",
        name="traffic",
    )
    within: Within = option(
        "anywhere", "Restrict sender-receiver pairs: anywhere, within or across racks or pods.", advanced=True
    )
    matrix: Path | None = option(
        None, "Traffic matrix in place of a pattern: a CSV file of rates in Mbit/s.", name="traffic_matrix"
    )
    load: float | None = option(
        None,
        "Offered load of the busiest host link, as a fraction of its rate (default: 0.5, or what the matrix says).",
        gt=0,
        le=10,
    )
    transport: Literal["udp", "tcp", "iperf3"] = option(
        "udp",
        "Transport of the traffic: udp (datagrams with timestamps), or tcp or iperf3 (the kernel's; real clock).",
        panel="Transport",
    )
    arrivals: ArrivalKind = option("poisson", "Arrival process of packets or flows.")
    on_us: float = option(1000.0, "Mean burst length of on-off traffic in us.", gt=0, advanced=True)
    off_us: float = option(1000.0, "Mean idle time of on-off traffic in us.", ge=0, advanced=True)
    bursts: Literal["constant", "exponential"] = option(
        "exponential",
        "Distribution of burst lengths and idle times: exponential, or constant (synchronised hosts).",
        advanced=True,
    )
    sizes: Literal["fixed", "uniform", "exponential", "web-search", "data-mining"] = option(
        "fixed",
        "Frame sizes: fixed, uniform or exponential; or flow sizes: web-search (DCTCP) or data-mining (VL2).",
    )
    frame_bytes: int = option(
        1000, "Frame size in bytes without FCS: the fixed size, the mean or the maximum.", ge=64, le=9234
    )
    most_flow_kbytes: int | None = option(None, "Maximum flow size in kB; longer flows are cut.", ge=1, advanced=True)
    flows: int = option(1, "Number of flows (5-tuples) of each pair.", ge=1, le=16384)
    packets: int | None = option(None, "Total number of packets (or flows) to send, in place of a duration.", ge=1)
    duration_ms: float = option(100.0, "Duration of the traffic in ms.", gt=0)
    warm_up_ms: float = option(0.0, "Warm-up time in ms, left out of all metrics.", ge=0)

    @model_validator(mode="after")
    def _fits(self) -> TrafficSection:
        if self.packets is None and self.warm_up_ms >= self.duration_ms:
            raise ValueError(
                f"a warm-up of {self.warm_up_ms:g} ms leaves nothing of {self.duration_ms:g} ms to measure"
            )
        if self.sizes in ("web-search", "data-mining") and self.flows > 1:
            raise ValueError(f"flows: {self.sizes} makes flows of its own")
        return self

    @property
    def is_drawn(self) -> bool:
        """Return whether senders, receivers or times depend on the seed.

        With constant arrivals it decides the first packet of each pair.
        """
        is_regular = self.arrivals == "on-off" and self.bursts == "constant" and self.sizes == "fixed"
        return not is_regular or (self.matrix is None and self.pattern.startswith("permutation"))

    def agent_arrivals(self, scale: Scale) -> Arrivals:
        on_us, off_us = scale.time_us(self.on_us), scale.time_us(self.off_us)
        return Arrivals(kind=self.arrivals, on_us=max(1, on_us), off_us=off_us, bursts=self.bursts)

    @property
    def agent_sizes(self) -> Sizes:
        return Sizes(
            kind=self.sizes,
            frame_bytes=self.frame_bytes,
            most_bytes=min(9234, max(1514, 15 * self.frame_bytes)) if self.sizes == "exponential" else 1514,
            most_flow_bytes=None if self.most_flow_kbytes is None else 1000 * self.most_flow_kbytes,
        )
