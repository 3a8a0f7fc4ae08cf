"""Thirty shuffles, the same everywhere, on which schedulers are compared."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

from gradbed.controller.systems.shuffle.scheduling.instance import Instance
from gradbed.controller.systems.shuffle.scheduling.storage import epochs
from gradbed.controller.systems.shuffle.scheduling.trees import Trees
from gradbed.topo.registry import parse_topology

SEED = 13
SHARES = (0.1, 0.2, 0.3, 0.4, 0.5)
SAMPLES = {"fat-tree:4": 240, "fat-tree:8": 640, "bcube:4,1": 240}
EPOCHS = (1, 3)
"""Before the first, storage is by chance; before the third it is what two shuffles and their caches left."""

VARIANTS = 2
SAMPLE_BYTES = 1000


@dataclass(frozen=True)
class PublicInstance:
    """All hosts are workers. share: of all samples that each stores. epoch: before which the shuffle is."""

    fabric: str
    share: float
    epoch: int

    @property
    def name(self) -> str:
        return f"{self.fabric} {self.share:g} epoch {self.epoch}"

    def build(self) -> tuple[Instance, Trees]:
        topology = parse_topology(self.fabric)
        hosts = [host.name for host in topology.hosts]
        sizes = [SAMPLE_BYTES] * SAMPLES[self.fabric]
        shuffles = epochs(hosts, sizes, self.share, SEED, "least-recent")
        instance = next(islice(shuffles, self.epoch - 1, None))
        return instance, Trees(topology, instance.hosts, VARIANTS)


PUBLIC_INSTANCES = tuple(
    PublicInstance(fabric, share, epoch) for fabric in SAMPLES for share in SHARES for epoch in EPOCHS
)
