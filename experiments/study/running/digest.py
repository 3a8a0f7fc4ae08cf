"""Digest of a trial: of all that its results depend on.

These are its configuration, the files and plug-ins that this names, and the program's own text. Workers of Dask run
trials only if their program has the same digest (version check).
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.util
import json
import sys
from pathlib import Path
from typing import Any, get_args

from gradbed.common.errors import UserError, unforeseen
from gradbed.common.plugins import Group, plugins
from gradbed.common.version import VERSION
from gradbed.experiments.configuration.trial import TrialConfiguration
from gradbed.experiments.scale import Scale
from gradbed.experiments.study.definition import TrialSpec
from gradbed.experiments.systems import systems

# ---- The source code ----


ROOT = Path(__file__).resolve().parents[3]

PACKAGES = ("common", "controller", "emulation", "experiments", "formats", "hosts", "p4src", "switch", "topo")
SUFFIXES = (".py", ".c", ".h", ".p4")

STILL_PART = ("experiments/study/running/worker.py",)
"""Makes the rows of a trial."""

NOT_PART = (
    "experiments/plotting",
    "experiments/results",
    "experiments/study",
    *(path.relative_to(ROOT).as_posix() for path in ROOT.glob("experiments/systems/*/figures.py")),
    "switch/stf",
    "switch/shims",
)
"""How results are drawn, measured otherwise or asked for does not change what a trial finds."""


@functools.cache
def source_digest(system: str) -> str:
    """Return the SHA-256 of all sources that a trial of a system may run, names and contents: those of this tree, and
    the whole package of a system outside it.
    """
    digest = hashlib.sha256()
    for folder in (*(ROOT / package for package in PACKAGES), *_outside(system)):
        for path in _sources(folder):
            name = path.relative_to(folder.parent).as_posix()
            if name in STILL_PART or not name.startswith(NOT_PART):
                digest.update(name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:20]


def _outside(system: str) -> list[Path]:
    return _places(systems()[system])


def _places(location: str) -> list[Path]:
    """Return the top-level package, or the module, that "module:attribute" is in.

    None of this tree is among them, and none that is not there.
    """
    try:
        spec = importlib.util.find_spec(location.partition(":")[0].partition(".")[0])
    except (ImportError, ValueError):
        return []
    if spec is None:
        return []
    places = spec.submodule_search_locations or ([spec.origin] if spec.has_location and spec.origin else [])
    return [path for path in (Path(place).resolve() for place in places) if not path.is_relative_to(ROOT)]


def _sources(place: Path) -> list[Path]:
    """Return the sources in a folder, in order, or a source itself."""
    return sorted(path for path in (place, *place.rglob("*")) if path.suffix in SUFFIXES and path.is_file())


@functools.cache
def package_digest(location: str) -> str:
    """Return the SHA-256 of the sources of the package that "module:attribute" is in."""
    digest = hashlib.sha256()
    for place in _places(location):
        for path in _sources(place):
            digest.update(path.relative_to(place.parent).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:20]


def _plugins(configuration: Any) -> dict[str, str]:
    """Return the digests of the packages whose plug-ins a configuration may name, by group and name.

    Args:
        configuration: JSON values. A text that has a plug-in's name in it counts, as "ring:4" has a topology's.
    """
    text = json.dumps(configuration)
    return {
        f"{group} {name}": package_digest(location)
        for group in get_args(Group)
        if group != "systems"
        for name, location in plugins(group).items()
        if name in text
    }


def sweep_digest(system: str) -> str:
    """Return the digest of what machines that share a sweep must have in common: the code of trials and of their
    bundles.
    """
    digest = hashlib.sha256(source_digest(system).encode())
    for path in (*sorted(Path(__file__).parent.glob("*.py")), ROOT / "experiments/results/run_folder.py"):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


# ---- A trial ----


DIGEST_CHARACTERS = 20


def identity(system: str, trial: TrialSpec, scale: Scale) -> dict[str, Any]:
    """Return all that a trial's results depend on, as plain JSON values.

    The configuration is resolved, with every default, and what does not matter set to one value. Files and plug-ins
    that it names count by what is in them.
    """
    configuration = trial.configuration.canonical().model_dump(mode="json")
    return {
        "system": system,
        "configuration": configuration,
        "files": _files(trial.configuration),
        "seed": trial.seed,
        "scale_factor": scale.factor,
        "sources": source_digest(system),
        "plugins": _plugins(configuration),
    }


def _files(configuration: TrialConfiguration) -> dict[str, str]:
    """Return contents by path; files that cannot be read are left to the trial, which reports them."""
    found = {}
    with contextlib.suppress(UserError):
        for path in configuration.files():
            with contextlib.suppress(OSError):
                state = path.stat()
                found[str(path)] = _digest_of_file(path, state.st_mtime_ns, state.st_size)
    return found


@functools.cache
def _digest_of_file(path: Path, _mtime_ns: int, _size: int) -> str:
    found = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            found.update(block)
    return found.hexdigest()


def digest(identified: Any) -> str:
    """Return a digest that is equal for equal JSON values, however they were written down."""
    text = json.dumps(identified, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:DIGEST_CHARACTERS]


# ---- Version check of Dask workers ----


PREFIX = "gradbed-"
"""Prefix of the resource that an admitted worker has: one, so that it runs one trial at a time."""


class VersionCheck:
    """Asks each new worker of a scheduler what program it holds.

    A worker with the same program gets a resource named for the version, without which Dask gives it no trial; any
    other one is reported in one line.
    """

    def __init__(self, client: Any, system: str) -> None:
        self._client = client
        self._system = system
        self._digest = sweep_digest(system)
        self.resource = PREFIX + self._digest
        self._refused: dict[str, str] = {}
        self._has_reported_waiting = False

    def admitted(self) -> int:
        """Check the workers that have come, and return how many are admitted now.

        Raises:
            UserError: There are workers, and there never was one with this program.
        """
        workers = self._client.sync(self._client.scheduler.identity)["workers"]
        self._refused = {address: why for address, why in self._refused.items() if address in workers}
        admitted = {address for address, worker in workers.items() if self.resource in (worker["resources"] or {})}
        if new := [address for address in workers if address not in admitted and address not in self._refused]:
            admitted |= self._check(new)
        if not admitted:
            self._report_none(list(workers))
        self._has_reported_waiting = self._has_reported_waiting or bool(admitted)
        return len(admitted)

    def _check(self, addresses: list[str]) -> set[str]:
        """Return those of the workers that are admitted."""
        _register_by_value()
        answers = self._client.run(
            admit,
            sweep_digest.__module__,
            self._system,
            self._digest,
            self.resource,
            workers=addresses,
            on_error="return",
        )
        for address, answer in answers.items():
            if answer is not None:
                self._refused[address] = str(answer)
                _report(f"the worker at {address} gets no trials: {answer}; here is {VERSION}, {self._digest}")
        return {address for address, answer in answers.items() if answer is None}

    def _report_none(self, workers: list[str]) -> None:
        if workers and not self._has_reported_waiting:
            raise UserError(
                f"--scheduler: none of its {len(workers)} workers has this version of gradbed: "
                f"{self._refused[workers[0]]}; here is {VERSION}, {self._digest}"
            )
        if not self._has_reported_waiting:
            self._has_reported_waiting = True
            _report("the scheduler has no worker yet: waiting for one")


async def admit(module: str, system: str, digest: str, resource: str, dask_worker: Any = None) -> str | None:
    """Admit the worker on which this runs, or return in words why it does not fit.

    The worker may have another version of this program, or none: this function travels as code, not as a name, and so
    can use nothing of its module.
    """
    import importlib
    import platform

    try:
        found = importlib.import_module(module).sweep_digest(system)
        version = importlib.import_module(
            module.replace("gradbed.experiments.study.running.digest", "gradbed.common.version")
        )
    except Exception as error:
        python = platform.python_version()
        return f"it has no gradbed, or an older one ({unforeseen(error)}; Python {python})"
    if found != digest:
        return f"it has another version of gradbed ({version.VERSION}, {found})"
    await dask_worker.set_resources(**{resource: 1})
    return None


def _register_by_value() -> None:
    import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])


def _report(text: str) -> None:
    print(f"gradbed: {text}", file=sys.stderr, flush=True)
