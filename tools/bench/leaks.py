"""Check that networks leave no resources behind.

Small ones are brought up and taken down many times, in three ways that alternate:

    prompt      `gradbed up`, whose prompt is told to ping and then meets the end of its input
    program     as `gradbed.up` holds a network for a program (docs/api.md)
    killed      `gradbed up`, killed with SIGKILL once its network is up

All of this goes on in a sandbox, whose processes, namespaces and interfaces are the networks' alone; temporary files
and /dev/shm are its own, too. What is there after the first round of all ways must be there after the last, and
nothing else. A killed command's folder of temporary files is removed by the next command, as it is meant to be.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from gradbed.common.json_lines import own_program
from gradbed.common.namespaces import MS_NODEV, MS_NOSUID, mount, require_root
from gradbed.common.resources import scratch_folder
from gradbed.common.sandbox import run_in_sandbox
from gradbed.experiments.programs import FORWARD
from gradbed.experiments.sessions.remote import open_session
from gradbed.experiments.tables.console import make_console, rows_table
from tools.bench.memory_profile import files_below, networks_of, processes

TOPOLOGY = "star:2"
COMMAND_TIMEOUT_S = 120.0
PRINT_EVERY = 100
TIMEOUT_S = 20.0
"""For the kernel to take down what a killed command left."""

SHARED_MEMORY = "/dev/shm"
REACHED = "0% dropped"
IS_UP = "switches are up"


class ResourceLeak(Exception):
    """A resource was left behind, or something else went wrong with a network or a job."""


def run_bench_leaks(starts: int) -> int:
    """Print how many networks came and went, and how long each way took. Exit status 1 if one left something."""
    require_root("python -m tools.bench leaks")
    with scratch_folder("leaks") as folder:
        return run_in_sandbox(lambda: _in_sandbox(starts, folder), "python -m tools.bench leaks")


def _in_sandbox(starts: int, folder: Path) -> int:
    os.environ["TMPDIR"] = str(folder)
    mount("tmpfs", SHARED_MEMORY, "tmpfs", MS_NOSUID | MS_NODEV)
    try:
        times_s = come_and_go(starts, folder, WAYS)
    except ResourceLeak as leak:
        print(leak, file=sys.stderr)
        return 1
    rows = [(way, len(each), statistics.median(each), max(each)) for way, each in times_s.items()]
    columns = (
        ("way", lambda row: row[0]),
        ("networks", lambda row: row[1]),
        ("median", lambda row: f"{row[2]:.2f} s"),
        ("most", lambda row: f"{row[3]:.2f} s"),
    )
    make_console().print(
        rows_table(f"{starts} networks, up and down; nothing is left", columns, rows, words=("way",))
    )
    return 0


def come_and_go(starts: int, folder: Path, ways: Mapping[str, Callable[[], None]]) -> dict[str, list[float]]:
    """Bring networks up and down, and return the seconds that each took, by way.

    Args:
        starts: The number of networks.
        folder: That of temporary files.
        ways: How networks come and go, in the order in which they alternate.

    Raises:
        ResourceLeak: After a round of all ways something is there that was not there after the first.
    """
    times_s: dict[str, list[float]] = {way: [] for way in ways}
    names = list(ways)
    before: Counter[str] | None = None
    for number in range(starts):
        way = names[number % len(names)]
        start_s = time.monotonic()
        ways[way]()
        times_s[way].append(time.monotonic() - start_s)
        if (number + 1) % PRINT_EVERY == 0:
            print(f"{number + 1} networks", flush=True)
        if way == names[-1]:
            now = held(folder)
            if before is not None and now != before:
                raise ResourceLeak(f"after {number + 1} networks: {_difference(before, now)}")
            before = before or now
    return times_s


def held(folder: Path) -> Counter[str]:
    """Return all resources in the sandbox, by what they are."""
    every = processes()
    networks, interfaces = networks_of(every)
    found = Counter({"networks": networks, "interfaces": interfaces})
    found.update(f"process {' '.join(each.command)}" for each in every if each.pid != os.getpid())
    (own,) = [each for each in every if each.pid == os.getpid()]
    found.update({"descriptors": own.descriptors, "threads": own.threads})
    mounted = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    found.update(f"mount {line.split()[4]}" for line in mounted)
    found.update(f"file {file}" for place in (folder, Path(SHARED_MEMORY)) for file in files_below(place))
    for kind in ("tcp", "tcp6", "udp", "udp6", "unix", "packet", "netlink"):
        found[f"sockets of {kind}"] = len(Path(f"/proc/self/net/{kind}").read_text().splitlines()) - 1
    return +found


def _difference(before: Counter[str], now: Counter[str]) -> str:
    more, fewer = now - before, before - now
    return "; ".join([f"{count} more: {what}" for what, count in more.items()] + [
        f"{count} fewer: {what}" for what, count in fewer.items()
    ])  # fmt: skip


def _up() -> subprocess.Popen[str]:
    return subprocess.Popen(
        own_program("gradbed", "up", "--topology", TOPOLOGY, "--rest-port", "0"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def by_prompt() -> None:
    """Bring a network up and down by its prompt; its hosts have to reach each other."""
    with _up() as command:
        said, _ = command.communicate("pingall\n", timeout=COMMAND_TIMEOUT_S)
    if command.returncode != 0 or REACHED not in said:
        raise ResourceLeak(f"gradbed up ended with status {command.returncode}:\n{said}")


def by_program() -> None:
    """Hold a network for a program; its switch has to have the table of routes."""
    order = {
        "values": {"topology": {"kind": TOPOLOGY}, "clock": "real"},
        "program": FORWARD.source,
        "entries": (),
        "macros": {},
        "seed": 1,
    }
    with open_session(order) as network:
        if not network.names("s1")["tables"]:
            raise ResourceLeak("the switch of a network for a program has no tables")


def by_kill() -> None:
    """Return when the kernel has taken all down."""
    before = len(processes())
    with _up() as command, _killed(command):
        assert command.stdout is not None
        if not any(IS_UP in line for line in command.stdout):
            raise ResourceLeak(f"gradbed up ended with status {command.wait()}")
    deadline_s = time.monotonic() + TIMEOUT_S
    while len(processes()) > before:
        if time.monotonic() > deadline_s:
            raise ResourceLeak(f"{TIMEOUT_S:g} s after SIGKILL processes of gradbed up are still there")
        time.sleep(0.02)


@contextmanager
def _killed(command: subprocess.Popen[str]) -> Iterator[None]:
    try:
        yield
    finally:
        command.kill()


WAYS: Mapping[str, Callable[[], None]] = {"killed": by_kill, "program": by_program, "prompt": by_prompt}
"""Each is followed by one that sweeps temporary files, but for the last, which leaves none."""
