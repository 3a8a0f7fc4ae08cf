"""A system: its configuration and metrics, how a trial of it runs, and what is reported.

A system consists of packages of its own (docs/architecture.md, "A system"). Here it says what the network of a trial
is, which jobs run on it and by which agents, and what the counts mean; experiments/engine/trial.py does everything
else.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic

from gradbed.common.errors import UserError
from gradbed.common.modules import COMMAND
from gradbed.controller.entries.planner import EntriesSettings
from gradbed.experiments.configuration.trial import Configuration, Shorthands
from gradbed.experiments.phases import Trial
from gradbed.experiments.programs import P4_SOURCES, Program
from gradbed.experiments.setup import FabricProgram, NetworkSetup, SwitchCollectives, TrialTask
from gradbed.experiments.tables.metric import Metric, metric_table
from gradbed.topo.files import TopologyFile
from gradbed.topo.graph import Topology

if TYPE_CHECKING:
    from rich.console import Console

    from gradbed.experiments.results.study_results import StudyResults
    from gradbed.experiments.runtimes.real import RealRuntime


@dataclass(frozen=True)
class SystemOptions:
    """Options of a system's commands, and their defaults."""

    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Defaults of `gradbed run NAME` where those of studies are different, by dotted path of the configuration."""
    bmv2_defaults: Mapping[str, Any] = field(default_factory=dict)
    """Values, by dotted path, where BMv2 runs the switches and cannot do otherwise."""
    script_defaults: Mapping[str, Any] | None = None
    """Defaults of `gradbed run torch`, by dotted path; None: the system's agents do not run PyTorch scripts."""
    shorthands: type[Shorthands] = Shorthands
    """Options of `gradbed run NAME` that stand for a sweep."""
    network_options: Sequence[str] = ("topology",)
    """Fields, or whole sections, by dotted path, that `gradbed up` has options for."""


@dataclass(frozen=True)
class SwitchCapabilities:
    """Properties of the switches of a system that other systems, and the runtimes, rely on."""

    collective: str = ""
    """Collective operation that they carry out for other systems' ranks (System.collectives); empty: none."""
    quiet: bool = False
    """Whether they send the controller nothing while agents work, so that several threads can simulate a network."""
    run_topology_programs: bool = False
    """Whether they run the programs that a topology's file names (topo/files)."""


LINKS_FIGURE: Mapping[str, Mapping[str, Any]] = {"links": {"kind": "links", "x": "seed", "y": "seed"}}
"""Figure of what each link carried."""


@dataclass(frozen=True)
class SystemReport:
    """Text and figures of a system at the end of a run."""

    assurance: str = ""
    """What was checked, and so holds for every trial that has not failed; a sentence."""
    main_metrics: Sequence[str] = ()
    """Metrics of a study that names none; empty: all."""
    colours: Mapping[str, int] = field(default_factory=dict)
    """Number of the colour that a name has in all figures, such as a scheduler's."""
    figures: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: LINKS_FIGURE)
    """Figures of a run of one trial, by file name, as the `figures` of a study; those without data are left out."""


@dataclass(frozen=True)
class SystemTools:
    """Parts of a system for other commands, which are loaded when they are used."""

    prompt: str = "gradbed.experiments.prompt.prompt:Prompt"
    """Prompt of `gradbed up`, as "module:Class".

    It is a subclass of gradbed.experiments.prompt.prompt.Prompt with commands of the system's own.
    """
    makers: Mapping[str, str] = field(default_factory=dict)
    """What `gradbed new` makes, as "module:Class" by name; literals, as the module is only parsed.

    The classes are pydantic models, whose fields are options, with a method make(folder: Path) that returns what it
    made, in words.
    """
    recorder: str | None = None
    """ "module:function" that converts a recording of gradbed.hosts.torch_hook.recorder.

    `gradbed run torch --trace` calls it. Its arguments are the recording's folder, the number of its ranks and the
    folder for a trace; it returns what was made, in words.
    """


class System(ABC, Generic[Configuration]):
    """Runs trials of one kind; a subclass is a system.

    Its docstring is the help of `gradbed run NAME`. It must set the first four attributes and define `trial`; the
    other attributes have defaults.
    """

    # ---- What a system is ----

    name: str
    """Name on the command line and in studies."""
    configuration: type[Configuration]
    """Sections of its studies, as a pydantic model."""
    service: str
    """Its controller service (gradbed.controller.core.service.Service), as "module:Class"."""
    metrics: Mapping[str, Metric]
    """Metrics of each trial, by name."""
    options: SystemOptions = SystemOptions()
    """What it can be asked."""
    switches: SwitchCapabilities = SwitchCapabilities()
    """What its switches can do."""
    report: SystemReport = SystemReport()
    """What it reports."""
    tools: SystemTools = SystemTools()
    """Its parts for other commands."""

    # ---- What is asked ----

    def check(self, configuration: Configuration) -> None:
        """Check that a trial with this configuration can run; called before anything runs.

        Raises:
            ValueError: it cannot, such as for want of hosts.
            UserError: likewise.
        """

    # ---- What runs ----

    @abstractmethod
    def trial(self, task: TrialTask[Configuration]) -> Trial[Configuration]:
        """Plan a trial.

        Raises:
            UserError: the configuration cannot be planned, for a reason that the user can change.
        """

    def network(self, task: TrialTask[Configuration]) -> NetworkSetup:
        """Return the network of `gradbed up --system NAME`, for which no jobs are known yet.

        Raises:
            UserError: the system has no such network.
        """
        raise UserError(
            f"{self.name} has no network to look around in without a trial to run: {COMMAND} run {self.name}"
        )

    def fabric_program(self, topology: Topology, policy: str, seed: int) -> FabricProgram:
        """Return the system's switches as a network for other systems' agents.

        Args:
            policy: How they forward; empty: the system's default.
            seed: of random choices.

        Raises:
            UserError: the switches cannot carry other systems' packets.
        """
        raise UserError(f"--fabric-program: the switches of the system {self.name} carry no other system's packets")

    def collectives(self, topology: Topology, groups: Sequence[tuple[Sequence[str], str]]) -> SwitchCollectives:
        """Return what the system's switches sum or copy for other systems' ranks.

        Args:
            groups: members and other host of each group, as in gradbed.experiments.setup.StreamGroup.

        Raises:
            UserError: the switches do neither.
        """
        raise UserError(f"--in-network: the switches of the system {self.name} do nothing for others' collectives")

    def at_prompt(self, runtime: RealRuntime, task: TrialTask[Configuration]) -> AbstractContextManager[object]:
        """Return a context in which the prompt of `gradbed up` runs."""
        return nullcontext()

    def calibration(self, rate_mbps: float, seconds: float) -> Configuration:
        """Return a trial that keeps many links of a network busy at once for about so long.

        A machine is calibrated by it, with links slowed down to the given rate; only the default system is asked.
        """
        raise NotImplementedError

    def warnings(self, configuration: Configuration) -> Sequence[str]:
        """Return what users should know of this configuration before a run; each line is printed once for a study."""
        return ()

    # ---- What is reported ----

    def closing(self, results: StudyResults) -> str:
        """Return the closing lines of a run in which no trial failed: what was checked, and so holds."""
        return self.report.assurance

    def present(self, results: StudyResults, console: Console) -> None:
        """Print the table of a run of one trial."""
        for trial in results.trials:
            console.print(metric_table(self.name, self.metrics, trial.row, results.model_of(trial)))


# ---- Messages about programs ----


AT_MOST = 6
"""Number of switches or files that a message names; longer lists end with the number of those left out."""


def programs_line(setup: NetworkSetup) -> str:
    """Return which switches run which program, and the files that fill the tables of custom programs."""
    switches: dict[str, list[str]] = {}
    for switch, program in setup.switches.items():
        what = _path(program.source) if isinstance(program, Program) else "Open vSwitch"
        switches.setdefault(what, []).append(switch)
    parts = [f"{_row(names)} run{'s' if len(names) == 1 else ''} {what}" for what, names in switches.items()]
    if isinstance(setup.settings, EntriesSettings):
        files = dict.fromkeys((*setup.settings.files, *setup.settings.switch_files.values()))
        parts.append(f"entries: {_row([_path(path) for path in files])}" if files else "no entries")
    return "; ".join(parts)


def unused_programs_line(system: System[Any], file: TopologyFile | None) -> str:
    """Return a note that switches do not run the programs that the topology's file names; empty if it names none."""
    if file is None or system.switches.run_topology_programs or not (named := file.own_programs()):
        return ""
    names = _row(list(dict.fromkeys(named.values())))
    return f"{file.path} names {names}, which does not run: switches run the programs of {system.name}"


def _row(names: Sequence[str]) -> str:
    more = len(names) - AT_MOST
    return ", ".join(names) if more <= 1 else f"{', '.join(names[:AT_MOST])} and {more} more"


def _path(path: Path) -> str:
    """Return a path for people: relative to the working directory if inside it; gradbed's own programs by name."""
    if path.parent == P4_SOURCES:
        return f"gradbed's {path.name}"
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)
