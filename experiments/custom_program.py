"""Users' own programs on a network: what each switch runs, what fills its tables, and reloading when files change.

The tables are filled by entries or by a controller of the user's own."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Protocol

from pydantic import Field

from gradbed.common.errors import UserError
from gradbed.common.modules import COMMAND
from gradbed.controller.entries.commands import not_applied
from gradbed.controller.entries.document import EntriesError
from gradbed.controller.entries.planner import EntriesPlanner, EntriesSettings
from gradbed.controller.planning.routing import shortest_routes
from gradbed.experiments.configuration.sections import (
    AddressedTopologySection,
    Section,
    SwitchProgramsSection,
    option,
)
from gradbed.experiments.configuration.trial import TrialConfiguration
from gradbed.experiments.phases import Trial
from gradbed.experiments.programs import OURS, Program
from gradbed.experiments.setup import NetworkSetup, TrialTask
from gradbed.experiments.system import SwitchCapabilities, System
from gradbed.experiments.tables.metric import Metric
from gradbed.topo.files import TopologyFile, topology_file
from gradbed.topo.graph import Topology

if TYPE_CHECKING:
    from gradbed.experiments.runtimes.real import RealRuntime


SERVICE = "gradbed.controller.entries.planner:EntriesService"
"""Service of systems whose switches run users' programs."""

WHICH_PROGRAM = "which program? name a P4 file"
_BESIDE = "entries.yaml"
SUFFIXES = (".yaml", ".yml", ".json", ".py", ".txt")


class CustomSwitchesSection(Section):
    """Links between the switches that run the program."""

    links: Literal["memory", "veth"] = option("memory", "Between switches: memory, or veth to capture on.")


class CustomProgramConfiguration(TrialConfiguration):
    """Configuration of a network whose switches run a user's program."""

    topology: AddressedTopologySection = Field(default_factory=AddressedTopologySection)
    switches: CustomSwitchesSection = CustomSwitchesSection()


@dataclass(frozen=True)
class CustomProgram:
    """Custom program of `gradbed up`, and the files that fill its tables."""

    program: Path | None
    """P4 file of every switch; None: those that the topology's file names."""
    entries: tuple[Path, ...] = ()
    """Files with table entries for all switches."""
    watch: bool = False
    """Whether files are loaded again when they change."""
    controller: str | None = None
    """Command of a controller that takes over; "none": the user starts one; None: gradbed's stays."""
    macros: Mapping[str, str] = field(default_factory=dict)
    """Macros to compile the program with."""


class CustomProgramSystem(System[CustomProgramConfiguration]):
    """A network without jobs, whose switches run a user's program."""

    name = "program"
    configuration = CustomProgramConfiguration
    service = SERVICE
    metrics: Mapping[str, Metric] = {}
    switches = SwitchCapabilities(
        run_topology_programs=True,
    )

    def __init__(self, given: CustomProgram) -> None:
        self.given = given

    def trial(self, task: TrialTask[CustomProgramConfiguration]) -> Trial[CustomProgramConfiguration]:
        raise UserError(f"a program of your own runs with {COMMAND} run workload")

    def network(self, task: TrialTask[CustomProgramConfiguration], skip_invalid: bool = False) -> NetworkSetup:
        configuration = task.configuration
        setup = custom_network(
            configuration.topology.build(task.scale),
            self.given.program,
            self.given.entries,
            file=topology_file(configuration.topology.kind),
            macros=self.given.macros,
            by=configuration.program,
            links=configuration.switches.links,
            skip_invalid=skip_invalid,
        )
        return replace(setup, hand_over=self.given.controller is not None)

    def entries_files(self, setup: NetworkSetup) -> set[Path]:
        """Return the files that entries come from, or may come from once they exist."""
        assert isinstance(setup.settings, EntriesSettings)
        found = {*setup.settings.files, *setup.settings.switch_files.values()}
        sources = {each.source for each in setup.switches.values() if isinstance(each, Program)}
        if not self.given.entries and not setup.settings.switch_files and len(sources) == 1:
            found.add(sources.pop().with_name(_BESIDE))
        return found

    def calibration(self, rate_mbps: float, seconds: float) -> CustomProgramConfiguration:
        raise UserError("a machine is calibrated with gradbed's own programs")

    def at_prompt(
        self, runtime: RealRuntime, task: TrialTask[CustomProgramConfiguration]
    ) -> AbstractContextManager[object]:
        if self.given.controller is not None:
            return outside_controller(runtime, self.given.controller)
        if self.given.watch:
            return ProgramWatch(self, runtime, task)
        return nullcontext()


def entries_of(program: Path | None) -> tuple[Path, ...]:
    """Return the default entries of a program: entries.yaml in its folder, as `gradbed new` makes it."""
    beside = None if program is None else program.with_name(_BESIDE)
    return (beside,) if beside is not None and beside.is_file() else ()


def custom_network(
    topology: Topology,
    program: Path | None,
    entries: Sequence[Path] = (),
    *,
    file: TopologyFile | None = None,
    macros: Mapping[str, str] | None = None,
    by: SwitchProgramsSection = OURS,
    links: Literal["memory", "veth"] = "memory",
    skip_invalid: bool = False,
) -> NetworkSetup:
    """Return the network with the program on every switch, compiled, and its entries checked.

    Args:
        entries: for all switches; none: those that the topology's file names, else those beside the program.
        file: contents of the topology's file: its program is taken where none is given, and switches may have others.
        skip_invalid: leave out entries that do not fit.

    Raises:
        UserError: the program or its entries have errors, as a rule with FILE:LINE:COLUMN.
    """
    programs = _programs(topology, program, file, macros or {})
    sources = {each.source for each in programs.values()}
    if not entries and not (file is not None and file.entries) and (program is not None or len(sources) == 1):
        entries = entries_of(program or next(iter(sources)))
    settings = entries_settings(programs, entries, file, by, skip_invalid)
    EntriesPlanner(settings).plan(topology, shortest_routes(topology))
    commands = sorted({file for file in (*settings.files, *settings.switch_files.values()) if file.suffix == ".txt"})
    return NetworkSetup(
        topology, programs, settings, links=links, notes=[note for file in commands for note in not_applied(file)]
    )


def entries_settings(
    programs: Mapping[str, Program],
    entries: Sequence[Path],
    file: TopologyFile | None = None,
    by: SwitchProgramsSection = OURS,
    skip_invalid: bool = False,
) -> EntriesSettings:
    """Return the settings of the service; compiles the programs.

    Args:
        programs: program of each switch.
    """
    for path in entries:
        if path.suffix not in SUFFIXES:
            raise UserError(f"{path}: entries are {', '.join(SUFFIXES)}")
    return EntriesSettings(
        programs={each.name: each.compiled(by).p4info for each in programs.values()},
        switches={switch: each.name for switch, each in programs.items()},
        files=tuple(path.resolve() for path in entries),
        switch_files=dict(file.entries) if file is not None and not entries else {},
        skip_invalid=skip_invalid,
    )


def _programs(
    topology: Topology, program: Path | None, file: TopologyFile | None, macros: Mapping[str, str]
) -> dict[str, Program]:
    """Return the program of every switch; two sources of the same name get different program names."""
    if program is not None and not program.is_file():
        raise UserError(f"cannot read {program}: there is no such file")
    if file is not None:
        sources = file.sources(program)
    elif program is not None:
        sources = {each.name: program for each in topology.switches}
    else:
        raise UserError(WHICH_PROGRAM)
    made: dict[Path, Program] = {}
    for source in sources.values():
        path = source.resolve()
        if path not in made:
            taken = {each.name for each in made.values()}
            name = path.stem if path.stem not in taken else f"{path.stem}_{len(made)}"
            made[path] = Program(name, path, macros, routed=False)
    return {switch: made[source.resolve()] for switch, source in sources.items()}


# ---- A controller of the user's own ----


TARGETS, TOPOLOGY = "GRADBED_TARGETS", "GRADBED_TOPOLOGY"
"""Environment variables of a user's controller.

JSON with address, device_id, p4info and json of each switch; path of the topology as JSON.
"""

NOBODY = "none"
STOP_TIMEOUT_S = 3.0


@contextlib.contextmanager
def outside_controller(runtime: RealRuntime, command: str) -> Iterator[None]:
    """Run a user's controller.

    Print where the switches are, put it into the environment, and run the command until the context is left; "none"
    runs nothing.

    Raises:
        UserError: the command cannot be started.
    """
    targets = runtime.targets()
    topology = runtime.folder / "topology.json"
    topology.write_text(runtime.topology.to_json())
    os.environ.update({TARGETS: json.dumps(targets), TOPOLOGY: str(topology)})
    for name, target in targets.items():
        print(f"gradbed: {name}: P4Runtime at {target['address']}, device id {target['device_id']}", file=sys.stderr)
    print(f"gradbed: the same is in {TARGETS} and {TOPOLOGY}, also for 'sh' at the prompt", file=sys.stderr)
    if command == NOBODY:
        yield
        return
    try:
        process = subprocess.Popen(shlex.split(command), stdin=subprocess.DEVNULL)
    except (OSError, ValueError) as error:
        raise UserError(f"--controller {command}: {error}") from None
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


# ---- Loading again what has changed ----


LOOK_EVERY_S = 0.25


class Reloadable(Protocol):
    """A system whose files are watched: gradbed.experiments.custom_program.CustomProgramSystem."""

    def network(self, task: TrialTask[Any], skip_invalid: bool = False) -> NetworkSetup:
        """Return the network; with skip_invalid, entries that do not fit are left out."""

    def entries_files(self, setup: NetworkSetup) -> set[Path]: ...


class ProgramWatch:
    """A context manager that reloads the network when files change, on a thread of its own.

    A program that does not compile, or a network that does not accept it, is reported in one line, and the running
    one stays; entries that no longer fit are reported and left out.
    """

    def __init__(self, system: Reloadable, runtime: RealRuntime, task: TrialTask[Any]) -> None:
        self._system = system
        self._runtime = runtime
        self._task = task
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="program watch", daemon=True)

    def __enter__(self) -> ProgramWatch:
        self._files = self._state(self._system.network(self._task))
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        seen = self._files
        while not self._ended.wait(LOOK_EVERY_S):
            before, seen = seen, {path: _changed_at(path) for path in self._files}
            # What is the same twice is written to its end.
            if seen == before and seen != self._files:
                self._files = seen
                self._reload()

    def _reload(self) -> None:
        try:
            setup = self._fitting()
            self._runtime.reload(setup)
        except UserError as error:
            _tell(f"{error.prefix}{error}")
            return
        except Exception as error:
            # Such as a controller that is gone. This thread has no caller to raise to; the next change may succeed.
            _tell(f"gradbed: not reloaded: {str(error).partition(chr(10))[0]}")
            return
        # What has changed since it was seen is another change.
        self._files = {path: self._files.get(path, now) for path, now in self._state(setup).items()}
        _tell("gradbed: reloaded")

    def _fitting(self) -> NetworkSetup:
        try:
            return self._system.network(self._task)
        except EntriesError as error:
            setup = self._system.network(self._task, skip_invalid=True)
            _tell(f"{error} (left out)")
            return setup

    def _state(self, setup: NetworkSetup) -> dict[Path, int]:
        """Return all files that matter, and when they were changed."""
        from gradbed.switch.compiler import input_files

        files = self._system.entries_files(setup)
        for program in setup.switches.values():
            if isinstance(program, Program):
                files |= {file.path for file in input_files(program.source, defines=program.macros)}
        return {path: _changed_at(path) for path in files}


def _changed_at(path: Path) -> int:
    """Return the time of the last change; 0 if the file does not exist, as for a moment while an editor writes it."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
