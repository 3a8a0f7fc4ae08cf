"""The fewest hops of packets without loans: of all clusters that save hops an integer program chooses."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

from gradbed.common.errors import UserError
from gradbed.controller.systems.shuffle.scheduling.clusters.columns import Network, columns
from gradbed.controller.systems.shuffle.scheduling.clusters.emission import emit
from gradbed.controller.systems.shuffle.scheduling.clusters.partition import best_columns
from gradbed.controller.systems.shuffle.scheduling.instance import Instance
from gradbed.controller.systems.shuffle.scheduling.schedule import Schedule
from gradbed.controller.systems.shuffle.scheduling.trees.trees import Trees

MAX_COLUMNS = 100_000
"""More take the integer program too long."""


@dataclass(frozen=True)
class Exact:
    """For small instances; UserError for others."""

    name: str = "exact"

    def schedule(self, instance: Instance, trees: Trees, seed: int) -> Schedule:
        network = Network(instance, trees)
        offered = list(islice(columns(network, instance.demands, every=True), MAX_COLUMNS + 1))
        if len(offered) > MAX_COLUMNS:
            raise UserError(
                f"exact: this shuffle has more than {MAX_COLUMNS:,} clusters to choose of; take fewer samples, or "
                "the scheduler improved"
            )
        chosen = best_columns(len(instance.demands), offered)
        clusters = [[instance.demands[place] for place in column.demands] for column in chosen]
        return emit(self.name, network, clusters, seed)
