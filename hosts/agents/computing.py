"""How long computations take that a run gives a time of their own."""

from __future__ import annotations

import random


class ComputeTimes:
    """Called for each computation of an agent (job, name): how long it takes at least, in us of the network's time.

    mean_us: 0: as long as it does. distribution: constant, or exponential, drawn by a generator of each agent's own.
    """

    def __init__(self, mean_us: float = 0.0, distribution: str = "constant", seed: int = 0) -> None:
        self._mean_us, self._distribution, self._seed = mean_us, distribution, seed
        self._draws: dict[tuple[int, str], random.Random] = {}

    def __call__(self, job: int, name: str) -> int:
        if self._distribution == "constant" or not self._mean_us:
            return round(self._mean_us)
        draw = self._draws.setdefault((job, name), random.Random(f"{self._seed} {job} {name}"))
        return round(draw.expovariate(1 / self._mean_us))

    def to_arguments(self) -> list[str]:
        """For the launcher's command line (gradbed.hosts.agents.kernel.launcher)."""
        return [f"--compute={self._mean_us!r},{self._distribution},{self._seed}"]

    @classmethod
    def of_argument(cls, text: str) -> ComputeTimes:
        mean_us, distribution, seed = text.split(",")
        return cls(float(mean_us), distribution, int(seed))
