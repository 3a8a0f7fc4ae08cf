"""A sweep on machines that share no folder: programs, studies and results travel; machines are lost, and come."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator

import pytest

from tests import own_study
from tests.emulation.machines import CACHE, CHECKOUT, HERE, PYTHON, Machine, switchboard

pytest.importorskip("distributed")
pytestmark = [pytest.mark.thorough, pytest.mark.root]

PORT = 8786
PEOPLE = HERE / "people"
STUDY = PEOPLE / own_study.STUDY
RESULTS = HERE / "results"


class Cluster:
    def __init__(self, machines: Iterator[Machine]) -> None:
        self._machines = machines
        self.scheduler = self._listening("distributed.cli.dask_scheduler", "--port", PORT)
        self.url = f"tcp://{self.scheduler.address}:{PORT}"
        self.client = next(machines)

    def other_version(self) -> Machine:
        """The scheduler knows it."""
        machine = next(self._machines)
        with machine.path(CHECKOUT / "topo" / "graph.py").open("a") as file:
            file.write("# not as elsewhere\n")
        said_until(self._work(machine), "Registered to", [])
        return machine

    def worker(self) -> Machine:
        machine = next(self._machines)
        self._work(machine)
        return machine

    def _work(self, machine: Machine) -> subprocess.Popen[str]:
        return machine.start(
            PYTHON, "-m", "distributed.cli.dask_worker", self.url, "--nthreads", 1, "--no-nanny", "--no-dashboard",
            "--host", machine.address, "--local-directory", "/tmp",
        )  # fmt: skip

    def _listening(self, module: str, *options: object) -> Machine:
        machine = next(self._machines)
        machine.start(PYTHON, "-m", module, "--host", machine.address, "--no-dashboard", *options)
        return machine

    def gradbed(self, *arguments: object) -> subprocess.Popen[str]:
        return self.client.start(PYTHON, "-m", "gradbed", *arguments, "--output", RESULTS, cwd=STUDY.parent)


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with switchboard() as board:
        yield Cluster(iter(board.machine, None))


def said_until(program: subprocess.Popen[str], pattern: str, said: list[str]) -> re.Match[str]:
    assert program.stdout is not None
    for line in program.stdout:
        said.append(line)
        if found := re.search(pattern, line):
            return found
    raise AssertionError(f"never said {pattern}:\n{''.join(said)}")


def rest_of(program: subprocess.Popen[str], said: list[str]) -> str:
    assert program.stdout is not None
    said.extend(program.stdout)
    program.wait(30)
    return "".join(said)


def is_used(machine: Machine) -> bool:
    """Whether a trial has run there: its programs were compiled."""
    return any(machine.path(CACHE).glob("own-*.json"))


def put_study(cluster: Cluster, milliseconds: int) -> None:
    for name, text in own_study.FILES.items():
        cluster.client.write({PEOPLE / name: text.replace("MILLISECONDS", str(milliseconds))})


def results(cluster: Cluster, name: str = "own") -> dict[str, bytes]:
    """Of the run that finished last: its tables, and of each trial the row and what it left behind."""
    run = cluster.client.path(RESULTS / name)
    latest = run / (run / "latest").readlink()
    kept = [*latest.glob("*.csv"), *latest.glob("trials/*.json"), *latest.glob("trials/*/*")]
    return {str(path.relative_to(latest)): path.read_bytes() for path in kept if path.is_file()}


def check_sweep(cluster: Cluster, milliseconds: int, *, are_long: bool) -> None:
    """Ten trials. The client is killed and goes on; then a worker is lost, and another one comes. Trials that are not
    long may all be done before it has."""
    put_study(cluster, milliseconds)
    workers = [cluster.worker() for _ in range(3)]
    sweep = ("run", STUDY.name, "--scheduler", cluster.url)
    said: list[str] = []
    first = cluster.gradbed(*sweep)
    said_until(first, r"\[2/10\] .*", said)
    cluster.client.kill(first)
    other = cluster.other_version()  # not before: if it were there alone, the sweep would be refused
    (run,) = (path for path in cluster.client.path(RESULTS / "own").iterdir() if not path.is_symlink())
    done = {path: path.stat().st_mtime_ns for path in run.glob("trials/*.json")}
    assert 2 <= len(done) <= 5

    said = []
    second = cluster.gradbed(*sweep, "--resume")
    said_until(second, rf"going on with .*: {len(done)} of 10 trials are done", said)
    said_until(second, r"\[1/", said)
    workers[0].lose()
    come = cluster.worker()
    text = rest_of(second, said)
    assert second.returncode == 0, text
    refused = rf"gradbed: the worker at tcp://{other.address}:\d+ gets no trials: it has another version of gradbed"
    assert len(re.findall(refused, text)) == 1
    assert "Traceback" not in text
    assert {path: path.stat().st_mtime_ns for path in done} == done
    assert [is_used(worker) for worker in (*workers[1:], other)] == [True, True, False]
    assert is_used(come) or not are_long
    check_equal(cluster)


def check_equal(cluster: Cluster) -> None:
    """To what the client's machine finds by itself."""
    shared = results(cluster)
    assert sum(name.endswith("network.json") for name in shared) == 10
    local = cluster.gradbed("run", STUDY.name, "--parallel", 1)
    text = rest_of(local, [])
    assert local.returncode == 0, text
    assert results(cluster) == shared


def test_a_sweep_outlives_its_client_and_a_worker(cluster: Cluster) -> None:
    check_sweep(cluster, milliseconds=300, are_long=False)


@pytest.mark.nightly
def test_a_sweep_of_long_trials_does(cluster: Cluster) -> None:
    check_sweep(cluster, milliseconds=5000, are_long=True)
