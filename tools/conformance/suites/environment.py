"""The environment of another repository's tests: stand-ins for p4c and BMv2 in PATH, private files, virtual links.

Each run has a sandbox (gradbed.common.sandbox), with its own network, processes and mounts. Tests of others write
into their checkout, fill and clean /tmp, and end processes by name: none of that reaches the machine or the next run.
"""

from __future__ import annotations

import os
import pickle
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gradbed.common.errors import UserError
from gradbed.common.namespaces import mount
from gradbed.common.sandbox import run_in_sandbox
from gradbed.emulation.veth import VethPair, create_pairs
from gradbed.switch.shims import write_shims
from tools.conformance.suites.result import SuiteResult

SUPPORT = Path(__file__).parent / "support"
"""Modules for the Python that runs the tests, which knows nothing of gradbed."""

PORTS = 9
"""As many as p4-guide's own script makes: port N of the switch is veth2N, the test's end is veth2N+1."""

WHAT = "python -m tools.conformance with the tests of another repository"

SLEEP_FACTOR = 3
"""How many times as long scripts of others sleep."""

SCRATCH = Path("/var/tmp")
"""The folder of the mount points: not /tmp, which is covered."""

_GROUP = 1
_MTU_BYTES = 9500


class Stopped(Exception):
    """The job ended without results, with this exit status; it has said why."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


@dataclass(frozen=True)
class Ended:
    """The output of a command, and its exit status; None if it took too long."""

    output: str
    status: int | None


@dataclass(frozen=True)
class SuiteEnvironment:
    """Where the tests of a checkout run."""

    folder: Path
    """The checkout, which tests may write to."""
    python: Path
    """Has the modules that the tests import."""
    scratch: Path
    """For files of gradbed."""
    environment: Mapping[str, str] = field(repr=False)

    def run(
        self, command: Sequence[str], *, cwd: Path, time_limit_s: float, more: Mapping[str, str] | None = None
    ) -> Ended:
        """Run a command to its end.

        Args:
            command: The program and its arguments.
            cwd: Where it runs.
            time_limit_s: After this time it is killed with the sandbox.
            more: Environment variables for this command.
        """
        log = self.scratch / "output.txt"
        with log.open("wb") as output:
            process = self.start(command, cwd=cwd, output=output.fileno(), more=more)
            try:
                status: int | None = process.wait(time_limit_s)
            except subprocess.TimeoutExpired:
                status = None
        return Ended(log.read_text(encoding="utf-8", errors="replace"), status)

    def start(
        self,
        command: Sequence[str],
        *,
        cwd: Path,
        output: int = subprocess.DEVNULL,
        more: Mapping[str, str] | None = None,
    ) -> subprocess.Popen[bytes]:
        """Start a command; what it has left when the sandbox ends is killed with that."""
        return subprocess.Popen(
            command,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**self.environment, **(more or {})},
        )

    def add_file(self, path: Path, text: str) -> None:
        """Write a file outside of the checkout that only this environment sees."""
        existing = next(folder for folder in path.parents if folder.is_dir())
        _make_private(existing, self.scratch)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def in_environment(
    folder: Path,
    python: Path,
    job: Callable[[SuiteEnvironment], list[SuiteResult]],
    *,
    bmv2_arbitration: bool = False,
) -> list[SuiteResult]:
    """Run a job in a sandbox of its own, in a fresh environment, and return its results."""
    with (
        tempfile.TemporaryFile() as results,
        tempfile.TemporaryDirectory(prefix="gradbed-suite-", dir=SCRATCH) as scratch,
    ):

        def inside() -> int:
            pickle.dump(job(_make_environment(folder, python, Path(scratch), bmv2_arbitration)), results)
            results.flush()
            return 0

        status = run_in_sandbox(inside, WHAT)
        results.seek(0)
        if status:
            raise Stopped(status)
        made: list[SuiteResult] = pickle.load(results)
        return made


def check_python(python: Path, modules: Sequence[str], what: str) -> None:
    """Raise UserError unless this Python can import the modules."""
    script = "import importlib.util as u, sys\nfor name in sys.argv[1:]:\n  try: found = u.find_spec(name)\n"
    script += "  except ImportError: found = None\n  if not found: print(name)"
    try:
        ended = subprocess.run([python, "-c", script, *modules], capture_output=True, text=True, check=False)
    except OSError as error:
        raise UserError(f"--python: cannot run {python}: {error.strerror}") from None
    if ended.returncode:
        raise UserError(f"--python: {python} is no Python 3")
    missing = ended.stdout.split()
    if missing:
        raise UserError(
            f"the tests of {what} import {', '.join(missing)}, which {python} does not have: "
            "name one that does with --python"
        )


def _make_environment(folder: Path, python: Path, scratch: Path, bmv2_arbitration: bool) -> SuiteEnvironment:
    mount("tmpfs", str(scratch), "tmpfs", 0)
    temporary = Path("/tmp")
    _make_private(temporary, scratch)
    if not folder.is_relative_to(temporary):
        _make_private(folder, scratch)
    programs = scratch / "bin"
    programs.mkdir()
    # What the tests import must not stand in for what our stand-ins import.
    for shim in write_shims(scratch / "shims", bmv2_arbitration):
        _write_program(programs / shim.name, f'exec env -u PYTHONPATH {shim} "$@"')
    # Scripts of others ask for sudo, which would set PATH anew.
    _write_program(programs / "sudo", 'exec env "$@"')
    # They give a switch two seconds to start; our stand-ins need as long on a busy machine.
    _write_program(programs / "sleep", f'exec {shutil.which("sleep")} "$(expr "$1" \\* {SLEEP_FACTOR})"')
    _write_program(programs / "python3", f'exec {shlex.quote(str(python))} "$@"')
    pairs = (
        VethPair(f"veth{2 * n}", f"02:00:00:00:{n:02x}:00", f"veth{2 * n + 1}", f"02:00:00:00:{n:02x}:01")
        for n in range(PORTS)
    )
    create_pairs(pairs, _GROUP, _MTU_BYTES)
    # Some ask for a way out, to learn an address of their own.
    create_pairs([VethPair("out", "02:00:00:00:ff:00", "out-peer", "02:00:00:00:ff:01")], _GROUP)
    for command in ("address add 192.0.2.1/24 dev out", "route add default via 192.0.2.2"):
        subprocess.run(["ip", *command.split()], check=True)
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "GRADBED_"))}
    path = os.pathsep.join((str(programs), str(python.parent), os.environ.get("PATH", os.defpath)))
    environment = {**inherited, "PATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    return SuiteEnvironment(folder, python, scratch, environment)


def _make_private(folder: Path, scratch: Path) -> None:
    """Keep what is written below a folder from now on within this sandbox, with which it goes."""
    name = f"private{len(list(scratch.iterdir()))}"
    upper, work = scratch / name / "upper", scratch / name / "work"
    upper.mkdir(parents=True)
    work.mkdir()
    upper.chmod(folder.stat().st_mode & 0o7777)
    try:
        mount("overlay", str(folder), "overlay", 0, f"lowerdir={folder},upperdir={upper},workdir={work}")
    except OSError as error:
        raise UserError(f"cannot lay a private copy over {folder}: overlayfs: {error.strerror}") from None


def _write_program(path: Path, line: str) -> None:
    path.write_text(f"#!/bin/sh\n{line}\n", encoding="utf-8")
    path.chmod(0o755)
