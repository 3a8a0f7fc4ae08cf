"""Published curves of the packets that a shuffle takes, where each packet reaches all its receivers at once.

Values are packets for each sample of the data set, of K workers that each store a share of all samples. The new
samples of each worker are any (Lee and others), or all different from its old ones (Attia and Tandon, the worst
case).
"""

from __future__ import annotations

from collections.abc import Callable


def uncoded(workers: int, share: float) -> float:
    """Return 1 - share: the probability that a worker does not store a sample that it needs."""
    return 1 - share


def lee_average(workers: int, share: float) -> float:
    """Return the average rate of coded shuffling with a master.

    A sample is stored by the worker that used it last, and by each other one with the same probability; the sum of a
    set of samples goes to workers each of which has exactly all others of the set.

    K. Lee, M. Lam, R. Pedarsani, D. Papailiopoulos, K. Ramchandran, "Speeding Up Distributed Machine Learning Using
    Codes", IEEE Transactions on Information Theory 64(3), 2018, coded shuffling rate.
    """
    p = (share - 1 / workers) / (1 - 1 / workers)
    if p <= 0:
        return (workers - 1) / workers / 2
    left = 1 - p
    return (left ** (workers + 1) + (workers - 1) * p * left - left**2) / (workers * p) ** 2


def attia_tandon_worst(workers: int, share: float) -> float:
    """Return the worst-case load with a master, with memory sharing between the scheme's points.

    Workers store parts of samples so that any demand can be served, and demand nothing that they have. The points are
    storage and load for i = 0..K parts.

    M. A. Attia, R. Tandon, "Near Optimal Coded Data Shuffling for Distributed Learning", IEEE Transactions on
    Information Theory 65(11), 2019, the coded scheme's storage and communication.
    """
    return _between((workers * share - 1) * workers / (workers - 1), lambda i: (workers - i) / (workers * (i + 1)))


def coded_mapreduce(workers: int, share: float) -> float:
    """Return the load of Coded MapReduce, without a master, with memory sharing between whole r.

    Each sample is stored by r = K * share workers, every set of r alike, and a worker's packet serves r others.

    S. Li, M. A. Maddah-Ali, Q. Yu, A. S. Avestimehr, "A Fundamental Tradeoff Between Computation and Communication in
    Distributed Computing", IEEE Transactions on Information Theory 64(1), 2018.
    """
    return _between(workers * share, lambda r: (1 - r / workers) / r)


def _between(place: float, at: Callable[[int], float]) -> float:
    """Interpolate linearly between whole places."""
    low = int(place + 1e-9)
    part = max(0.0, place - low)
    return at(low) if part < 1e-9 else (1 - part) * at(low) + part * at(low + 1)


CURVES: dict[str, Callable[[int, float], float]] = {
    "uncoded": uncoded,
    "Lee and others, a master, average": lee_average,
    "Attia, Tandon, a master, worst case": attia_tandon_worst,
    "Coded MapReduce, r workers store a sample": coded_mapreduce,
}
