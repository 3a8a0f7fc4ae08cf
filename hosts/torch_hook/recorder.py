"""Runs a script as one rank, and records what PyTorch does: operators, tensors, communications and times.

python -m gradbed.hosts.torch_hook.recorder FOLDER SCRIPT ARGUMENTS..., with RANK, WORLD_SIZE, MASTER_ADDR and
MASTER_PORT as torchrun sets them. FOLDER gets operators.RANK.json (torch.profiler.ExecutionTraceObserver),
timeline.RANK.json (the profiler, in Chrome's format) and ranks.RANK.json. The observer says nothing of process
groups, so an annotation around every call that communicates names the ranks, and ranks.RANK.json those of
DistributedDataParallel.
"""

from __future__ import annotations

import atexit
import functools
import inspect
import json
import os
import runpy
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import torch
from torch import distributed
from torch.distributed import distributed_c10d
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import ExecutionTraceObserver, ProfilerActivity, profile, record_function

ANNOTATION = "gradbed group "
"""And then the ranks, with commas between them."""

CALLS = (
    "all_gather all_gather_into_tensor all_reduce all_to_all all_to_all_single barrier broadcast gather irecv isend "
    "recv reduce reduce_scatter reduce_scatter_tensor scatter send"
)
"""Functions of torch.distributed that take a group."""


KEPT: list[Any] = []
"""Process groups, and what else holds them, until this process is gone. At their end they wait for threads of their
own with Python's lock in hand, and these may just need it to drop what backward() left in them: both would wait for
ever."""


class DataParallelRanks:
    """The ranks of the models of DistributedDataParallel; all, where there is none."""

    def __init__(self) -> None:
        self.ranks = tuple(range(int(os.environ["WORLD_SIZE"])))

    def watch(self) -> None:
        """Watch for models from now on."""
        begin = DistributedDataParallel.__init__

        @functools.wraps(begin)
        def noted(model: Any, *arguments: Any, **options: Any) -> None:
            begin(model, *arguments, **options)
            KEPT.append(model.reducer)
            self.ranks = tuple(distributed.get_process_group_ranks(model.process_group))

        DistributedDataParallel.__init__ = noted


def annotate(name: str) -> None:
    """Let a function of torch.distributed name its group's ranks to the observer."""
    call: Callable[..., Any] = getattr(distributed_c10d, name)
    signature = inspect.signature(call)

    @functools.wraps(call)
    def annotated(*arguments: Any, **options: Any) -> Any:
        group = signature.bind(*arguments, **options).arguments.get("group")
        if group is distributed.GroupMember.NON_GROUP_MEMBER:
            return call(*arguments, **options)
        group = group or distributed.group.WORLD
        if not any(group is kept for kept in KEPT):
            KEPT.append(group)
        ranks = distributed.get_process_group_ranks(group)
        with record_function(ANNOTATION + ",".join(map(str, ranks))):
            return call(*arguments, **options)

    setattr(distributed_c10d, name, annotated)
    setattr(distributed, name, annotated)


def record(folder: Path, script: str, arguments: list[str]) -> int:
    """The script's exit status."""
    rank = os.environ["RANK"]
    data_parallel = DataParallelRanks()
    data_parallel.watch()
    for name in CALLS.split():
        annotate(name)
    observer = ExecutionTraceObserver()
    observer.register_callback(str(folder / f"operators.{rank}.json"))
    sys.argv = [script, *arguments]
    sys.path.insert(0, os.path.dirname(script))
    with profile(activities=[ProfilerActivity.CPU], execution_trace_observer=observer) as profiler:
        status = _run(script)
    profiler.export_chrome_trace(str(folder / f"timeline.{rank}.json"))
    (folder / f"ranks.{rank}.json").write_text(json.dumps({"data_parallel": data_parallel.ranks}), encoding="utf-8")
    return status


def _run(script: str) -> int:
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as ending:
        if isinstance(ending.code, str):
            print(ending.code, file=sys.stderr)
        return ending.code if isinstance(ending.code, int) else int(ending.code is not None)
    except Exception:
        traceback.print_exc()
        return 1
    return 0


def end(status: int) -> NoReturn:
    """End as Python does, but without the end of what is kept."""
    for thread in threading.enumerate():
        if thread is not threading.main_thread() and not thread.daemon:
            thread.join()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    end(record(Path(sys.argv[1]), sys.argv[2], sys.argv[3:]))
