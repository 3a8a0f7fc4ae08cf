"""Calls in processes of their own: one that crashes or never ends costs its own result only. What a call has started
goes with it."""

from __future__ import annotations

import contextlib
import multiprocessing
import multiprocessing.util
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Generic, TypeVar

Argument = TypeVar("Argument")
Value = TypeVar("Value")

# Some versions of Python have the server listen at a name that every account of the machine can call, and whoever
# calls runs code (CVE-2022-42919). In a temporary folder of its own it is out of their reach.
multiprocessing.util.abstract_sockets_supported = False  # type: ignore[misc]
# Forked from a process without threads, which imports once for all calls what most of them need.
_CONTEXT = multiprocessing.get_context("forkserver")
_IMPORTS = ("gradbed.switch.codegen", "gradbed.switch.compiler", "gradbed.switch.stf")


@dataclass(frozen=True)
class Ended(Generic[Argument, Value]):
    """Outcome of one call: its value, or how its process ended without one."""

    argument: Argument
    value: Value | None
    how: str


@dataclass
class _Running(Generic[Argument]):
    argument: Argument
    process: BaseProcess
    result: Connection
    deadline_s: float


def each_in_own_process(
    function: Callable[[Argument], Value],
    arguments: Sequence[Argument],
    *,
    jobs: int,
    time_limit_s: float,
    imports: Sequence[str] = _IMPORTS,
) -> Iterator[Ended[Argument, Value]]:
    """Call the function with each argument, `jobs` at a time; results in the order in which they come.

    imports: modules that most calls need.
    """
    _CONTEXT.set_forkserver_preload([*imports])
    waiting = list(reversed(arguments))
    running: list[_Running[Argument]] = []
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                running.append(_start(function, waiting.pop(), time_limit_s))
            remaining_s = min(r.deadline_s for r in running) - time.monotonic()
            ready = wait([r.result for r in running], max(0.0, remaining_s))
            for run in list(running):
                if run.result in ready or time.monotonic() >= run.deadline_s:
                    running.remove(run)
                    yield _end(run, run.result in ready, time_limit_s)
    finally:
        for run in running:
            _end(run, False, time_limit_s)


def _start(function: Callable[[Argument], Value], argument: Argument, time_limit_s: float) -> _Running[Argument]:
    receiving, sending = _CONTEXT.Pipe(duplex=False)
    process = _CONTEXT.Process(target=_call, args=(function, argument, sending))
    process.start()
    sending.close()
    return _Running(argument, process, receiving, time.monotonic() + time_limit_s)


def _call(function: Callable[[Argument], Value], argument: Argument, result: Connection) -> None:
    os.setsid()
    result.send(function(argument))
    result.close()


def _end(run: _Running[Argument], done: bool, time_limit_s: float) -> Ended[Argument, Value]:
    value: Value | None = None
    how = ""
    if not done:
        _kill(run.process)
        how = f"took longer than {time_limit_s:g} s"
    else:
        try:
            value = run.result.recv()
        except EOFError:
            run.process.join()
            how = _cause(run.process.exitcode)
    run.process.join()
    run.result.close()
    return Ended(run.argument, value, how)


def _kill(process: BaseProcess) -> None:
    """Kill the process with all that it has started, such as a C compiler."""
    process.kill()
    with contextlib.suppress(ProcessLookupError):  # it has not begun, or nothing of it is left
        os.killpg(process.pid or 0, signal.SIGKILL)


def _cause(exit_code: int | None) -> str:
    if exit_code is not None and exit_code < 0:
        return f"the process was ended by {signal.Signals(-exit_code).name}"
    return f"the process ended with exit status {exit_code}"
