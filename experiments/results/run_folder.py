"""Where a run leaves what it found: the folder results/NAME/STAMP/, its files, and the link results/NAME/latest."""

from __future__ import annotations

import atexit
import datetime
import fcntl
import json
import os
import platform
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import Any

from gradbed.common.caller import caller
from gradbed.common.errors import UserError
from gradbed.common.version import VERSION
from gradbed.controller.planning.plan import Plan
from gradbed.experiments.tables.files import replace_file
from gradbed.topo.graph import Topology

# ---- Files ----


CAPTURES = "pcap"
"""The folder of a trial's captures."""


@dataclass(frozen=True)
class TrialRecord:
    """Stored result of a trial (trials/DIGEST.json), and its place in the sweep (`at`)."""

    digest: str
    seed: int
    values: Mapping[str, Any]
    """Metrics, verdict and the other columns of the table of trials."""
    tables: Mapping[str, list[Mapping[str, Any]]]
    """Rows of further tables, by name."""
    decisions: Mapping[str, Any]
    """As of TrialResult."""
    failures: list[str]
    """What makes the trial worthless, a line each."""
    coordinates: Mapping[str, Any] = field(default_factory=dict)
    """Its values of the swept paths. Not stored, as the following fields: several places may share a record."""
    repetition: int = 0
    other_clock: bool = False
    """As of gradbed.experiments.study.definition.TrialSpec."""

    def at(self, coordinates: Mapping[str, Any], repetition: int, other_clock: bool = False) -> TrialRecord:
        """Return the record at a place in the sweep."""
        return replace(self, coordinates=coordinates, repetition=repetition, other_clock=other_clock)

    @classmethod
    def from_json(cls, text: str) -> TrialRecord:
        return cls(**json.loads(text))

    def to_json(self) -> str:
        """Return the stored form, without the place in the sweep."""
        return json.dumps({name: getattr(self, name) for name in STORED}, indent=1)

    @property
    def is_good(self) -> bool:
        """Return whether it need not run again."""
        return not self.failures and self.values["verdict"] != "invalid"

    @property
    def place(self) -> dict[str, Any]:
        """The columns that say where a row belongs."""
        return {
            "digest": self.digest,
            **self.coordinates,
            "repetition": self.repetition,
            "seed": self.seed,
        }

    @property
    def place_text(self) -> str:
        """Place in the sweep for people, such as "loss=0.01, seed 2: "; empty where nothing is swept."""
        if not self.coordinates:
            return ""
        parts = [f"{path.rsplit('.', 1)[-1]}={value}" for path, value in self.coordinates.items()]
        return f"{', '.join(parts)}, seed {self.seed}: "

    @property
    def row(self) -> dict[str, Any]:
        """Row of the trials table."""
        return {**self.place, **self.values}

    def table(self, name: str) -> list[dict[str, Any]]:
        # The place holds, whatever a system calls its columns.
        return [{**self.place, **row, **self.place} for row in self.tables.get(name, [])]


STORED = ("digest", "seed", "values", "tables", "decisions", "failures")
"""Fields of TrialRecord in its file."""


class RunFiles:
    """Reads and writes the trials of one run folder, and keeps those that it read or wrote."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._known: dict[str, TrialRecord] = {}
        self.trials = path / "trials"
        self.trials.mkdir(exist_ok=True)

    def folder(self, digest: str) -> Path:
        """A trial's own folder, made now."""
        path = self.trials / digest
        path.mkdir(exist_ok=True)
        return path

    def write(self, trial: TrialRecord) -> None:
        """Write a trial's files atomically, and on the disk when this returns: a run may be killed at any time."""
        target = self._file(trial.digest)
        scratch = target.with_suffix(".part")
        text = trial.to_json()
        with scratch.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        scratch.replace(target)
        # As it will be read: JSON has no tuples.
        self._known[trial.digest] = TrialRecord.from_json(text)

    def log(self, digest: str, details: str) -> None:
        """Why a trial broke."""
        logs = self.path / "logs"
        logs.mkdir(exist_ok=True)
        (logs / f"{digest}.log").write_text(details, encoding="utf-8")

    def captures(self) -> list[Path]:
        """The files of all trials, in order."""
        return sorted(self.trials.glob(f"*/{CAPTURES}/*"))

    def link_captures(self) -> None:
        """Let `pcap` beside the tables lead to the captures, if they are of one trial."""
        folders = {file.parent for file in self.captures()}
        if len(folders) == 1:
            link = self.path / CAPTURES
            link.unlink(missing_ok=True)
            link.symlink_to(folders.pop().relative_to(self.path))

    def read(self, digest: str) -> TrialRecord | None:
        """Return the stored result of a trial; None if it is not done."""
        if digest not in self._known:
            try:
                self._known[digest] = TrialRecord.from_json(self._file(digest).read_text(encoding="utf-8"))
            except FileNotFoundError:
                return None
        return self._known[digest]

    def _file(self, digest: str) -> Path:
        return self.trials / f"{digest}.json"


def find_run(output: Path, name: str, digests: set[str], quick: bool) -> Path | None:
    """The newest run of the study, small or full as asked for, that was to make any of these trials; but rather an
    older one with some of them done than one that has none."""
    parent = output / name
    found = []
    for folder in parent.iterdir() if parent.is_dir() else ():
        if folder.is_symlink():
            continue
        try:
            resolved = json.loads((folder / "study.json").read_text(encoding="utf-8"))
            made = {trial["digest"] for trial in resolved["trials"]}
            if resolved["quick"] == quick and made & digests:
                done = any((folder / "trials" / f"{digest}.json").exists() for digest in digests)
                found.append((done, folder.stat().st_mtime, folder.name, folder))
        except (OSError, ValueError, KeyError, TypeError):
            continue  # it holds no run of a study
    return max(found)[-1] if found else None


# ---- The folder ----


LIBRARIES = (
    "numpy",
    "scapy",
    "os-ken",
    "finsy",
    "grpcio",
    "protobuf",
    "networkx",
    "matplotlib",
    "scipy",
    "PyYAML",
    "pyarrow",
)


class RunFolder:
    """Folder of one run: configuration, raw rows, figures, logs.

    It is locked until `close`, so that two commands cannot write one run. `finish` marks the run as complete, and
    points the link `latest` to it. Under sudo it is owned by the user who called sudo.
    """

    def __init__(self, output: Path, name: str) -> None:
        parent = output / name
        try:
            missing = [folder for folder in (*reversed(output.parents), output, parent) if not folder.exists()]
            parent.mkdir(parents=True, exist_ok=True)
            path = _fresh_folder(parent, datetime.datetime.now().strftime("%Y%m%d-%H%M%S"))
            for folder in (*missing, path):
                _give_away(folder)
            self._open(path)
        except OSError as error:
            raise UserError(f"--output: cannot write results to {parent}: {error.strerror}") from None

    @classmethod
    def reopen(cls, path: Path) -> RunFolder:
        """A folder that is there already. UserError while another command works in it."""
        folder = cls.__new__(cls)
        folder._open(path)
        return folder

    def _open(self, path: Path) -> None:
        self.path = path
        self._lock = _locked(path)
        self.logs = path / "logs"
        self.logs.mkdir(exist_ok=True)
        atexit.register(self.close)

    def write_json(self, name: str, value: Any) -> Path:
        path = self.path / name
        replace_file(path, lambda scratch: scratch.write_text(json.dumps(value, indent=2, default=str) + "\n"))
        return path

    def finish(self) -> None:
        """The run is whole: `latest` names it from now on."""
        latest = self.path.parent / "latest"
        scratch = latest.with_name(f".latest-{os.getpid()}")
        scratch.unlink(missing_ok=True)
        scratch.symlink_to(self.path.name)
        _give_away(scratch)
        scratch.replace(latest)  # in one step: a reader meets either the former run or this one

    def close(self) -> None:
        """Unlock it, and give it to the caller. May be called again; the end of the process does, since figures may
        still be drawn into a run that is over."""
        _give_away(self.path)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _give_away(path: Path) -> None:
    """Change the owner to the user who called sudo, if any."""
    person = caller()
    if person is not None:
        person.own(path)


def _locked(path: Path) -> int | None:
    """A descriptor that holds the lock of a folder; None where the file system cannot lock (some of the shared ones).
    UserError if another process holds it."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise UserError(f"another gradbed works in {path}: wait for its end, or end it") from None
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def _fresh_folder(parent: Path, stamp: str) -> Path:
    # Two runs can start within one second.
    for attempt in range(1, 1000):
        path = parent / (stamp if attempt == 1 else f"{stamp}-{attempt}")
        try:
            path.mkdir()
        except FileExistsError:
            continue
        return path
    raise UserError(f"a thousand runs started at {stamp}: remove some from {parent}")


def environment() -> dict[str, Any]:
    """Command, versions and machine, for the record."""
    return {
        "command": shlex.join(["gradbed", *sys.argv[1:]]),
        "started": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
        "gradbed": VERSION,
        "revision": _revision(),
        "python": platform.python_version(),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "processors": len(os.sched_getaffinity(0)),
        "processor": processor_model(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "libraries": {name: _version(name) for name in LIBRARIES},
    }


def _revision() -> str | None:
    """Return the revision of the sources; None outside a clone, or without git."""
    if shutil.which("git") is None:
        return None
    command = ["git", "describe", "--always", "--dirty"]
    outcome = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    return outcome.stdout.strip() or None


def processor_model(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """Return the processor's model as the kernel names it, else the architecture."""
    for line in cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.machine()


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


# ---- trials/DIGEST/network.json: the network, and what its switches were to hold ----


NAME = "network.json"


@dataclass(frozen=True)
class NetworkFile:
    """topology: in emulated units (experiments/scale.py). stored_plans: as the file has them."""

    topology: Topology
    stored_plans: Sequence[Mapping[str, Any]] = ()

    @cached_property
    def plans(self) -> dict[str, Plan]:
        """Plans by phase, at the start of its agents.

        Raises:
            UserError: they are no plans.
        """
        return {
            phase: Plan.from_json(json.dumps(part["plan"])) for part in self.stored_plans for phase in part["phases"]
        }


def write_network(folder: Path, topology: Topology, plans: Mapping[str, Plan]) -> None:
    """Into a trial's folder. Phases with the same plan share it: a plan is a list of phases and what they hold."""
    shared: list[tuple[list[str], Plan]] = []
    for phase, plan in plans.items():
        names = next((names for names, known in shared if known == plan), None)
        if names is None:
            shared.append(([phase], plan))
        else:
            names.append(phase)
    parts = ",".join(
        f'{{"phases": {json.dumps(names)}, "plan": {plan.model_dump_json(exclude_defaults=True)}}}'
        for names, plan in shared
    )
    (folder / NAME).write_text(f'{{"topology": {topology.to_json()}, "plans": [{parts}]}}\n', encoding="utf-8")


def read_network(folder: Path) -> NetworkFile | None:
    """Return the network that a trial stored; None if it was computed, ran on another machine, or is of an older
    version.
    """
    try:
        found = json.loads((folder / NAME).read_text(encoding="utf-8"))
        return NetworkFile(Topology.from_json(json.dumps(found["topology"])), found["plans"])
    except (OSError, ValueError, KeyError, TypeError, UserError):
        return None
