"""Figures of the interconnect that need more than lines, as figure kinds that studies name."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import shortest_path

from gradbed.experiments.plotting.style import COLOURS, MARKERS
from gradbed.experiments.study.evaluation.figures import draw_line
from gradbed.experiments.study.evaluation.kinds import Sheet, figure_kind, legend_below
from gradbed.experiments.tables.metric import confidence_interval
from gradbed.topo.generators import dragonfly, fat_tree, torus
from gradbed.topo.graph import Topology
from gradbed.topo.optical_electrical import OPTICAL, optical_electrical

# ---- Sizes of networks ----


@dataclass(frozen=True)
class NetworkSize:
    """Size of one network."""

    family: str
    name: str
    hosts: int
    switches: int
    links: int
    diameter: int
    """Largest number of links between two hosts."""
    mean_distance: float
    """Mean number of links between two different hosts."""
    electrical_ports: int
    """Ports of electrical and hybrid switches."""
    optical_ports: int
    """Ports of optical switches."""


def size_of_network(family: str, topology: Topology) -> NetworkSize:
    """Return the size of a network, from all distances between switches, weighted by their hosts."""
    number = {switch.name: place for place, switch in enumerate(topology.switches)}
    ends = np.array([(number[link.a.node], number[link.b.node]) for link in topology.switch_links]).reshape(-1, 2)
    count = len(number)
    graph = coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(count, count)).tocsr()
    distance = shortest_path(graph, directed=False, unweighted=True)
    hosts = np.zeros(count)
    for host in topology.hosts:
        hosts[number[topology.attachment(host.name).name]] += 1
    edges = np.flatnonzero(hosts)
    between, weights = distance[np.ix_(edges, edges)] + 2, np.outer(hosts[edges], hosts[edges])
    np.fill_diagonal(weights, hosts[edges] * (hosts[edges] - 1))
    optical = {switch.name for switch in topology.switches if switch.tier == OPTICAL}
    ports = [end.node for link in topology.links for end in (link.a, link.b) if end.node in number]
    return NetworkSize(
        family,
        topology.name,
        len(topology.hosts),
        count,
        len(topology.links),
        int(between[weights > 0].max()),
        float((between * weights).sum() / weights.sum()),
        sum(port not in optical for port in ports),
        sum(port in optical for port in ports),
    )


def sizes(n: int) -> Iterator[NetworkSize]:
    """Yield the size of the interconnect of this n, and of other networks with as many hosts or the next larger
    number.
    """
    yield size_of_network("optical-electrical", optical_electrical(n))
    k = next(k for k in range(2, 1000, 2) if k**3 // 4 >= n**3)
    yield size_of_network("fat-tree", fat_tree(k))
    yield size_of_network("dragonfly", balanced_dragonfly(n**3))
    yield size_of_network("torus", torus(n, n, n))


def balanced_dragonfly(hosts: int) -> Topology:
    """Return the smallest balanced dragonfly with at least so many hosts, with as few groups as will do.

    It has a = 2p = 2h routers, hosts and global links (Kim et al., "Technology-driven, highly-scalable dragonfly
    topology", ISCA 2008, section 3.1).
    """
    p = next(p for p in range(1, 1000) if 2 * p * p * (2 * p * p + 1) >= hosts)
    return dragonfly(-(-hosts // (2 * p * p)), 2 * p, p)


# ---- Sizes ----
#
# Figure 4: what a network of a given size takes, beside fat-tree, dragonfly and torus. From graphs; no trial is
# needed but one, which carries the figure.


LARGEST, LARGEST_QUICK = 8, 4


PANELS: dict[str, Callable[[NetworkSize], float]] = {
    "diameter (links)": lambda size: size.diameter,
    "mean distance (links)": lambda size: size.mean_distance,
    "switches per host": lambda size: size.switches / size.hosts,
    "links per host": lambda size: size.links / size.hosts,
    "switch ports per host": lambda size: (size.electrical_ports + size.optical_ports) / size.hosts,
}


@figure_kind("interconnect-sizes", columns=3, rows=2, width_in=2.8, height_in=2.6)
def draw_sizes(sheet: Sheet) -> str:
    """Draw figure 4."""
    resolved = sheet.results.resolved
    by_family: dict[str, list[NetworkSize]] = defaultdict(list)
    for n in range(2, (LARGEST_QUICK if resolved["quick"] else LARGEST) + 1):
        for size in sizes(n):
            by_family[size.family].append(size)
    for panel, (label, value) in zip(sheet.axes, PANELS.items(), strict=False):
        for number, (family, found) in enumerate(by_family.items()):
            hosts, values = [size.hosts for size in found], [value(size) for size in found]
            panel.plot(hosts, values, color=COLOURS[number], marker=MARKERS[number], label=family)
        panel.set(xscale="log", xlabel="hosts", ylabel=label, ylim=(0, None))
    own = by_family["optical-electrical"]
    electrical = [size.electrical_ports / size.hosts for size in own]
    for panel in sheet.axes[len(PANELS) :]:
        panel.set_axis_off()
    last = sheet.axes[len(PANELS) - 1]
    last.plot(
        [size.hosts for size in own],
        electrical,
        ":",
        color=COLOURS[0],
        label="optical-electrical, electrical ports alone",
    )
    legend_below(last, 3)
    return str(resolved["title"])


# ---- Figure 6: what hosts receive over time, while something fails ----


FAILURE = "failure.kind"
FAILED = {
    "none": "no failure",
    "uplink": "an uplink fails",
    "optical-switch": "an optical switch fails",
    "mesh-link": "a mesh link fails",
}


@figure_kind("interconnect-failures", width_in=6.0)
def draw_failures(sheet: Sheet) -> None:
    """Draw figure 6, of trials with samples (`samples.interval_us`)."""
    [axes], results = sheet.axes, sheet.results
    bytes_at: dict[str, dict[float, dict[int, float]]] = defaultdict(lambda: defaultdict(lambda: defaultdict(float)))
    for row in results.table("link_samples"):
        if row["to_node"].startswith("h"):
            bytes_at[row[FAILURE]][row["time_us"] / 1000][row["repetition"]] += row["bytes"]
    for number, (name, samples) in enumerate(bytes_at.items()):
        times = sorted(samples)
        widths = [later - earlier for earlier, later in zip([0.0, *times], times, strict=False)]
        found = [
            confidence_interval([8e-3 * value / width for value in samples[time].values()])
            for time, width in zip(times, widths, strict=True)
        ]
        draw_line(axes, times, found, label=FAILED.get(name, name), number=number)
    at_ms = next(iter(results.configurations().values()))["failure"]["at_ms"]
    axes.axvline(at_ms, color="grey", linewidth=0.8, linestyle=":")
    axes.set(xlabel="time (ms)", ylabel="received by all hosts (Mbit/s)", ylim=(0, None))
    axes.legend()
