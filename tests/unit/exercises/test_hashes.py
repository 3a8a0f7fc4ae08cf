"""Hashes of exercises against random ones: flows that follow each other must spread like any others."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gradbed.cli.commands.exercise import EXERCISES
from gradbed.experiments.exercises.bench import Bench, ipv4, routed
from gradbed.experiments.exercises.exercise import exercises
from gradbed.experiments.exercises.solution import copied
from tests.random_hashing import SIGMAS, assert_random, assert_random_choices

RUNS = 40
FIRST_PORT = 10
"""Of the paths."""
ACTION = "    // CRCs are linear"
"""How the comment of the action that mixes begins."""
KNOWN = exercises(EXERCISES)
Flow = tuple[str, str, tuple[int, int]]
"""Addresses, ports."""

FOLLOWING: dict[str, Callable[[int, int], Flow]] = {
    "source ports": lambda run, n: ("10.0.0.2", "10.0.1.2", (1024 + 977 * run + n, 7011)),
    # As Linux gives them to those who connect.
    "even source ports": lambda run, n: ("10.0.0.2", "10.0.1.2", (32768 + 776 * run + 2 * n, 7011)),
    "sources": lambda run, n: (f"10.0.{2 + run}.{2 + n}", "10.0.1.2", (7000, 7011)),
}


@contextmanager
def bench_of(name: str, part: str, folder: Path, *commands: str) -> Iterator[Bench]:
    """A switch that runs the solution or the starter code of an exercise."""
    exercise = KNOWN[name]
    (exercise.solve if part == "solution" else exercise.start)(folder / "work")
    with Bench(copied(folder / "work", exercise.program, folder / "subject")) as bench:
        for command in commands:
            bench.do(command)
        bench.send_together([], 1000)  # a time of 0 is that of a flow that never was
        yield bench


def outputs(bench: Bench, flow: Flow, port: int = 1) -> list[int]:
    source, target, ports = flow
    return [port for port, _ in bench.send(port, routed(ipv4(source, target, ports)), 1)]


def choices(bench: Bench, kind: str) -> list[Counter[int]]:
    """The ports by which 64 flows leave, counted from that of the first path, in each run."""
    runs = []
    for run in range(RUNS):
        flows = (FOLLOWING[kind](run, number) for number in range(64))
        runs.append(Counter(port - FIRST_PORT for flow in flows for port in outputs(bench, flow)))
        assert sum(runs[-1].values()) == 64
    return runs


@pytest.mark.parametrize("kind", FOLLOWING)
@pytest.mark.parametrize("paths", [2, 3, 8])
def test_ecmp_has_flows_take_paths_at_random(kind: str, paths: int, tmp_path: Path) -> None:
    commands = [f"add groups hdr.ipv4.dst_addr:0x0a000102/32 choose(group:1, choices:{paths})"]
    commands += [
        f"add paths meta.group:1 meta.choice:{path} forward(port:{FIRST_PORT + path}, dst_mac:2)"
        for path in range(paths)
    ]
    with bench_of("ecmp", "solution", tmp_path, *commands) as bench:
        assert_random_choices(choices(bench, kind), paths)


FLOWLETS = [
    "add groups hdr.ipv4.dst_addr:0x0a000102/32 choose(group:1)",
    "add paths meta.group:1 meta.path:0 forward(port:10, dst_mac:2)",
    "add paths meta.group:1 meta.path:1 forward(port:11, dst_mac:2)",
]


@pytest.mark.parametrize("kind", FOLLOWING)
def test_the_starter_code_of_flowlet_has_flows_take_paths_at_random(kind: str, tmp_path: Path) -> None:
    with bench_of("flowlet", "starter", tmp_path, *FLOWLETS) as bench:
        assert_random_choices(choices(bench, kind), 2)


@pytest.mark.parametrize("kind", FOLLOWING)
def test_flowlet_remembers_flows_in_cells_at_random(kind: str, tmp_path: Path) -> None:
    taken = []
    with bench_of("flowlet", "solution", tmp_path, *FLOWLETS) as bench:
        for run in range(RUNS):
            bench.do("register_reset last_us")
            for number in range(250):
                assert len(outputs(bench, FOLLOWING[kind](run, number))) == 1
            taken.append(sum(bench.register("last_us", cell) != 0 for cell in range(1024)))
    assert_random(taken, 1024, 250)


STATEFUL = [
    "add routes hdr.ipv4.dst_addr:0x0a000100/24 forward(port:2, dst_mac:2)",
    "add routes hdr.ipv4.dst_addr:0x0a000000/16 forward(port:1, dst_mac:2)",
    "add inside std.ingress_port:1 NoAction()",
]


@pytest.mark.parametrize("kind", FOLLOWING)
def test_stateful_sets_bits_at_random(kind: str, tmp_path: Path) -> None:
    found: dict[str, list[int]] = {"first_bits": [], "second_bits": []}
    with bench_of("stateful", "solution", tmp_path, *STATEFUL) as bench:
        for run in range(RUNS):
            for bits in found:
                bench.do(f"register_reset {bits}")
            for number in range(250):
                assert outputs(bench, FOLLOWING[kind](run, number)) == [2]
            for bits, taken in found.items():
                taken.append(sum(bench.register(bits, bit) for bit in range(4096)))
    for taken in found.values():
        assert_random(taken, 4096, 250)


@pytest.mark.parametrize("step", [1, 2])
def test_stateful_lets_as_many_strangers_in_as_two_random_hashes(step: int, tmp_path: Path) -> None:
    """Those of the ports that follow: each finds both of its bits set by chance."""
    flows, strangers, runs = 500, 2000, 10
    came_in, expected = 0, 0.0
    with bench_of("stateful", "solution", tmp_path, *STATEFUL) as bench:
        for run in range(runs):
            first = 1024 + 977 * run
            for bits in ("first_bits", "second_bits"):
                bench.do(f"register_reset {bits}")
            for number in range(flows):
                outputs(bench, ("10.0.0.2", "10.0.1.2", (first + step * number, 7011)))
            for number in range(flows, flows + strangers):
                answer: Flow = ("10.0.1.2", "10.0.0.2", (7011, first + step * number))
                came_in += len(outputs(bench, answer, 2))
            shares = [
                sum(bench.register(bits, bit) for bit in range(4096)) / 4096 for bits in ("first_bits", "second_bits")
            ]
            expected += strangers * shares[0] * shares[1]
    assert came_in == pytest.approx(expected, abs=SIGMAS * math.sqrt(expected))


@pytest.mark.parametrize("name", ["ecmp", "flowlet", "stateful"])
def test_starter_code_mixes_as_the_solution_does(name: str) -> None:
    exercise = KNOWN[name]
    mixing = []
    for part in ("starter", "solution"):
        _, found, after = (exercise.folder / part / exercise.program).read_text().partition(ACTION)
        assert found, part
        mixing.append(after.partition("\n    }\n")[0])
    assert mixing[0] == mixing[1]
