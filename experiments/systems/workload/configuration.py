"""Configuration of a workload trial: program, entries, traffic, and what is expected of it."""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from gradbed.common.errors import UserError
from gradbed.experiments.configuration.options import RUN_AND_OUTPUT
from gradbed.experiments.configuration.sections import (
    AddressedTopologySection,
    SamplesSection,
    Section,
    SwitchProgramsSection,
    option,
)
from gradbed.experiments.configuration.trial import CLOCK_HELP, Clock, Shorthands, TrialConfiguration
from gradbed.experiments.custom_program import entries_of
from gradbed.experiments.systems.workload.checks import expectations_of, parse_expectation
from gradbed.experiments.traffic.background import BackgroundSection
from gradbed.experiments.traffic.configuration import TrafficSection
from gradbed.switch.program_cache import input_digest
from gradbed.topo.files import topology_file
from gradbed.topo.link import USUAL_MTU_BYTES


def _beside_study(path: Path, info: ValidationInfo) -> Path:
    """Make a path absolute; it is relative to the study's folder or, on the command line, to the current one."""
    folder: Path = (info.context or {}).get("folder", Path.cwd())
    return (folder / path).absolute()


_RANDOM = re.compile(r"(?<!void )\brandom\s*(<[^;]*>\s*)?\(")
"""A call of the extern random, not its declaration."""

StudyPath = Annotated[Path, AfterValidator(_beside_study)]

Model = Literal["gradbed", "bmv2"]


class ProgramSection(SwitchProgramsSection):
    """A P4_16 program for v1model, and the entries of its tables."""

    path: StudyPath | None = option(None, "P4 program that every switch runs.", name="program", argument=True)
    entries: tuple[StudyPath, ...] = Field(
        default=(), description="What tables hold: YAML, Python, runtime JSON or commands."
    )
    entries_file: StudyPath | None = option(
        None, "Table entries: a YAML, Python, runtime JSON or commands file (docs/entries.md).", name="entries"
    )
    macros: tuple[str, ...] = option(
        (), "Preprocessor macros, NAME or NAME=VALUE, with commas between.", name="define"
    )
    model: Model = Field(default="gradbed", json_schema_extra={"option": False})
    """What runs the switches."""
    coverage: bool = option(
        False, "Report which statements, table entries and branches the packets reached.", panel=RUN_AND_OUTPUT
    )
    trace: str | None = option(
        None, "Trace one packet through all switches, such as 'dst=h2 and nth=3'.", panel=RUN_AND_OUTPUT
    )
    registers: tuple[str, ...] = option(
        (), "Registers to read at the end: NAME or SWITCH:NAME, with commas between.", panel=RUN_AND_OUTPUT
    )
    sha256: str = Field(default="", json_schema_extra={"option": False})
    """Digest of the files, so that a trial with other contents is another trial."""

    @property
    def all_entries(self) -> tuple[Path, ...]:
        return (*self.entries, *([self.entries_file] if self.entries_file is not None else []))

    @property
    def definitions(self) -> dict[str, str]:
        """Values of the macros; NAME alone is 1, as with cpp."""
        return {
            name: value if equals else "1" for name, equals, value in (each.partition("=") for each in self.macros)
        }

    def draws(self, path: Path | None) -> bool:
        """Return whether the program calls the extern random."""
        from gradbed.switch.compiler import input_files

        if path is None or path.suffix not in (".p4", ".json"):
            return False
        if path.suffix == ".json":
            return "modify_field_rng" in path.read_text(encoding="utf-8")  # BMv2's name of it
        return any(_RANDOM.search(file.text) for file in input_files(path, defines=self.definitions))

    def _named(self, more: Sequence[Path | None]) -> list[Path]:
        """Return the program, its entries, and more files, as far as they exist."""
        paths = (self.path, *(self.all_entries or entries_of(self.path)), *more)
        return [path for path in paths if path is not None and path.is_file()]

    def with_digest(self, more: Sequence[Path | None]) -> ProgramSection:
        digest = hashlib.sha256()
        for path in self._named(more):
            digest.update(path.read_bytes() + b"\0")
            if path.suffix == ".p4":
                digest.update(input_digest(path, self.definitions))
        return self.model_copy(update={"sha256": digest.hexdigest()[:20]})

    def files(self, more: Sequence[Path | None]) -> list[Path]:
        """Return the same files, and all that programs include."""
        from gradbed.switch.compiler import input_files

        found = self._named(more)
        for path in tuple(found):
            if path.suffix == ".p4":
                found += [file.path for file in input_files(path, defines=self.definitions) if file.path.is_file()]
        return found


class FramesSection(Section):
    """Headers of packets other than plain UDP datagrams, or a capture file in place of generated packets."""

    template: str | None = option(
        None, "Packet headers in Scapy's notation, such as 'Ether()/IP(dst=$dst)/UDP()' (default: UDP)."
    )
    layers: StudyPath | None = option(None, "Python file with Scapy layers for the template.", advanced=True)
    replay: StudyPath | None = option(
        None, "Replay this capture file (pcap or pcapng) in place of generated traffic."
    )
    replay_host: str | None = option(
        None, "Host that sends the frames of the capture file (default: the first).", advanced=True
    )
    replay_speed: float = option(1.0, "Replay speed relative to the recording.", gt=0, advanced=True)
    mtu_bytes: int = option(
        USUAL_MTU_BYTES,
        "MTU of the links in bytes; longer frames of a capture file are refused.",
        ge=68,
        le=65_000,
        panel="Network",
        advanced=True,
    )


class WorkloadConfiguration(TrialConfiguration):
    """Everything that a sweep of a workload study can vary."""

    clock: Clock = option("virtual", CLOCK_HELP, panel=RUN_AND_OUTPUT)
    topology: AddressedTopologySection = Field(default_factory=AddressedTopologySection)
    program: ProgramSection = ProgramSection()
    traffic: TrafficSection = TrafficSection()
    frames: FramesSection = FramesSection()
    background: BackgroundSection = BackgroundSection()
    samples: SamplesSection = SamplesSection()
    expect: dict[str, float | str] = Field(
        default_factory=dict,
        description="Expected result, such as 'loss=0', 'p99_us<200' or 'register:seen[0]>0'; may be repeated. "
        "The exit status is 1 if one does not hold.",
        json_schema_extra={"repeated": True, "panel": RUN_AND_OUTPUT},
    )

    @field_validator("expect", mode="before")
    @classmethod
    def _of_a_command_line(cls, expect: Any) -> Any:
        return _readable(lambda: expectations_of(expect)) if isinstance(expect, list) else expect

    @field_validator("expect")
    @classmethod
    def _conditions(cls, expect: dict[str, float | str]) -> dict[str, float | str]:
        for subject, condition in expect.items():
            _readable(functools.partial(parse_expectation, subject, condition))
        return expect

    def chance(self) -> tuple[str, ...]:
        drawn = {
            "traffic": self.frames.replay is None and self.traffic.is_drawn,
            "what programs draw": any(self.program.draws(path) for path in (self.program.path, *self._beside())),
        }
        return (*super().chance(), *(words for words, is_drawn in drawn.items() if is_drawn))

    def _beside(self) -> Sequence[Path | None]:
        """Return the files that the topology's file names: programs of single switches, and entries."""
        file = topology_file(self.topology.kind)
        if file is None:
            return []
        found = file.files(self.program.path)
        return [*found, *(entries for path in found if path.suffix == ".p4" for entries in entries_of(path))]

    def _further(self) -> Sequence[Path | None]:
        """Return all files but the program and its entries."""
        return [self.frames.layers, self.frames.replay, self.traffic.matrix, *self._beside()]

    def canonical(self) -> WorkloadConfiguration:
        return self.model_copy(update={"program": self.program.with_digest(self._further())})

    def files(self) -> tuple[Path, ...]:
        return tuple(dict.fromkeys((*super().files(), *self.program.files(self._further()))))


Read = TypeVar("Read")


def _readable(read: Callable[[], Read]) -> Read:
    try:
        return read()
    except UserError as error:
        raise ValueError(str(error).removeprefix("expect: ")) from None


class WorkloadShorthands(Shorthands):
    """Compare two programs, or two kinds of switches, under the same workload."""

    panel: ClassVar[str | None] = "Switches"

    switch: tuple[Model, ...] = option(
        ("gradbed",),
        "Software switch that runs the program: gradbed or bmv2 (real clock); gradbed,bmv2 compares the two.",
    )
    compare: StudyPath | None = option(None, "Second program to run under the same workload, for comparison.")
    compare_entries: StudyPath | None = option(
        None,
        "Table entries of the second program (default: entries.yaml in its folder, otherwise those of the first).",
        advanced=True,
    )

    def axes(self, values: Mapping[str, Any]) -> Mapping[str, Sequence[Any]]:
        models = list(dict.fromkeys(self.switch))
        if self.compare is None:
            if self.compare_entries is not None:
                raise UserError("--compare-entries goes with --compare")
            return {"program.model": models}
        if len(models) > 1:
            raise UserError("--compare: one comparison at a time: two programs, or two kinds of switches")
        program = values.get("program", {})
        if program.get("path") is None:
            raise UserError("which program? name a P4 file")
        own, other = program["path"].absolute(), self.compare
        found: dict[str, Sequence[Any]] = {"program.path": [own, other]}
        entries = self.compare_entries
        if entries is None and own.parent != other.parent:
            entries = next(iter(entries_of(other)), None)
        if entries is not None:
            of_both = {"program.entries_file": [program.get("entries_file"), entries]}
            # Of one program the entries are what differs.
            found = {**of_both, **found} if own == other else {**found, **of_both}
        return found if models == ["gradbed"] else {**found, "program.model": 2 * models}
