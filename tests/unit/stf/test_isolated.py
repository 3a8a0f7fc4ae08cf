"""Calls in processes of their own."""

from __future__ import annotations

import os
import signal
import time

from gradbed.switch.stf.isolated import each_in_own_process


def behave(how: str) -> str:
    if how == "crash":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "exit":
        os._exit(3)
    if how == "hang":
        time.sleep(3600)
    return f"{how} in {os.getpid()}"


def test_values_come_back_from_other_processes() -> None:
    ended = list(each_in_own_process(behave, ["a", "b", "c"], jobs=2, time_limit_s=60))
    assert sorted(e.argument for e in ended) == ["a", "b", "c"]
    assert all(e.value is not None and e.value.startswith(f"{e.argument} in ") and not e.how for e in ended)
    assert len({e.value for e in ended} | {f"x in {os.getpid()}"}) == 4


def test_what_crashes_or_hangs_costs_its_own_result_only() -> None:
    calls = ["hang", "crash", "exit", "well"]
    ended = {e.argument: e for e in each_in_own_process(behave, calls, jobs=2, time_limit_s=1.5)}
    assert {name: e.how for name, e in ended.items()} == {
        "hang": "took longer than 1.5 s",
        "crash": "the process was ended by SIGKILL",
        "exit": "the process ended with exit status 3",
        "well": "",
    }
    assert ended["well"].value is not None
    assert ended["crash"].value is None


def test_stopping_early_ends_what_runs() -> None:
    results = each_in_own_process(behave, ["well", "hang", "hang"], jobs=3, time_limit_s=60)
    assert next(results).argument == "well"
    before = time.monotonic()
    results.close()
    assert time.monotonic() - before < 30
