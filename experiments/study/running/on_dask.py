"""Points on the workers of a Dask scheduler (virtual clock)."""

from __future__ import annotations

import asyncio
import contextlib
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from typing import Any

from gradbed.common.errors import UserError, unforeseen
from gradbed.common.scratch import scratch_folder
from gradbed.experiments.study.running.admission import Admission
from gradbed.experiments.study.running.attempt import Broken, Outcome
from gradbed.experiments.study.running.measure import PointOrder
from gradbed.experiments.study.running.travel import pack, take_in, unpack_and_run

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
