"""Studies: what is varied, what is measured at each trial, and how often."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradbed.common.errors import UserError
from gradbed.programs import Program, as_program
from gradbed.topologies import Topology

if TYPE_CHECKING:
    from gradbed.experiments.study.definition import Study as LoadedStudy
    from gradbed.results import Results


class Study:
    """A sweep of experiments.

    The sections are those of a study in YAML (docs/experiments.md). Errors are raised when the study is made, not
    while it runs.

    Args:
        system: What is run: "workload" (a P4 program of one's own under traffic), "aggregation", "ndn", "shuffle",
            "compression", "interconnect"; or an installed one.
        topology: The network; a `Topology`, or what `--topology` takes.
        program: The P4 program of the system workload; a `Program`, or a path.
        sweep: Values by dotted path, {"traffic.load": [0.2, 0.8]}: every combination is a trial. A topology may be a
            value of "topology".
        zip: Values by dotted path that go in step with each other, as one axis more.
        repetitions: Of each trial in which anything is random, with the seeds 1, 2, ...
        clock: "virtual" (exact, any user) or "real" (Mininet, as root); None: the system's own default.
        name: The results' folder; None: the system's name.
        settings: Single values by dotted path, {"traffic.load": 0.5}.
        **sections: All else that a study in YAML can have: traffic={"load": 0.5}, metrics=[...], goals={...}, seeds.

    Raises:
        UserError: Something is wrong, in one line that says what.

    Example:
        >>> import gradbed as gb
        >>> study = gb.Study(topology=gb.leaf_spine(2, 2, 4), program="my.p4", sweep={"traffic.load": [0.2, 0.8]})
        >>> results = study.run()
        >>> results.frame.groupby("traffic.load")["p99_us"].mean()
    """

    def __init__(
        self,
        system: str = "workload",
        *,
        topology: Topology | str | Path | None = None,
        program: Program | str | Path | None = None,
        sweep: Mapping[str, Sequence[Any]] | None = None,
        zip: Mapping[str, Sequence[Any]] | None = None,
        repetitions: int = 1,
        clock: str | None = None,
        name: str | None = None,
        settings: Mapping[str, Any] | None = None,
        **sections: Any,
    ) -> None:
        from gradbed.experiments.study.loading import study_of
        from gradbed.experiments.study.yaml_text import GivenValues

        data: dict[str, Any] = {"name": name or system, "system": system, "repetitions": repetitions, **sections}
        if clock is not None:
            data["clock"] = clock
        if topology is not None:
            data["topology"] = _section(topology, sections.get("topology"))
        if program is not None:
            if system != "workload":
                raise UserError(f"the system {system} has programs of its own: program goes with workload")
            data["program"] = {**as_program(program).section, **(sections.get("program") or {})}
        for path, value in (settings or {}).items():
            _set(data, path, value)
        data["sweep"] = {"product": _axes(sweep), "zip": _axes(zip)}
        here = Path.cwd() / "study.py"
        self._loaded = study_of(GivenValues(here, _plain(data), {}))

    @classmethod
    def from_file(cls, path: str | Path, *, quick: bool = False, clock: str | None = None) -> Study:
        """Load a study in YAML, or its quick form. UserError with FILE:LINE.

        Args:
            path: The study's file.
            quick: Whether to take its quick section.
            clock: "virtual" or "real", instead of its own.
        """
        from gradbed.experiments.study.loading import load_study

        study = cls.__new__(cls)
        study._loaded = load_study(Path(path), quick, clock)
        return study

    @property
    def name(self) -> str:
        """The name of the results' folder."""
        return self._loaded.name

    def __len__(self) -> int:
        """Return the number of trials, each repetition counted."""
        return len(self._loaded.trials)

    def __repr__(self) -> str:
        return f"<Study {self.name} of {self._loaded.head.system}: {len(self)} trials>"

    def run(
        self,
        output: str | Path = "results",
        *,
        resume: bool = False,
        jobs: int | None = None,
        scheduler: str | None = None,
        scale: float | None = None,
    ) -> Results:
        """Run all trials, and return what they found. Each is stored in the run's folder as soon as it is done.

        Args:
            output: The folder of results; the run gets OUTPUT/NAME/STAMP.
            resume: Go on with the newest run of the same trials, if there is one.
            jobs: Trials side by side on the virtual clock; None: as many as there are processors.
            scheduler: The address of a Dask scheduler whose workers run the trials; "local": of this machine.
            scale: On the real clock, run links at so much of their rate; None: as this machine is calibrated.

        Raises:
            UserError: Nothing can run. Trials that break alone are in `Results.broken`.
            KeyboardInterrupt: After Ctrl-C; what was done is kept, and resume=True goes on.
        """
        from gradbed.experiments.study.command import run_study
        from gradbed.experiments.study.running.executors import RunOptions

        if self._loaded.needs_network and threading.active_count() > 1:
            raise UserError(
                "trials on the real clock start from a process without threads: run the study in a script, "
                "not in a notebook, or with clock='virtual'"
            )
        from gradbed.results import Results

        run = run_study(self._loaded, RunOptions(Path(output), resume, scale, jobs, scheduler))
        if run.interrupted:
            raise KeyboardInterrupt
        return Results(run.folder, broken=run.broken, study=self._loaded)


def run(system: str = "workload", **options: Any) -> Results:
    """Run one trial, or a sweep, at once: `Study(...).run()`, with the arguments of both.

    Example:
        >>> gb.run("aggregation", topology=gb.fat_tree(4), clock="virtual").frame
    """
    of_run = {
        name: options.pop(name) for name in ("output", "resume", "jobs", "scheduler", "scale") if name in options
    }
    return Study(system, **options).run(**of_run)


def systems() -> list[str]:
    """Return the systems that can be run, by name."""
    from gradbed.experiments.systems import systems as known

    return list(known())


def loaded(study: Study) -> LoadedStudy:
    """Return the study as the experiments package loads it."""
    return study._loaded


def _section(topology: Topology | str | Path, more: Mapping[str, Any] | None) -> dict[str, Any]:
    if isinstance(topology, Topology):
        return {**topology.section, **(more or {})}
    return {"kind": str(topology), **(more or {})}


def _axes(sweep: Mapping[str, Sequence[Any]] | None) -> dict[str, Any]:
    """Return the axes of the sweep; a swept topology is named by its kind, as in results."""
    found: dict[str, Any] = {}
    for path, values in (sweep or {}).items():
        if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__"):
            raise UserError(f"sweep.{path}: a list of values is expected, got {values!r}")
        listed = list(values)
        if any(isinstance(value, Topology) for value in listed):
            if any(not isinstance(value, Topology) or value.link or value.tiers for value in listed):
                raise UserError(f"sweep.{path}: topologies with links of their own are studies of their own")
            path, listed = "topology.kind", [value.kind for value in listed]
        found[path] = listed
    return found


def _set(data: dict[str, Any], path: str, value: Any) -> None:
    *above, last = path.split(".")
    for part in above:
        inner = data.get(part)
        data[part] = dict(inner) if isinstance(inner, Mapping) else {}
        data = data[part]
    data[last] = value


def _plain(value: Any) -> Any:
    """Return a value as YAML has it: NumPy's numbers are numbers, tuples are lists, paths are texts."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, range)):
        return [_plain(item) for item in value]
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    return value
