"""Run jobs for hours on one network on the real clock, and check that nothing is left and memory does not grow.

Each job is asked for at the REST interface, as anybody's is, runs with agents of its own, has its sums checked and
its packets accounted for, and is removed; others stand beside it without agents. Then the switches must hold what
they held before the first job, entry by entry. Between jobs it is counted what controller, switches and agent
launcher hold of the machine.
"""

from __future__ import annotations

import csv
import gc
import os
import random
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import grpc
from finsy.proto import p4r, p4r_grpc

from gradbed.common.errors import UserError
from gradbed.common.resources import scratch_folder
from gradbed.common.sandbox import run_in_sandbox
from gradbed.experiments.engine.trial import run_phase
from gradbed.experiments.results.run_folder import RunFolder, environment
from gradbed.experiments.runtimes.real import RealRuntime
from gradbed.experiments.scale import Scale
from gradbed.experiments.setup import TrialTask
from gradbed.experiments.systems.aggregation.configuration import AggregationConfiguration
from gradbed.experiments.systems.aggregation.system import AggregationSystem
from gradbed.experiments.systems.aggregation.trial import AggregationTrial
from gradbed.experiments.tables.console import make_console
from gradbed.topo.graph import Topology
from tools.bench.flatness import draw, judge, read_samples
from tools.bench.leaks import ResourceLeak
from tools.bench.memory_profile import (
    files_below,
    held_by_roles,
    keep_no_free_memory,
    least_of_several,
    mounts,
)

TOPOLOGY, LANES, SLOTS = "leaf-spine:2,2,3", 64, 512
SCALE = Scale(0.2)
MODULES = {
    "gradbed.controller.app": "controller",
    "gradbed.switch.switch_process": "switches",
    "gradbed.hosts.agents.kernel.launcher": "launcher",
}
OWN = "experiment"
READ_TIMEOUT_S = 20.0

KINDS: Sequence[tuple[int, int, Mapping[str, Any], Mapping[str, Any]]] = (
    (1, 4, {"placement": "greedy", "programmable": 2}, {}),
    (2, 2, {"placement": "greedy", "programmable": 1, "slot_policy": "static"}, {}),
    (1, 3, {"placement": "every-tor"}, {}),
    (1, 2, {"placement": "server-tor", "slot_policy": "static"}, {}),
    (2, 2, {"placement": "none"}, {"exchange": "ring"}),
    (1, 5, {"placement": "none"}, {}),
)
"""Of jobs, in turns: how many at once, their workers, and what else they are asked with (switches, workload)."""

_EVERYTHING = (
    p4r.Entity(table_entry=p4r.TableEntry()),
    p4r.Entity(packet_replication_engine_entry=p4r.PacketReplicationEngineEntry(
        multicast_group_entry=p4r.MulticastGroupEntry()
    )),
    p4r.Entity(packet_replication_engine_entry=p4r.PacketReplicationEngineEntry(
        clone_session_entry=p4r.CloneSessionEntry()
    )),
)  # fmt: skip


@dataclass(frozen=True)
class Pace:
    """How long a soak runs, and how often jobs and samples come."""

    duration_s: float
    """After this time no further job begins."""
    every_s: float
    """From the start of a job to that of the next, where jobs do not take longer."""
    sample_s: float
    """Shortest time between samples."""


def run_bench_soak(pace: Pace, output: Path) -> int:
    """Run the jobs, and leave samples.csv and a figure in OUTPUT/soak/STAMP.

    Returns:
        1 if something was left behind or grew, otherwise 0.
    """
    run = RunFolder(output, "soak")
    run.write_json("environment.json", environment())
    samples = run.path / "samples.csv"
    console = make_console()
    console.print(f"{run.path}: a row each {pace.sample_s:g} s")
    with scratch_folder("soak") as folder:
        status = run_in_sandbox(lambda: _in_sandbox(folder, samples, pace), "python -m tools.bench soak")
    if status:
        return status
    try:
        growing = judge(read_samples(samples))
    except ValueError as error:
        raise UserError(f"--minutes: {error}: take more") from None
    draw(read_samples(samples), run.path / "soak")
    run.finish()
    run.close()
    return int(bool(growing))


def _in_sandbox(folder: Path, samples: Path, pace: Pace) -> int:
    # All that any process of the sandbox leaves in a temporary folder is seen.
    os.environ["TMPDIR"] = str(folder)
    keep_no_free_memory()
    try:
        jobs = soak(folder, samples, pace)
    except ResourceLeak as leak:
        print(leak, file=sys.stderr)
        return 1
    print(f"{jobs} jobs, all exact; after each the switches held what they held before")
    return 0


class Switches:
    """The contents of all switches, read over P4Runtime by a client without arbitration."""

    def __init__(self, runtime: RealRuntime, stack: ExitStack) -> None:
        self._runtime = runtime
        self._stubs = {
            switch.name: (
                switch.number,
                p4r_grpc.P4RuntimeStub(
                    stack.enter_context(grpc.insecure_channel(runtime.backend.control_address(switch.name)))
                ),
            )
            for switch in runtime.topology.switches
        }

    def contents(self) -> dict[str, frozenset[str]]:
        """Return table entries, multicast groups and clone sessions as text, by switch."""
        return {name: frozenset(self._entities(name)) for name in self._stubs}

    def _entities(self, name: str) -> Iterator[str]:
        number, stub = self._stubs[name]
        for answer in stub.Read(p4r.ReadRequest(device_id=number, entities=_EVERYTHING), timeout=READ_TIMEOUT_S):
            yield from (str(entity) for entity in answer.entities)

    def held_slots(self) -> int:
        """Return the number of slots held in all switches: held_bits has a bit for each."""
        words = [
            value
            for name in self._stubs
            for index, value in self._runtime.registers(name, "held_bits").items()
            if index <= (SLOTS - 1) // 64
        ]
        return sum((value or 0).bit_count() for value in words)


def network_configuration() -> AggregationConfiguration:
    """Return the configuration of the network: all of its switches sum."""
    return AggregationConfiguration.model_validate(
        {"topology": {"kind": TOPOLOGY}, "switches": {"slots": SLOTS}, "workload": {"workers": 2, "lanes": LANES}}
    )


def soak(
    folder: Path, samples: Path, pace: Pace, after_each: Callable[[RealRuntime], None] = lambda runtime: None
) -> int:
    """Run the jobs in a sandbox, and return how many there were.

    Args:
        folder: For temporary files.
        samples: A CSV file to which each sample is written as it is taken.
        pace: How long, and how often.
        after_each: Called when a job is over.

    Raises:
        ResourceLeak: A job was not exact or left something.
    """
    system, task = AggregationSystem(), TrialTask(network_configuration(), 1, SCALE, folder)
    with ExitStack() as stack:
        runtime = stack.enter_context(RealRuntime(system, system.network(task), task))
        switches = Switches(runtime, stack)
        before = switches.contents()
        write = stack.enter_context(_rows(samples))
        start_s = time.monotonic()
        next_sample_s = start_s
        for number in count():
            if (begun_s := time.monotonic()) >= start_s + pace.duration_s:
                return number
            _one_job(runtime, task, number)
            after_each(runtime)
            _nothing_left(number, before, switches)
            if time.monotonic() >= next_sample_s:
                next_sample_s = time.monotonic() + pace.sample_s
                at = {"time_s": round(time.monotonic() - start_s, 3), "jobs": number + 1}
                write({**at, **_held(switches), **least_of_several(lambda: _census(folder))})
            time.sleep(max(0.0, begun_s + pace.every_s - time.monotonic()))
    raise AssertionError("counting ends")


def _one_job(runtime: RealRuntime, task: TrialTask[AggregationConfiguration], number: int) -> None:
    """Run one job; ResourceLeak if a sum is not exact, or packets are not accounted for."""
    jobs, workers, switches, workload = KINDS[number % len(KINDS)]
    configuration = AggregationConfiguration.model_validate(
        {
            "topology": {"kind": TOPOLOGY},
            "switches": {"slots": SLOTS // 2, **switches},
            "workload": {
                "jobs": jobs, "workers": workers, "lanes": LANES, "rounds": 4, "values": 50 * LANES, **workload,
            },
        }
    )  # fmt: skip
    hosts = _drawn_hosts(runtime.topology, jobs, workers, number)
    standing = _standing_job(hosts, switches)
    trial = AggregationTrial(task.with_configuration(configuration), hosts)
    (phase,) = trial.phases
    asked = runtime.client.add_job(AggregationSystem.name, standing)
    measured, _ = run_phase(runtime, phase, task.with_configuration(configuration))
    failures = trial.result([measured]).failures
    runtime.delete_job(asked["job"])
    if failures:
        raise ResourceLeak(f"job {number + 1}: {'; '.join(failures)}")


def _drawn_hosts(topology: Topology, jobs: int, workers: int, seed: int) -> list[tuple[tuple[str, ...], str]]:
    """Draw workers and server of each job, which share no host."""
    names = [host.name for host in topology.hosts]
    random.Random(seed).shuffle(names)
    size = workers + 1
    return [(tuple(own[1:]), own[0]) for own in (names[size * job : size * (job + 1)] for job in range(jobs))]


def _standing_job(hosts: Sequence[tuple[tuple[str, ...], str]], switches: Mapping[str, Any]) -> dict[str, Any]:
    """Return a job with slots of its own, or none, that stands beside another with the same policy."""
    workers, server = hosts[0]
    static = {"slot_policy": "static", "slots": 64} if switches.get("slot_policy") == "static" else {}
    return {"workers": list(workers), "server": server, **static}


def _nothing_left(number: int, before: Mapping[str, frozenset[str]], switches: Switches) -> None:
    for name, found in switches.contents().items():
        if found != before[name]:
            more, fewer = len(found - before[name]), len(before[name] - found)
            raise ResourceLeak(f"job {number + 1} has left {more} entries more and {fewer} fewer in {name}")
    if held := switches.held_slots():
        raise ResourceLeak(f"job {number + 1} has left {held} slots held")


def _held(switches: Switches) -> dict[str, int]:
    return {"entries": sum(map(len, switches.contents().values())), "held_slots": switches.held_slots()}


def _census(folder: Path) -> dict[str, int]:
    """Return what is held now; `folder` is that of temporary files."""
    gc.collect()  # the command line seldom searches for cycles (cli/start.py)
    files = list(files_below(folder))
    sizes = {"files": len(files), "file_bytes": sum(file.lstat().st_size for file in files), "mounts": mounts()}
    return {**held_by_roles(MODULES, OWN), **sizes}


@contextmanager
def _rows(path: Path) -> Iterator[Callable[[Mapping[str, Any]], None]]:
    """Yield a function that writes a row to a CSV file immediately, so that it does not count as memory.

    ValueError for a column that the first row did not have.
    """
    with path.open("w", newline="", encoding="utf-8") as file:
        writer: list[csv.DictWriter[str]] = []

        def write(row: Mapping[str, Any]) -> None:
            if not writer:
                writer.append(csv.DictWriter(file, fieldnames=list(row), restval=0))
                writer[0].writeheader()
            writer[0].writerow(row)
            file.flush()
            os.fsync(file.fileno())

        yield write
