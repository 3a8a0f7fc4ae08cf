"""Points on the workers of a Dask scheduler (virtual clock), and their way there and back."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gradbed.common.errors import UserError, unforeseen
from gradbed.common.scratch import LOCK, scratch_folder
from gradbed.experiments.configuration.point import PointConfiguration
from gradbed.experiments.records.run_folder import CAPTURES
from gradbed.experiments.study.running.admission import Admission
from gradbed.experiments.study.running.attempt import Broken, Outcome, attempt_plain, from_plain
from gradbed.experiments.study.running.measure import PointOrder
from gradbed.experiments.systems import find_system
from gradbed.topo.files import is_topology_file

# ---- On the way ----


@dataclass(frozen=True)
class Parcel:
    """What a worker gets. files: contents by absolute name, as they are where the order comes from."""

    order: PointOrder
    files: Mapping[str, bytes]


@dataclass(frozen=True)
class Answer:
    """outcome: as plain values. files: what the point's folder holds, by name in it."""

    outcome: dict[str, Any]
    files: Mapping[str, bytes]


def pack(order: PointOrder) -> Parcel:
    """The order with every file that a run of it reads. UserError if one cannot be read."""
    configuration = find_system(order.system).configuration.model_validate(order.configuration)
    return Parcel(order, dict(_contents(configuration)))


def _contents(configuration: PointConfiguration) -> Iterator[tuple[str, bytes]]:
    for path in configuration.files():
        try:
            content = path.read_bytes()
        except OSError as error:
            raise UserError(f"cannot read {path}: {error.strerror}") from None
        # Files may be looked for beside the name that they were given, or beside where a link leads.
        for name in {os.path.abspath(path), os.path.realpath(path)}:
            yield name, content


def unpack_and_run(parcel: Parcel) -> Answer:
    """On the worker, in a folder that is gone afterwards."""
    with scratch_folder("point") as folder:
        root = folder / "files"
        for name, content in parcel.files.items():
            place = _below(root, name)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
        results = folder / "results"
        moved = _moved(parcel.order.configuration, parcel.files, root)
        outcome = attempt_plain(replace(parcel.order, configuration=moved, folder=results))
        # People know their files by the names that they have at home.
        home = json.loads(json.dumps(outcome).replace(json.dumps(str(root))[1:-1], ""))
        return Answer(home, dict(_left_in(results, str(root).encode())))


def _left_in(folder: Path, root: bytes) -> Iterator[tuple[str, bytes]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name != LOCK:
            name, content = path.relative_to(folder), path.read_bytes()
            yield name.as_posix(), content if name.parts[0] == CAPTURES else content.replace(root, b"")


def take_in(answer: Answer, folder: Path) -> Outcome:
    """Back home, into the point's folder."""
    for name, content in answer.files.items():
        place = _below(folder, name)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
    return from_plain(answer.outcome)


def _below(folder: Path, name: str) -> Path:
    """ValueError for a name that leads out of the folder."""
    place = folder / name.lstrip("/")
    if ".." in place.relative_to(folder).parts:
        raise ValueError(f"{name} leads out of its folder")
    return place


def _moved(value: Any, names: Iterable[str], root: Path) -> Any:
    """The configuration, with every name of one of these files, or of a folder or beginning of some, leading to the
    copies below root."""
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


# ---- On the workers ----


SCHEDULER_TIMEOUT = "10s"
"""For a Dask scheduler to answer."""
LOOK_S = 0.5
"""Between looks at which workers there are."""

LOCAL = "local"
"""In place of a scheduler's address."""


class OnDask:
    """Each worker of this program's version has one point at a time: of a worker that is lost one point alone runs
    again, elsewhere, and a worker that comes has the next. All points are of one system."""

    def __init__(self, orders: Sequence[PointOrder], client: Any) -> None:
        self._orders = orders
        self._client = client
        self._running: dict[Any, PointOrder] = {}

    def results(self, on_start: Callable[[PointOrder], None]) -> Iterator[tuple[PointOrder, Outcome]]:
        waiting = deque(self._orders)
        admission = Admission(self._client, self._orders[0].system)
        try:
            while waiting or self._running:
                with self._as_long_as_there_is_a_scheduler():
                    for _ in range(min(len(waiting), admission.look() - len(self._running))):
                        self._submit(waiting.popleft(), admission.resource)
                    ended = self._ended()
                for future in ended:
                    order = self._running.pop(future)
                    yield order, self._outcome(future, order)
        finally:
            with contextlib.suppress(Exception):
                self._client.cancel(list(self._running))

    def _submit(self, order: PointOrder, resource: str) -> None:
        # With the client's name: of one that was killed the same point may still run, and be given up at any time.
        key = f"point-{order.digest}-{self._client.id}"
        future = self._client.submit(unpack_and_run, pack(order), key=key, resources={resource: 1}, pure=False)
        self._running[future] = order

    def _ended(self) -> list[Any]:
        """Those that have ended, at the latest when it is time to look at the workers again."""
        from distributed import wait

        if not self._running:
            time.sleep(LOOK_S)
            return []
        try:
            return list(wait(list(self._running), timeout=LOOK_S, return_when="FIRST_COMPLETED").done)
        except asyncio.TimeoutError:
            return []

    def _outcome(self, future: Any, order: PointOrder) -> Outcome:
        from distributed import KilledWorker

        with self._as_long_as_there_is_a_scheduler():
            try:
                return take_in(future.result(), order.folder)
            except CancelledError:
                raise
            except KilledWorker as error:
                return Broken(f"{error.allowed_failures + 1} workers were lost over it (out of memory?)", str(error))
            except Exception as error:
                return Broken(unforeseen(error), traceback.format_exc())

    @contextlib.contextmanager
    def _as_long_as_there_is_a_scheduler(self) -> Iterator[None]:
        from distributed.client import ClosedClientError

        try:
            yield
        except (CancelledError, ClosedClientError, OSError, asyncio.TimeoutError):
            raise UserError(
                "the Dask scheduler is gone; every point that was done is kept: start a scheduler and workers, and "
                "go on with --resume"
            ) from None


def check_scheduler(address: str) -> None:
    """UserError if no Dask scheduler answers there."""
    if address != LOCAL:
        with dask_client(address):
            pass


@contextlib.contextmanager
def dask_client(address: str) -> Iterator[Any]:
    """LOCAL makes a cluster of this machine's processors for the time."""
    from distributed import Client

    if address == LOCAL:
        from gradbed.experiments.study.running.local_cluster import local_cluster

        with scratch_folder("dask") as folder, local_cluster(folder) as cluster, Client(cluster) as client:
            yield client
        return
    try:
        client = Client(address, timeout=SCHEDULER_TIMEOUT)
    except (OSError, ValueError, TimeoutError) as error:
        raise UserError(f"--scheduler: no Dask scheduler answers at {address} ({error})") from None
    with client:
        yield client
