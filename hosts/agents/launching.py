"""What launchers of agents on both clocks have in common: how agents are named, what is said to and by them, and how
long their computations take.
"""

from __future__ import annotations

import fcntl
import functools
import inspect
import json
import os
import random
import sys
import traceback
import typing
from collections.abc import Callable
from typing import Any

from pydantic import BaseModel

from gradbed.common.errors import UserError
from gradbed.common.modules import attribute
from gradbed.hosts.agents.config import parse_config

# ---- Agents, and other functions that are named in commands and configs, as "module:function" ----


def find_function(name: str) -> Callable[..., Any]:
    """Loads its module. UserError with one line if there is none."""
    try:
        function = attribute(name)
    except (ImportError, SyntaxError, AttributeError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise UserError(f'no function is called {name!r}, which should be "module:function" ({reason})') from None
    if not callable(function):
        raise UserError(f"{name!r} is no function")
    found: Callable[..., Any] = function
    return found


def config_type(function: Callable[..., Any], name: str) -> type[BaseModel]:
    """Return the annotation of the second parameter, the config. UserError.

    Args:
        function: An agent's.
        name: The function's name, for messages.
    """
    try:
        parameter = list(inspect.signature(function).parameters)[1]
        model: type[BaseModel] = typing.get_type_hints(function)[parameter]
        if issubclass(model, BaseModel):
            return model
    except (IndexError, KeyError, NameError, TypeError):
        pass
    raise UserError(f"{name!r} must take a context and a config that is annotated with its pydantic model")


def prepare_agent(name: str, config: Any) -> tuple[Callable[..., Any], BaseModel]:
    """Return an agent's function and its checked config, after `prepare` of its module if there is one. UserError."""
    main = find_function(name)
    checked = parse_config(config_type(main, name), config)
    prepare = getattr(sys.modules[main.__module__], "prepare", None)
    if prepare is not None:
        try:
            prepare(checked)
        except UserError:
            raise
        except Exception as error:
            raise UserError(f"{name!r} could not be prepared: {one_line(error)}") from None
    return main, checked


def one_line(error: Exception) -> str:
    """An unforeseen error, with the place where it was raised."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    text = f"{type(error).__name__}: {error}".removesuffix(": ")
    return " ".join(f"{text} ({os.path.basename(place.filename)}:{place.lineno})".split())


# ---- The channel: one-byte commands in, JSON lines of events out ----


BEGIN = b"b"
STOP = b"s"

INTERFACES = "interfaces"
"""The event at the end of an agent's life: what its interfaces carried (frames/counts.py)."""


def write_event(descriptor: int, event: str, **fields: Any) -> None:
    """Write one JSON line to a pipe, whole: lines of several processes do not mix, however long they are."""
    line = memoryview((json.dumps({"event": event, **fields}) + "\n").encode())
    lock = _lock(os.getpid(), descriptor)
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        while line:  # a pipe takes up to PIPE_BUF bytes at once for sure (pipe(7))
            line = line[os.write(descriptor, line) :]
    finally:
        fcntl.flock(lock, fcntl.LOCK_UN)


@functools.cache
def _lock(pid: int, descriptor: int) -> int:
    """The same pipe, opened by this process (pid) itself: what is inherited would share one lock. A script that runs
    as its caller may not open root's pipe; it has that one, and its lines are short enough to be written at once."""
    try:
        return os.open(f"/proc/self/fd/{descriptor}", os.O_WRONLY | os.O_CLOEXEC)
    except PermissionError:
        return descriptor


# ---- Compute times ----


class ComputeTimes:
    """Called for each computation of an agent (job, name): how long it takes at least, in us of the network's time.

    mean_us: 0: as long as it does. distribution: constant, or exponential, drawn by a generator of each agent's own.
    """

    def __init__(self, mean_us: float = 0.0, distribution: str = "constant", seed: int = 0) -> None:
        self._mean_us, self._distribution, self._seed = mean_us, distribution, seed
        self._draws: dict[tuple[int, str], random.Random] = {}

    def __call__(self, job: int, name: str) -> int:
        if self._distribution == "constant" or not self._mean_us:
            return round(self._mean_us)
        draw = self._draws.setdefault((job, name), random.Random(f"{self._seed} {job} {name}"))
        return round(draw.expovariate(1 / self._mean_us))

    def to_arguments(self) -> list[str]:
        """Return arguments for the launcher's command line (gradbed.hosts.agents.kernel.launcher)."""
        return [f"--compute={self._mean_us!r},{self._distribution},{self._seed}"]

    @classmethod
    def of_argument(cls, text: str) -> ComputeTimes:
        mean_us, distribution, seed = text.split(",")
        return cls(float(mean_us), distribution, int(seed))
