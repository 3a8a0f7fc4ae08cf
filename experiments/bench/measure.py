"""How benchmarks take times."""

from __future__ import annotations

import contextlib
import os
import statistics
import time
from collections.abc import Callable, Iterator

from gradbed.common.scratch import scratch_folder
from gradbed.common.store import cache_dir


def median_s(work: Callable[[], object], repetitions: int, clock: Callable[[], float] = time.perf_counter) -> float:
    """Of so many times; clock: in seconds."""
    return statistics.median(span_s(work, clock) for _ in range(repetitions))


def span_s(work: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    start_s = clock()
    work()
    return clock() - start_s


class Stopwatch:
    """Wall and processor time since it was made, in seconds."""

    def __init__(self) -> None:
        self._wall_s, self._cpu_s = time.perf_counter(), time.process_time()

    @property
    def wall_s(self) -> float:
        return time.perf_counter() - self._wall_s

    @property
    def cpu_s(self) -> float:
        return time.process_time() - self._cpu_s


@contextlib.contextmanager
def empty_cache() -> Iterator[None]:
    """Compiled programs go to a folder of their own for the time."""
    former = cache_dir()
    with scratch_folder("bench") as empty:
        os.environ["GRADBED_CACHE"] = str(empty)
        try:
            yield
        finally:
            os.environ["GRADBED_CACHE"] = str(former)
