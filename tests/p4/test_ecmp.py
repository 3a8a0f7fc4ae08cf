"""ecmp.p4 against random choices: flows that follow each other must spread over paths like any others, and switches
must not all choose alike."""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from gradbed.experiments.exercises.bench import ipv4, routed
from gradbed.experiments.programs import P4_SOURCES
from gradbed.switch.codegen import BuiltProgram, build_program
from gradbed.switch.compiler import compile_p4
from gradbed.switch.stf import parse_stf
from gradbed.switch.stf.engine_target import EngineTarget
from tests.random_hashing import SIGMAS, assert_random_choices

FLOWS, RUNS = 64, 40
FIRST_PORT = 10
"""Of the paths."""
Flow = tuple[str, str, tuple[int, int]]
"""Addresses, ports."""

FOLLOWING: dict[str, Callable[[int, int], Flow]] = {
    "source ports": lambda run, n: ("10.0.0.2", "10.0.1.2", (1024 + 977 * run + n, 7011)),
    # As Linux gives them to those who connect.
    "even source ports": lambda run, n: ("10.0.0.2", "10.0.1.2", (32768 + 776 * run + 2 * n, 7011)),
    "sources": lambda run, n: (f"10.0.{run}.{2 + n}", "10.1.1.2", (7000, 7011)),
    "targets": lambda run, n: ("10.0.0.2", f"10.1.{run}.{2 + n}", (7000, 7011)),
}


@functools.cache
def _program() -> BuiltProgram:
    return build_program(compile_p4(P4_SOURCES / "ecmp.p4").json)


class Router:
    """With so many paths to everywhere."""

    def __init__(self, paths: int, seed: int) -> None:
        self._stack = ExitStack()
        self._target = self._stack.enter_context(EngineTarget(_program(), frozenset()))
        commands = [f"add groups hdr.ipv4.dst_addr:0x0a000000/8 choose(group:1, choices:{paths}, seed:{seed})"]
        commands += [
            f"add paths meta.group:1 meta.choice:{path} forward(port:{FIRST_PORT + path}, dst_mac:2)"
            for path in range(paths)
        ]
        for statement in parse_stf("\n".join(commands), Path("commands")).statements:
            self._target.apply(statement)

    def __enter__(self) -> Router:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def choice(self, flow: Flow) -> int:
        source, target, ports = flow
        self._target.engine.inject(self._target.device.device_id, 1, routed(ipv4(source, target, ports)))
        self._target.engine.advance(1, 100)
        ((port, _),) = self._target.drain()
        return port - FIRST_PORT


@pytest.mark.commit_cases(2)
@pytest.mark.parametrize("kind", FOLLOWING)
@pytest.mark.parametrize("paths", [2, 3, 8])
def test_flows_that_follow_each_other_take_paths_at_random(kind: str, paths: int) -> None:
    """Neither too unevenly nor too evenly."""
    with Router(paths, seed=1) as router:
        runs = [
            Counter(router.choice(FOLLOWING[kind](run, number)) for number in range(FLOWS)) for run in range(RUNS)
        ]
    assert_random_choices(runs, paths)


def test_a_second_switch_splits_what_the_first_has_sent_one_way() -> None:
    """With the same hash all would go one way there, too, and half of a fat-tree's cores would be idle."""
    with Router(2, seed=1) as first, Router(2, seed=2) as second:
        flows = [FOLLOWING["source ports"](run, number) for run in range(8) for number in range(FLOWS)]
        one_way = [flow for flow in flows if first.choice(flow) == 0]
        again = sum(second.choice(flow) for flow in one_way)
    assert again == pytest.approx(len(one_way) / 2, abs=SIGMAS * math.sqrt(len(one_way) / 4))
