"""Configuration that every trial of a study has, whatever its system: network, clock, times and faults."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationInfo, field_validator
from typing_extensions import TypeVar

from gradbed.common.errors import UserError
from gradbed.experiments.configuration.faults import TEXT, Fault, LinkChange, check_faults, fault_of_text
from gradbed.experiments.configuration.options import FAULTS, RUN_AND_OUTPUT
from gradbed.experiments.configuration.sections import (
    Section,
    SwitchProgramsSection,
    TopologySection,
    option,
)
from gradbed.experiments.scale import Scale
from gradbed.topo.files import topology_file

Clock = Literal["real", "virtual"]
CLOCK_HELP = "Clock: real (Mininet, needs root) or virtual (simulated time in one process)."


class TimingSection(Section):
    """Times of hosts and controllers besides those of links, in nominal microseconds."""

    receive_coalescing_us: int = option(
        0,
        "Interrupt coalescing: delay in us from a packet's arrival to the NIC's interrupt (ethtool -C rx-usecs).",
        ge=0,
        panel="Network",
        advanced=True,
    )
    compute_us: float = option(
        0.0, "Compute time per iteration in us (a minimum on the real clock).", ge=0, panel="Workload"
    )
    compute_distribution: Literal["constant", "exponential"] = option(
        "constant",
        "Distribution of the compute time, with mean --compute-us: constant or exponential.",
        panel="Workload",
        advanced=True,
    )
    control_delay_us: int = option(
        0,
        "One-way delay between controller and switches in us (virtual clock).",
        ge=0,
        panel="Network",
        advanced=True,
    )


class TrialConfiguration(Section):
    """Configuration of one trial of a study.

    A system adds its sections as fields. A sweep can vary all of them.
    """

    topology: TopologySection = Field(default_factory=TopologySection)
    program: SwitchProgramsSection = SwitchProgramsSection()
    clock: Clock = option("real", CLOCK_HELP, panel=RUN_AND_OUTPUT)
    timing: TimingSection = Field(default_factory=TimingSection)
    faults: tuple[Fault, ...] = option(
        (),
        f"Fault to inject at a time in ms, {TEXT}, such as link-down:e1-a1@20; may be repeated (docs/faults.md).",
        name="fault",
        repeated=True,
        panel=FAULTS,
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
        """Return what is random, in words.

        Results then differ between seeds, and a study repeats the trial; without any, one repetition tells all. A
        system adds its own random choices that its metrics show.
        """
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
        """Return the configuration with whatever does not matter set to one value.

        Configurations with the same meaning then run only once.
        """
        return self

    def files(self) -> tuple[Path, ...]:
        """Return the users' files that a run reads, so that it can run on a machine that has none of them.

        A system adds those that it lets a configuration name.
        """
        file = topology_file(self.topology.kind)
        return () if file is None else tuple(file.files(None))


Configuration = TypeVar("Configuration", bound=TrialConfiguration, default=TrialConfiguration)
"""A system's own configuration."""
Configuration_co = TypeVar("Configuration_co", bound=TrialConfiguration, default=TrialConfiguration, covariant=True)


class Shorthands(Section):
    """Options of `gradbed run NAME` that stand for a sweep."""

    def axes(self, values: Mapping[str, Any]) -> Mapping[str, Sequence[Any]]:
        """Return values by dotted path of the configuration, in step with each other.

        Several values are several trials, which are compared by the first path.

        Args:
            values: of the command line, as nested mappings.

        Raises:
            UserError: the options contradict each other.
        """
        return {}
