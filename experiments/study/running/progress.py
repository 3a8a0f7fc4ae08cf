"""Progress bars of a run of one point."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars

from gradbed.experiments.phases import Progress


@contextlib.contextmanager
def progress_bars() -> Iterator[Callable[[Sequence[Progress]], None]]:
    """A function that shows how far every job is, each phase's below those before; on a terminal."""
    console = Console(stderr=True)
    bars = Bars(
        SpinnerColumn(),
        TextColumn("{task.description:<18}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[note]}"),
        TimeElapsedColumn(),
        console=console,
        disable=not console.is_terminal,
    )
    tasks: dict[str, TaskID] = {}
    with bars:
        setting_up: TaskID | None = bars.add_task("setting up", total=None, note="")

        def show(jobs: Sequence[Progress]) -> None:
            nonlocal setting_up
            if setting_up is not None:
                bars.remove_task(setting_up)
                setting_up = None
            for job in jobs:
                if job.label not in tasks:
                    tasks[job.label] = bars.add_task(job.label, total=job.total, note="")
                bars.update(tasks[job.label], completed=job.completed, note=job.note)

        yield show
