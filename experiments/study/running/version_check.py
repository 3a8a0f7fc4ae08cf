"""The version check of Dask workers: only those that hold the same program as this machine run trials."""

from __future__ import annotations

import sys
from typing import Any

from gradbed.common.errors import UserError, unforeseen
from gradbed.common.version import VERSION
from gradbed.experiments.study.running.digest import sweep_digest

PREFIX = "gradbed-"
"""Prefix of the resource that an admitted worker has: one, so that it runs one trial at a time."""


class VersionCheck:
    """Asks each new worker of a scheduler what program it holds.

    A worker with the same program gets a resource named for the version, without which Dask gives it no trial; any
    other one is reported in one line.
    """

    def __init__(self, client: Any, system: str) -> None:
        self._client = client
        self._system = system
        self._digest = sweep_digest(system)
        self.resource = PREFIX + self._digest
        self._refused: dict[str, str] = {}
        self._has_reported_waiting = False

    def admitted(self) -> int:
        """Check the workers that have come, and return how many are admitted now.

        Raises:
            UserError: There are workers, and there never was one with this program.
        """
        workers = self._client.sync(self._client.scheduler.identity)["workers"]
        self._refused = {address: why for address, why in self._refused.items() if address in workers}
        admitted = {address for address, worker in workers.items() if self.resource in (worker["resources"] or {})}
        if new := [address for address in workers if address not in admitted and address not in self._refused]:
            admitted |= self._check(new)
        if not admitted:
            self._report_none(list(workers))
        self._has_reported_waiting = self._has_reported_waiting or bool(admitted)
        return len(admitted)

    def _check(self, addresses: list[str]) -> set[str]:
        """Return those of the workers that are admitted."""
        _register_by_value()
        answers = self._client.run(
            admit,
            sweep_digest.__module__,
            self._system,
            self._digest,
            self.resource,
            workers=addresses,
            on_error="return",
        )
        for address, answer in answers.items():
            if answer is not None:
                self._refused[address] = str(answer)
                _report(f"the worker at {address} gets no trials: {answer}; here is {VERSION}, {self._digest}")
        return {address for address, answer in answers.items() if answer is None}

    def _report_none(self, workers: list[str]) -> None:
        if workers and not self._has_reported_waiting:
            raise UserError(
                f"--scheduler: none of its {len(workers)} workers has this version of gradbed: "
                f"{self._refused[workers[0]]}; here is {VERSION}, {self._digest}"
            )
        if not self._has_reported_waiting:
            self._has_reported_waiting = True
            _report("the scheduler has no worker yet: waiting for one")


async def admit(module: str, system: str, digest: str, resource: str, dask_worker: Any = None) -> str | None:
    """Admit the worker on which this runs, or return in words why it does not fit.

    The worker may have another version of this program, or none: this function travels as code, not as a name, and so
    can use nothing of its module.
    """
    import importlib
    import platform

    try:
        found = importlib.import_module(module).sweep_digest(system)
        version = importlib.import_module(
            module.replace("gradbed.experiments.study.running.digest", "gradbed.common.version")
        )
    except Exception as error:
        python = platform.python_version()
        return f"it has no gradbed, or an older one ({unforeseen(error)}; Python {python})"
    if found != digest:
        return f"it has another version of gradbed ({version.VERSION}, {found})"
    await dask_worker.set_resources(**{resource: 1})
    return None


def _register_by_value() -> None:
    import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])


def _report(text: str) -> None:
    print(f"gradbed: {text}", file=sys.stderr, flush=True)
