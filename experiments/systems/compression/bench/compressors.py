"""How long top-k takes: processor time of one core, and the memory that it needs besides the gradient."""

from __future__ import annotations

import statistics
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from hosts.compressors.selection import magnitudes, top_k

GOAL_MS = 150.0
"""For a hundredth of 25 million values."""
GOAL_COPIES = 1.0


def run_bench_compressors(values: int, part: float, repetitions: int) -> int:
    """Print a table. Exit status 1 if the selection missed a goal (of 25 million values or fewer) or was wrong."""
    gradient = np.random.default_rng(1).standard_normal(values, dtype=np.float32)
    k = max(1, round(part * values))
    expected = set(np.argpartition(magnitudes(gradient), values - k)[values - k :].tolist())
    ours_ms, copies, right = measure(lambda: top_k(gradient, k), gradient.nbytes, expected, repetitions)
    table = Table(title=f"{k:,} of {values:,} float32 values, medians of {repetitions}")
    for name in ("selection", "processor ms", "copies of the gradient", "right"):
        table.add_column(name, justify="right")
    table.add_row("gradbed", f"{ours_ms:.1f}", f"{copies:.2f}", str(right))
    partition_ms, more, _ = measure(
        lambda: np.argpartition(np.abs(gradient), values - k)[values - k :], gradient.nbytes, expected, 1
    )
    table.add_row("numpy.argpartition", f"{partition_ms:.1f}", f"{more:.2f}", "True")
    if (torch_ms := _torch_ms(gradient, k, repetitions)) is not None:
        table.add_row("torch.topk, one thread", f"{torch_ms:.1f}", "", "")
    Console().print(table)
    if torch_ms is None:
        Console().print("without torch.topk: PyTorch is not installed (gradbed run torch --install)")
    met = right and copies <= GOAL_COPIES and (ours_ms <= GOAL_MS or values > 25_000_000)
    Console().print(f"goals: {GOAL_MS:g} ms, {GOAL_COPIES:g} copy: {'met' if met else 'missed'}")
    return 0 if met else 1


def measure(
    select: Callable[[], Any], gradient_bytes: int, expected: set[int], repetitions: int
) -> tuple[float, float, bool]:
    """Milliseconds of processor time, the peak of its memory in gradients, and whether the places are right."""
    times_ms = []
    for _ in range(repetitions):
        start_ns = time.process_time_ns()
        select()
        times_ms.append((time.process_time_ns() - start_ns) / 1e6)
    found, copies = peak_copies(select, gradient_bytes)
    return statistics.median(times_ms), copies, set(found.tolist()) == expected


def peak_copies(select: Callable[[], Any], gradient_bytes: int) -> tuple[Any, float]:
    """What it selects, and the peak of its memory in gradients."""
    tracemalloc.start()
    found = select()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return found, peak / gradient_bytes


def _torch_ms(gradient: np.ndarray[Any, Any], k: int, repetitions: int) -> float | None:
    try:
        import torch
    except ImportError:
        return None
    torch.set_num_threads(1)
    tensor = torch.from_numpy(gradient)
    times_ms = []
    for _ in range(repetitions):
        start_ns = time.process_time_ns()
        torch.topk(tensor.abs(), k, sorted=False)
        times_ms.append((time.process_time_ns() - start_ns) / 1e6)
    return statistics.median(times_ms)
