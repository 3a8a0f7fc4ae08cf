"""Measure the time of placement on fat-trees, and its quality on small random networks."""

from __future__ import annotations

import functools
import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from rich.table import Table

from gradbed.common.errors import UserError
from gradbed.controller.systems.aggregation.placement.greedy import (
    exchanged,
    greedy,
    greedy_rounds,
    packet_rate_bps,
    refined,
)
from gradbed.controller.systems.aggregation.placement.methods import exhaustive
from gradbed.controller.systems.aggregation.placement.problem import AggregationProblem, highest_degree
from gradbed.controller.systems.aggregation.placement.rate_solver import RateSolver
from gradbed.experiments.plotting.style import figure, save
from gradbed.experiments.tables.console import Columns, make_console, rows_table
from gradbed.topo.addressing import make_host, make_switch
from gradbed.topo.generators import fat_tree
from gradbed.topo.graph import Endpoint, Host, Link, Topology
from gradbed.topo.link import LinkModel
from gradbed.topo.selectors import choose_hosts
from tools.bench.measure import Stopwatch, seconds_goal

# ---- Random networks ----


LINK_RATES_BPS = (10_000_000, 20_000_000, 40_000_000)


def random_fabric(seed: int, switches: int = 7, extra_links: int = 3, hosts: int = 8) -> Topology:
    """Return a random tree of switches s1.. with some more links, hosts h1.. on random switches, and random rates.

    The same for the same arguments, everywhere.
    """
    draw = random.Random(seed)
    nodes = [make_switch(f"s{index + 1}", index + 1, "hub") for index in range(switches)]
    pairs = {(draw.randrange(index), index) for index in range(1, switches)}
    absent = [(a, b) for b in range(switches) for a in range(b) if (a, b) not in pairs]
    pairs |= set(draw.sample(absent, min(extra_links, len(absent))))
    ports = dict.fromkeys(range(switches), 0)

    def end(index: int) -> Endpoint:
        ports[index] += 1
        return Endpoint(node=nodes[index].name, port=ports[index])

    def model() -> LinkModel:
        return LinkModel(rate_bps=draw.choice(LINK_RATES_BPS))

    attached: list[Host] = []
    links = []
    for index in range(hosts):
        place = draw.randrange(switches)
        attached.append(make_host(f"h{index + 1}", f"10.0.{place}", index, nodes[place]))
        links.append(Link(a=Endpoint(node=attached[-1].name, port=0), b=end(place), model=model()))
    links += [Link(a=end(a), b=end(b), model=model()) for a, b in sorted(pairs)]
    return Topology(name=f"random:{seed}", hosts=tuple(attached), switches=tuple(nodes), links=tuple(links))


# ---- The benchmark ----


LINK_RATE_BPS = 10_000_000_000
GOALS_S = {(8, 8): 20.0, (16, 16): 600.0}
"""(k, M): wall time on two processors."""

QUALITY_MAXIMA = (1, 2, 3)
QUALITY_CAPACITIES_BPS = (None, 20_000_000.0)


@dataclass(frozen=True)
class PlacementCost:
    """The cost of one placement."""

    k: int
    maximum: int
    switches: int
    workers: int
    gammas_bps: tuple[float, ...]
    packets_bps: float
    """The rate that packets reach."""
    round_cpu_s: tuple[float, ...]
    """Processor time until i + 1 switches were chosen."""
    cpu_s: float
    """Processor time to the end, with the comparison in packets."""
    wall_s: float
    asked: int
    """Linear programs of the rounds."""
    solved: int
    """Those among them that differ from all before."""


@dataclass(frozen=True)
class PlacementQuality:
    """Shares of the optimum on one random network."""

    maximum: int
    greedy_gradients: float
    """gamma of the source's method, of the optimum of its program."""
    greedy: float
    """gamma of our method, of the optimum of its program."""
    packets: float
    """What packets reach with our method, of the most that they reach with any placement."""
    packets_gradients: float
    """The same with the source's method."""
    packets_degree: float
    """The same with the switches of highest degree."""
    arrivals: float
    """With our choice, the optimum with the arrival of fragments, of that of the source's program."""
    packets_of_gamma: float
    """With our choice, what packets reach, of the optimum of the source's program."""


def run_bench_placement(sizes: Sequence[tuple[int, int]], instances: int, output: Path | None) -> int:
    """Print the tables for fat-trees of sizes (k, M), and draw the figure into a folder if one is given."""
    console = make_console()
    grown = []
    for k, maximum in sizes:
        with console.status(f"fat-tree:{k}, M = {maximum}"):
            grown.append(measure_growth(k, maximum))
    console.print(growth_table(grown))
    with console.status("random networks"):
        qualities = [quality for seed in range(instances) for quality in measure_quality(seed)]
    if qualities:
        console.print(quality_table(qualities, instances))
    if output is not None:
        for path in draw(grown, output):
            console.print(str(path))
    return 0


def measure_growth(k: int, maximum: int) -> PlacementCost:
    """Place `maximum` switches greedily in a fat-tree, from the graph on (routes included)."""
    spent = Stopwatch()
    topology = fat_tree(k, LinkModel(rate_bps=LINK_RATE_BPS))
    workers, server = choose_hosts(topology, len(topology.hosts) // 2)
    problem = AggregationProblem.of(topology, workers, server)
    solver = RateSolver(problem, returned_sums="by-switch")
    if not 0 < maximum < len(topology.switches):
        raise UserError(f"fat-tree:{k} has 1 to {len(topology.switches) - 1} switches to choose, got {maximum}")
    gammas, times = [], []
    chosen: tuple[str, ...] = ()
    for chosen in greedy_rounds(solver, maximum):
        times.append(spent.cpu_s)
        gammas.append(solver.gamma(chosen) * solver.model.scale_bps)
    asked, solved = solver.asked, solver.solved
    chosen = refined(solver, chosen, maximum)
    cpu_s, wall_s = spent.cpu_s, spent.wall_s
    return PlacementCost(
        k,
        maximum,
        len(topology.switches),
        len(workers),
        tuple(gammas),
        packet_rate_bps(problem, chosen),
        tuple(times),
        cpu_s,
        wall_s,
        asked,
        solved,
    )


def measure_quality(seed: int) -> list[PlacementQuality]:
    """Measure every placement of a random network."""
    topology = random_fabric(seed)
    server, *workers = [host.name for host in topology.hosts]
    found = []
    for capacity_bps in QUALITY_CAPACITIES_BPS:
        problem = AggregationProblem.of(topology, workers, server, capacity_bps)
        gradients, returning, arrivals = (
            RateSolver(problem),
            RateSolver(problem, returned_sums="by-switch"),
            RateSolver(problem, arrivals=True),
        )
        reached = functools.cache(functools.partial(packet_rate_bps, problem))
        for maximum in QUALITY_MAXIMA:
            source = greedy(gradients, maximum)
            ours = exchanged(returning, greedy(returning, maximum))
            placements = [chosen for size in range(maximum + 1) for chosen in combinations(problem.candidates, size)]
            best_bps = max(reached(chosen) for chosen in placements)
            choice = refined(returning, ours, maximum)
            gamma = gradients.gamma(choice)
            found.append(
                PlacementQuality(
                    maximum,
                    gradients.gamma(source) / gradients.gamma(exhaustive(gradients, maximum)),
                    returning.gamma(ours) / returning.gamma(exhaustive(returning, maximum)),
                    reached(choice) / best_bps,
                    reached(source) / best_bps,
                    reached(highest_degree(problem, maximum)) / best_bps,
                    arrivals.gamma(choice) / gamma,
                    reached(choice) / (gamma * gradients.model.scale_bps),
                )
            )
    return found


GROWTH: Columns = (
    ("k", lambda row: row.k),
    ("switches", lambda row: row.switches),
    ("workers", lambda row: row.workers),
    ("M", lambda row: row.maximum),
    ("gamma", lambda row: f"{row.gammas_bps[-1] / LINK_RATE_BPS:.4f}"),
    ("packets", lambda row: f"{row.packets_bps / LINK_RATE_BPS:.4f}"),
    ("solved", lambda row: row.solved),
    ("CPU s", lambda row: f"{row.cpu_s:.1f}"),
    ("wall s", lambda row: f"{row.wall_s:.1f}"),
    ("goal s", lambda row: seconds_goal(GOALS_S.get((row.k, row.maximum)), row.wall_s)),
)


def growth_table(grown: Sequence[PlacementCost]) -> Table:
    """Return the table of the times."""
    title = "Greedy placement on fat-trees, gamma and packets in shares of a link's rate"
    return rows_table(title, GROWTH, grown)


SHARES = {
    "greedy-gradients of the optimum": "greedy_gradients",
    "greedy of the optimum with returned sums": "greedy",
    "packets, greedy, of the best": "packets",
    "packets, greedy-gradients, of the best": "packets_gradients",
    "packets, highest-degree, of the best": "packets_degree",
    "gamma with arrivals of gamma": "arrivals",
    "packets of gamma": "packets_of_gamma",
}
QUALITY: Columns = (
    ("M", lambda row: row[0]),
    ("share of", lambda row: row[1]),
    ("mean", lambda row: f"{statistics.mean(row[2]):.4f}"),
    ("least", lambda row: f"{min(row[2]):.3f}"),
    ("all of it", lambda row: f"{sum(share > 1 - 1e-6 for share in row[2]) / len(row[2]):.0%}"),
)


def quality_table(qualities: Sequence[PlacementQuality], instances: int) -> Table:
    """Return the table of the shares."""
    rows = [
        (maximum, name, [getattr(quality, share) for quality in qualities if quality.maximum == maximum])
        for maximum in QUALITY_MAXIMA
        for name, share in SHARES.items()
    ]
    title = f"{instances} random networks of 7 switches, each without and with a capacity of switches"
    return rows_table(title, QUALITY, rows, words=("share of",))


def draw(grown: Sequence[PlacementCost], folder: Path) -> list[Path]:
    """Draw processor time after each round, and gamma, as `placement` in every format of figures."""
    folder.mkdir(parents=True, exist_ok=True)
    with figure(4.0, 3.2, columns=2) as (made, [times, gammas]):
        for row in grown:
            chosen = range(1, len(row.gammas_bps) + 1)
            label = f"k = {row.k}: {row.switches} switches, {row.workers} workers"
            times.plot(chosen, row.round_cpu_s, marker=".", label=label)
            gammas.plot(chosen, [gamma / LINK_RATE_BPS for gamma in row.gammas_bps], marker=".")
        times.set(xlabel="programmable switches chosen", yscale="log", ylabel="processor time (s)")
        times.legend()
        gammas.set(xlabel="programmable switches chosen", ylabel="gamma / link rate", ylim=(0, None))
        return save(made, folder / "placement")
