"""A Dask cluster of this machine's processors that nobody else on the machine can use.

Any client that speaks Dask's protocol to a scheduler or a worker runs code there, and all accounts of a machine reach
its loopback addresses. So all speak TLS, each with the one certificate that is made here and never written where
others read; and none opens the port of a page, which Dask does even if no dashboard is asked for
(distributed/node.py).
"""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any

from distributed import Nanny, Scheduler, Security, SpecCluster, Worker


class SchedulerWithoutPage(Scheduler):  # type: ignore[misc]
    def start_http_server(self, *_arguments: Any, **_options: Any) -> None:
        """Open no port."""


class WorkerWithoutPage(Worker):  # type: ignore[misc]
    def start_http_server(self, *_arguments: Any, **_options: Any) -> None:
        """Open no port."""


def local_cluster(folder: Path) -> SpecCluster:
    """One worker for each processor that this process may use; a context manager. folder: for the workers' files."""
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
