"""Trials on the workers of a Dask scheduler (virtual clock), and the job bundles in which they travel."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from distributed import Nanny, Scheduler, Security, SpecCluster, Worker

from gradbed.common.errors import UserError, unforeseen
from gradbed.common.resources import LOCK, scratch_folder
from gradbed.experiments.configuration.trial import TrialConfiguration
from gradbed.experiments.results.run_folder import CAPTURES
from gradbed.experiments.setup import TrialTask
from gradbed.experiments.study.running.digest import VersionCheck
from gradbed.experiments.study.running.worker import BrokenTrial, Outcome, outcome_from_json, run_task_as_json
from gradbed.experiments.systems import find_system
from gradbed.topo.files import is_topology_file

# ---- Job bundles ----


@dataclass(frozen=True)
class JobBundle:
    """A task, and every file that the trial reads, for a worker."""

    task: TrialTask
    files: Mapping[str, bytes]
    """Contents by absolute path on the machine that sends the bundle."""


@dataclass(frozen=True)
class BundleResult:
    """Result of a bundle, from a worker."""

    outcome: dict[str, Any]
    """As of outcome_to_json."""
    files: Mapping[str, bytes]
    """Contents of the trial's folder, by path in it."""


def bundle_of(task: TrialTask) -> JobBundle:
    """Return the task with every file that the trial reads.

    Raises:
        UserError: A file cannot be read.
    """
    return JobBundle(task, dict(_contents(task.configuration)))


def _contents(configuration: TrialConfiguration) -> Iterator[tuple[str, bytes]]:
    for path in configuration.files():
        try:
            content = path.read_bytes()
        except OSError as error:
            raise UserError(f"cannot read {path}: {error.strerror}") from None
        # Files may be looked for beside the name that they were given, or beside where a link leads.
        for name in {os.path.abspath(path), os.path.realpath(path)}:
            yield name, content


def run_bundle(bundle: JobBundle) -> BundleResult:
    """Run a trial on a worker, in a folder that is removed afterwards."""
    with scratch_folder("trial") as folder:
        root = folder / "files"
        for name, content in bundle.files.items():
            target = _below(root, name)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        results = folder / "results"
        plain = _moved(bundle.task.configuration.model_dump(mode="json"), bundle.files, root)
        configuration = find_system(bundle.task.system).configuration.model_validate(plain)
        outcome = run_task_as_json(replace(bundle.task, configuration=configuration, folder=results))
        # People know their files by the names that they have at home.
        home = json.loads(json.dumps(outcome).replace(json.dumps(str(root))[1:-1], ""))
        return BundleResult(home, dict(_files_in(results, str(root).encode())))


def _files_in(folder: Path, root: bytes) -> Iterator[tuple[str, bytes]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name != LOCK:
            name, content = path.relative_to(folder), path.read_bytes()
            yield name.as_posix(), content if name.parts[0] == CAPTURES else content.replace(root, b"")


def unpack_result(result: BundleResult, folder: Path) -> Outcome:
    """Write the files of a result into the trial's folder, and return the outcome."""
    for name, content in result.files.items():
        target = _below(folder, name)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    return outcome_from_json(result.outcome)


def _below(folder: Path, name: str) -> Path:
    """Return the path of a file below the folder; ValueError for a name that leads out of it."""
    path = folder / name.lstrip("/")
    if ".." in path.relative_to(folder).parts:
        raise ValueError(f"{name} leads out of its folder")
    return path


def _moved(value: Any, names: Iterable[str], root: Path) -> Any:
    """Return the configuration with every name of one of these files, or of a folder or beginning of some, leading to
    the copies below root."""
    if isinstance(value, Mapping):
        return {key: _moved(each, names, root) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_moved(each, names, root) for each in value]
    if isinstance(value, str):
        # What a network's file names is looked for around where links lead.
        name = os.path.realpath(value.strip()) if is_topology_file(value) else os.path.abspath(value)
        is_beginning = os.path.isabs(value) and any(each.startswith((f"{name}/", f"{name}.")) for each in names)
        if name in names or is_beginning:
            return str(_below(root, name))
    return value


# ---- Workers ----


SCHEDULER_TIMEOUT = "10s"
"""How long a Dask scheduler may take to answer."""
POLL_INTERVAL_S = 0.5
"""Between looks at which workers there are."""

LOCAL = "local"
"""Stands for a cluster of this machine, in place of a scheduler's address."""


class DaskExecutor:
    """Run trials of one system on workers of this program's version, one at a time each.

    Of a worker that is lost one trial alone runs again, elsewhere, and a worker that comes has the next.
    """

    def __init__(self, tasks: Sequence[TrialTask], client: Any) -> None:
        self._tasks = tasks
        self._client = client
        self._running: dict[Any, TrialTask] = {}

    def results(self, on_start: Callable[[TrialTask], None]) -> Iterator[tuple[TrialTask, Outcome]]:
        waiting = deque(self._tasks)
        versions = VersionCheck(self._client, self._tasks[0].system)
        try:
            while waiting or self._running:
                with self._while_there_is_a_scheduler():
                    for _ in range(min(len(waiting), versions.admitted() - len(self._running))):
                        self._submit(waiting.popleft(), versions.resource)
                    ended = self._ended()
                for future in ended:
                    task = self._running.pop(future)
                    yield task, self._outcome(future, task)
        finally:
            with contextlib.suppress(Exception):
                self._client.cancel(list(self._running))

    def _submit(self, task: TrialTask, resource: str) -> None:
        # With the client's name: of one that was killed the same trial may still run, and be given up at any time.
        key = f"trial-{task.digest}-{self._client.id}"
        future = self._client.submit(run_bundle, bundle_of(task), key=key, resources={resource: 1}, pure=False)
        self._running[future] = task

    def _ended(self) -> list[Any]:
        """Wait for trials to end, but no longer than until workers are to be looked at again; return those."""
        from distributed import wait

        if not self._running:
            time.sleep(POLL_INTERVAL_S)
            return []
        try:
            return list(wait(list(self._running), timeout=POLL_INTERVAL_S, return_when="FIRST_COMPLETED").done)
        except asyncio.TimeoutError:
            return []

    def _outcome(self, future: Any, task: TrialTask) -> Outcome:
        from distributed import KilledWorker

        with self._while_there_is_a_scheduler():
            try:
                return unpack_result(future.result(), task.folder)
            except CancelledError:
                raise
            except KilledWorker as error:
                reason = f"{error.allowed_failures + 1} workers were lost over it (out of memory?)"
                return BrokenTrial(reason, str(error))
            except Exception as error:
                return BrokenTrial(unforeseen(error), traceback.format_exc())

    @contextlib.contextmanager
    def _while_there_is_a_scheduler(self) -> Iterator[None]:
        from distributed.client import ClosedClientError

        try:
            yield
        except (CancelledError, ClosedClientError, OSError, asyncio.TimeoutError):
            raise UserError(
                "the Dask scheduler is gone; every trial that was done is kept: start a scheduler and workers, and "
                "go on with --resume"
            ) from None


def check_scheduler(address: str) -> None:
    """Raise UserError if no Dask scheduler answers there."""
    if address != LOCAL:
        with dask_client(address):
            pass


@contextlib.contextmanager
def dask_client(address: str) -> Iterator[Any]:
    """Yield a client of a scheduler; LOCAL makes a cluster of this machine's processors for the time."""
    from distributed import Client

    if address == LOCAL:
        from gradbed.experiments.study.running.distributed import local_cluster

        with scratch_folder("dask") as folder, local_cluster(folder) as cluster, Client(cluster) as client:
            yield client
        return
    try:
        client = Client(address, timeout=SCHEDULER_TIMEOUT)
    except (OSError, ValueError, TimeoutError) as error:
        raise UserError(f"--scheduler: no Dask scheduler answers at {address} ({error})") from None
    with client:
        yield client


# ---- A cluster on this machine ----


class SchedulerWithoutPage(Scheduler):  # type: ignore[misc]
    def start_http_server(self, *_arguments: Any, **_options: Any) -> None:
        """Open no port."""


class WorkerWithoutPage(Worker):  # type: ignore[misc]
    def start_http_server(self, *_arguments: Any, **_options: Any) -> None:
        """Open no port."""


def local_cluster(folder: Path) -> SpecCluster:
    """Run a cluster with one worker for each processor that this process may use, as a context manager.

    Args:
        folder: for the workers' files.
    """
    # As a new client of TLS: certificate and key are generated, and checked on both sides of each connection.
    security = Security.temporary()
    place = {"host": "127.0.0.1", "protocol": "tls://", "security": security, "dashboard": False}
    worker = {
        "cls": Nanny,
        "options": {
            **place,
            "nthreads": 1,
            "local_directory": str(folder),
            "worker_class": WorkerWithoutPage,
            "silence_logs": logging.WARNING,
        },
    }
    return SpecCluster(
        workers=dict.fromkeys(range(len(os.sched_getaffinity(0))), worker),
        scheduler={"cls": SchedulerWithoutPage, "options": {**place, "port": 0}},
        worker=worker,
        security=security,
        silence_logs=logging.WARNING,
    )
