"""A system: its configuration and metrics, how a trial of it runs, and what is reported.

A system consists of packages of its own (docs/architecture.md, "A system"). Here it says what the network of a trial
is, which jobs run on it and by which agents, and what the counts mean; experiments/engine/trial.py does everything
else.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Generic

from gradbed.common.errors import UserError
from gradbed.common.modules import COMMAND
from gradbed.experiments.configuration.trial import Configuration, Shorthands
from gradbed.experiments.phases import Trial
from gradbed.experiments.setup import NetworkSetup, SwitchCollectives, TrialTask, Underlay
from gradbed.experiments.tables.metric import Metric, metric_table
from gradbed.topo.graph import Topology

if TYPE_CHECKING:
    from rich.console import Console

    from gradbed.experiments.results.study_results import StudyResults
    from gradbed.experiments.runtimes.real import RealRuntime


class System(ABC, Generic[Configuration]):
    """Runs trials of one kind. A system is a subclass, and has the defaults where it brings nothing of its own.

    Its docstring is the help of `gradbed run NAME`. configuration: the sections that its studies have. metrics: by
    name. main_metrics: those of a study that names none; empty: all. service: "module:Class" of its part of the
    controller. assurance: what holds for every trial that has not failed, a sentence for people. defaults: what
    `gradbed run NAME` takes for fields where studies have another default, by dotted path. on_bmv2: as defaults,
    where BMv2 cannot do otherwise.
    script_defaults: of `gradbed run torch`; None: agents of the system do not run PyTorch scripts. network_options:
    the fields, or whole sections, by dotted path, that `gradbed up` has options for. prompt: "module:Class" of its
    prompt, a subclass of gradbed.experiments.prompt.prompt.Prompt with commands of the system's own. run_figures: of
    a run of one trial, by file name, as the `figures` of a study; those that have nothing to show are left out.
    makers: "module:Class" of what `gradbed new` makes, by name: pydantic models, whose fields are its options, with a
    method make(folder: Path) that returns what it made, in words; plain texts, which are read and not loaded.
    recorder: "module:function" of a folder that gradbed.hosts.torch_hook.recorder has filled, how many ranks it has,
    and the folder for a trace of it, for `gradbed run torch --trace`; it returns what was made, in words. collective:
    the operation that its switches carry out for other systems' ranks (collectives()); empty: none. quiet_switches:
    they tell their controller nothing while agents work, so that a large network can be simulated on several threads.
    runs_programs_of_files: its switches run the programs that a topology's file names (topo/files).
    """

    name: str
    configuration: type[Configuration]
    metrics: Mapping[str, Metric]
    main_metrics: Sequence[str] = ()
    service: str
    assurance: str
    defaults: Mapping[str, Any] = {}
    shorthands: type[Shorthands] = Shorthands
    on_bmv2: Mapping[str, Any] = {}
    script_defaults: Mapping[str, Any] | None = None
    network_options: Sequence[str] = ("topology",)
    run_figures: Mapping[str, Mapping[str, Any]] = {"links": {"kind": "links", "x": "seed", "y": "seed"}}
    collective: str = ""
    prompt: str = "gradbed.experiments.prompt.prompt:Prompt"
    makers: Mapping[str, str] = {}
    recorder: str | None = None
    quiet_switches: bool = False
    runs_programs_of_files: bool = False

    def check(self, configuration: Configuration) -> None:
        """Check that a trial with this configuration can run; called before anything runs.

        Raises:
            ValueError: it cannot, such as for want of hosts.
            UserError: likewise.
        """

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

    def underlay(self, topology: Topology, way: str, seed: int) -> Underlay:
        """Return the system's switches as a network for other systems' agents.

        Args:
            way: how they forward, such as a policy; or empty.
            seed: of random choices.

        Raises:
            UserError: the switches cannot carry other systems' packets.
        """
        raise UserError(f"--underlay: the switches of the system {self.name} carry no other system's packets")

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

    def closing(self, results: StudyResults) -> str:
        """Return the closing lines of a run in which no trial failed: what was checked, and so holds."""
        return self.assurance

    def present(self, results: StudyResults, console: Console) -> None:
        """Print the table of a run of one trial."""
        for trial in results.trials:
            console.print(metric_table(self.name, self.metrics, trial.row, results.model_of(trial)))
