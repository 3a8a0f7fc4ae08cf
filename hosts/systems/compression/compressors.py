"""The compressor of a job's worker."""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import NDArray

from gradbed.hosts.compressors.low_rank import nearly_square
from gradbed.hosts.compressors.methods import Compressor, Setting, compressor
from gradbed.hosts.learning.settings import TrainingSettings
from gradbed.hosts.learning.trainer import network
from gradbed.hosts.systems.compression.description import JobDescription


def job_compressor(job: JobDescription, index: int) -> Compressor:
    """Of worker `index`; the server has one as well, to put together what came."""
    workload = job.workload
    shapes = network(workload).shapes if isinstance(workload, TrainingSettings) else nearly_square(job.values)
    exponent = getattr(workload, "exponent", None) or 0
    seed = getattr(workload, "seed", 1)
    return compressor(job.compress, Setting(index, seed, exponent, shapes, job.warm_up_rounds))


class DrawnPlaces:
    """The places of a round that all agents of a job know; of the last round that was asked for they are kept."""

    def __init__(self, compressor: Compressor, values: int) -> None:
        self._draw = functools.lru_cache(maxsize=1)(functools.partial(compressor.drawn, values))

    def __call__(self, round_number: int) -> NDArray[np.intp] | None:
        return self._draw(round_number)
