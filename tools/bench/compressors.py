"""How long a worker takes from a gradient to the frames of what top-k keeps of it, and how much memory.

The whole path begins with a gradient of float32. Ours quantises it in place as gradbed.hosts.learning.trainer does,
adds what was held back, chooses the largest values, writes them into frames and takes them from what is held back.
The other paths keep floats, choose with torch.topk or numpy.argpartition, and set to zero what was chosen; what that
gives is written into frames by the same code. What a run does besides to check sums is measured apart.
"""

from __future__ import annotations

import functools
import math
import statistics
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gradbed.experiments.tables.console import Columns, make_console, rows_table
from gradbed.formats.addresses import MulticastAddress
from gradbed.hosts.agents.config import AgentAddress, WorkerAddress
from gradbed.hosts.compressors.content import Content, written
from gradbed.hosts.compressors.fingerprint import fingerprint
from gradbed.hosts.learning.quantise import quantise
from gradbed.hosts.learning.settings import SyntheticSettings
from gradbed.hosts.systems.compression.config import CompressionJob
from gradbed.hosts.systems.compression.frames import HEADER_BYTES, Route, part_frames, received_parts
from gradbed.hosts.systems.compression.gradients import Assembly, HeldBack
from tools.bench.measure import median_s, span_s

GOAL_MS = 150.0
"""For a hundredth of 25 million values."""
GOAL_COPIES = 1.2
"""One is what is held back; the rest is what was chosen, and its frames."""
GOAL_VALUES = 25_000_000
EXPONENT = 20
"""Of the gradient's scale, 2**EXPONENT."""

Frames = list[NDArray[np.uint8]]
Path = Callable[[NDArray[np.float32]], Frames]
"""A gradient to frames; it may use the gradient's memory for itself."""


@dataclass(frozen=True)
class Found:
    """What a path costs for a gradient."""

    milliseconds: float
    """Processor time of the second gradient and later ones."""
    copies: float | None
    """Peak memory besides the gradient, with the residual, in gradients; None if it is not measured."""


COLUMNS: Columns = (
    ("path", lambda row: row[0]),
    ("ms", lambda row: f"{row[1].milliseconds:.1f}"),
    ("copies of the gradient", lambda row: None if row[1].copies is None else f"{row[1].copies:.2f}"),
    ("right", lambda row: row[2]),
)


def run_bench_compressors(values: int, part: float, repetitions: int) -> int:
    """Print a table. Exit status 1 if our path missed a goal (of 25 million values or fewer) or was wrong."""
    drawn = np.random.default_rng(1).standard_normal(values, dtype=np.float32)
    integers = np.rint(drawn * 2**EXPONENT).astype(np.int32)
    k = math.ceil(part * values)
    ours = measured(lambda: our_path(values, part), drawn, repetitions)
    right = sends_the_largest(our_path(values, part), drawn, integers, k)
    rows: list[tuple[str, Found, bool | None]] = [
        ("gradbed", ours, right),
        ("numpy.argpartition", measured(lambda: numpys_path(values, k), drawn, 1), None),
    ]
    torch_path = _torchs_path(values, k)
    if torch_path is not None:
        torchs = measured(lambda: torch_path, drawn, repetitions, counts_memory=False)
        rows.append(("torch.topk, one thread", torchs, None))
    checks_s = median_s(lambda: [fingerprint(integers, values) for _ in range(2)], repetitions, time.process_time)
    rows.append(("checks of a run, besides", Found(1e3 * checks_s, None), None))
    console = make_console()
    title = f"{k:,} of {values:,} values, processor time of one core, medians of {repetitions}"
    console.print(rows_table(title, COLUMNS, rows))
    if torch_path is None:
        console.print("without torch.topk: PyTorch is not installed (gradbed run torch --install)")
    met = right and (ours.copies or 0) <= GOAL_COPIES and (ours.milliseconds <= GOAL_MS or values > GOAL_VALUES)
    console.print(f"goals: {GOAL_MS:g} ms, {GOAL_COPIES:g} copies: {'met' if met else 'missed'}")
    return 0 if met else 1


def measured(
    make: Callable[[], Path], gradient: NDArray[np.float32], repetitions: int, *, counts_memory: bool = True
) -> Found:
    """Measure a path, which is made anew for time and for memory."""
    path = make()
    path(gradient.copy())  # what happens once: weights of fingerprints, pages of what is held back
    spans_s = []
    for _ in range(repetitions):
        fresh = gradient.copy()
        spans_s.append(span_s(functools.partial(path, fresh), time.process_time))
    time_ms = 1e3 * statistics.median(spans_s)
    del path
    if not counts_memory:
        return Found(time_ms, None)
    fresh = gradient.copy()
    tracemalloc.start()
    make()(fresh)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return Found(time_ms, peak / gradient.nbytes)


# ---- Paths ----


def bench_job(values: int, compress: str) -> CompressionJob:
    """Return the job of one worker."""
    worker, server = (f"02:00:00:00:00:{number:02x}" for number in (2, 1))
    return CompressionJob(
        job=1,
        workers=(WorkerAddress(index=0, name="h2", ip="10.0.0.2", mac=worker, gateway_mac=worker),),
        server=AgentAddress(name="h1", ip="10.0.0.1", mac=server, gateway_mac=server),
        multicast=MulticastAddress.of("239.66.0.16"),
        pacing="none",
        compress=compress,
        workload=SyntheticSettings(values=values, rounds=1),
    )


def our_path(values: int, part: float) -> Path:
    """Return gradbed's path with top-k of a part of the values."""
    job = bench_job(values, f"topk:{part}")
    held_back, route = HeldBack(job, 0), _route(job)

    def path(gradient: NDArray[np.float32]) -> Frames:
        content = held_back.take(quantise(gradient, EXPONENT, gradient.view(np.int32)).values, 0)
        frames = part_frames(route, written(content, HEADER_BYTES), 0, 0)
        held_back.sent([content])
        return frames

    return path


def numpys_path(values: int, k: int) -> Path:
    """Return the path with NumPy's argpartition."""
    held, route = np.zeros(values, np.float32), _route(bench_job(values, "none"))

    def path(gradient: NDArray[np.float32]) -> Frames:
        np.add(held, gradient, out=held)
        places = np.sort(np.argpartition(np.abs(held), values - k)[values - k :])
        chosen = held[places]
        held[places] = 0
        return _float_frames(route, values, places, chosen)

    return path


def _torchs_path(values: int, k: int) -> Path | None:
    try:
        import torch
    except ImportError:
        return None
    torch.set_num_threads(1)
    held, route = torch.zeros(values), _route(bench_job(values, "none"))

    def path(gradient: NDArray[np.float32]) -> Frames:
        held.add_(torch.from_numpy(gradient))
        places = torch.topk(held.abs(), k, sorted=False).indices.sort().values
        chosen = held[places]
        held[places] = 0
        return _float_frames(route, values, places.numpy(), chosen.numpy())

    return path


def _route(job: CompressionJob) -> Route:
    return Route(job.job, job.workers[0], job.server.ip, job.server.mac)


def _float_frames(route: Route, values: int, places: NDArray[np.intp], chosen: NDArray[np.float32]) -> Frames:
    """Pack the bits of floats as codes."""
    content = Content(values, chosen.view(np.int32), indices=places)
    return part_frames(route, written(content, HEADER_BYTES), 0, 0)


def sends_the_largest(path: Path, drawn: NDArray[np.float32], gradient: NDArray[np.int32], k: int) -> bool:
    """Return whether a new path's frames have the k largest values of its first gradient.

    Args:
        path: Makes the frames.
        drawn: The gradient as floats.
        gradient: The same as integers, quantised by other code than the path's.
        k: The number of values that are to be sent.
    """
    came = Assembly(len(gradient))
    for frame in path(drawn.copy()):
        (parts,) = received_parts(frame[None], np.array([len(frame)], np.uint32), job=1)
        came.add(parts)
    is_sent = came.values != 0
    least = np.partition(np.abs(gradient), len(gradient) - k)[len(gradient) - k]
    return (
        int(np.count_nonzero(is_sent)) == k
        and bool((came.values[is_sent] == gradient[is_sent]).all())
        and int(np.abs(gradient[is_sent]).min()) == least
        and int(np.abs(gradient[~is_sent]).max(initial=0)) <= least
    )
