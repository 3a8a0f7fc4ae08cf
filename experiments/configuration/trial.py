"""What every trial of a study has, whatever its system: network, clock, times and faults."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationInfo, field_validator
from typing_extensions import TypeVar

from gradbed.common.errors import UserError
from gradbed.experiments.configuration.faults import TEXT, Fault, LinkChange, check_faults, fault_of_text
from gradbed.experiments.configuration.sections import Section, SwitchProgramsSection, TopologySection, option
from gradbed.experiments.scale import Scale
from gradbed.topo.files import topology_file

Clock = Literal["real", "virtual"]


class TimingSection(Section):
    """Times that a network of hosts and controllers has beside its links, in nominal microseconds."""

    receive_coalescing_us: int = option(
        0, "A host's card tells of arrivals so long after the first (ethtool -C rx-usecs).", ge=0
    )
    compute_us: float = option(
        0.0, "An agent's computation, such as of a gradient; on the real clock at least.", ge=0
    )
    compute_distribution: Literal["constant", "exponential"] = option(
        "constant", "Of compute_us, its mean: constant, or exponential, drawn with the run's seed."
    )
    control_delay_us: int = option(0, "Between controller and switches, each way (virtual clock).", ge=0)


class TrialConfiguration(Section):
    """What one trial of a study runs on; a system adds its sections as fields. Everything a sweep can vary."""

    topology: TopologySection = Field(default_factory=TopologySection)
    program: SwitchProgramsSection = SwitchProgramsSection()
    clock: Clock = option("real", "real: Mininet, as root; virtual: one process, time goes from event to event.")
    timing: TimingSection = Field(default_factory=TimingSection)
    faults: tuple[Fault, ...] = option(
        (),
        f"{TEXT}: what happens at a time, such as link-down:e1-a1@20 (docs/experiments.md, Faults).",
        name="fault",
        repeated=True,
    )

    @field_validator("faults", mode="before")
    @classmethod
    def _of_texts(cls, faults: Any, info: ValidationInfo) -> Any:
        topology = info.data.get("topology")
        if topology is None or not isinstance(faults, list | tuple):
            return faults
        built = topology.build(Scale())
        try:
            return [fault_of_text(each, built) if isinstance(each, str) else each for each in faults]
        except UserError as error:
            raise ValueError(str(error)) from None

    @field_validator("faults")
    @classmethod
    def _faults_fit(cls, faults: tuple[Fault, ...], info: ValidationInfo) -> tuple[Fault, ...]:
        topology = info.data.get("topology")  # missing where it is wrong itself
        if faults and topology is not None:
            try:
                check_faults(faults, topology.build(Scale()))
            except UserError as error:
                raise ValueError(str(error)) from None
        return faults

    def chance(self) -> tuple[str, ...]:
        """What is drawn by chance, in words: then results differ between seeds, and a study repeats the trial.
        Without any, one repetition tells all. A system adds what it draws itself and its metrics show."""
        built = self.topology.build(Scale())
        changes = [fault.change.fields(Scale()) for fault in self.faults if isinstance(fault, LinkChange)]
        links = [*(link.model.to_json() for link in built.links), *changes]
        drawn = {
            "the machine's time": self.clock == "real",
            "losses": any(link.get("loss") or link.get("bit_error_rate") for link in links),
            "duplicates": any(link.get("duplicate") for link in links),
            "jitter": any(link.get("jitter_us") for link in links),
            "computing times": bool(self.timing.compute_us) and self.timing.compute_distribution == "exponential",
        }
        return tuple(words for words, is_drawn in drawn.items() if is_drawn)

    def canonical(self) -> TrialConfiguration:
        """Itself, with whatever does not matter set to one value: configurations that mean the same are run once."""
        return self

    def files(self) -> tuple[Path, ...]:
        """People's own files that a run of it reads, so that it can run on a machine that has none of them. A system
        adds those that it lets a configuration name."""
        file = topology_file(self.topology.kind)
        return () if file is None else tuple(file.files(None))


Configuration = TypeVar("Configuration", bound=TrialConfiguration, default=TrialConfiguration)
"""A system's own."""
Configuration_co = TypeVar("Configuration_co", bound=TrialConfiguration, default=TrialConfiguration, covariant=True)


class Shorthands(Section):
    """Options of `gradbed run NAME` beside those of a trial: they stand for a sweep."""

    def axes(self, values: Mapping[str, Any]) -> Mapping[str, Sequence[Any]]:
        """Values by dotted path of the configuration, in step with each other. Several are several trials, which are
        compared by the first path. values: of the command line, as nested mappings. UserError."""
        return {}
