"""What a point of the workload system runs on: program, entries, traffic, and what is expected of it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from experiments.configuration.point import Clock, PointConfiguration
from experiments.configuration.sections import Section, option
from experiments.own_program import entries_beside
from experiments.sampling import SamplesSection
from experiments.systems.workload.expectations import parse_expectation
from experiments.traffic.configuration import TrafficSection
from switch.errors import UserError


def _beside_study(path: Path, info: ValidationInfo) -> Path:
    """Relative to the study's folder, or, on the command line, to where it is given."""
    folder: Path = (info.context or {}).get("folder", Path.cwd())
    return (folder / path).absolute()


StudyPath = Annotated[Path, AfterValidator(_beside_study)]


class ProgramSection(Section):
    """A P4_16 program for v1model, and what fills its tables."""

    path: StudyPath | None = option(None, "The P4 program that every switch runs.", name="program", argument=True)
    entries: tuple[StudyPath, ...] = Field(
        default=(), description="What tables hold: YAML, Python, runtime JSON or commands."
    )
    entries_file: StudyPath | None = option(None, "What tables hold: a file of entries.", name="entries")
    macros: dict[str, str] = Field(default_factory=dict)
    model: Literal["gradbed", "bmv2"] = option(
        "gradbed", "Runs the switches; bmv2 needs the real clock.", name="switch"
    )
    coverage: bool = option(False, "Tell what of the program packets reached (virtual clock).")
    trace: str | None = option(None, "A packet to follow through all switches: 'dst=h2 and nth=3' (virtual clock).")
    registers: tuple[str, ...] = option((), "Registers to read at the end: NAME, or SWITCH:NAME.")
    sha256: str = Field(default="", json_schema_extra={"option": False})
    """Of the files, so that a point of other contents is another point."""

    @property
    def all_entries(self) -> tuple[Path, ...]:
        return (*self.entries, *([self.entries_file] if self.entries_file is not None else []))

    def with_digest(self, more: Sequence[Path | None]) -> ProgramSection:
        digest = hashlib.sha256()
        for path in (self.path, *(self.all_entries or entries_beside(self.path)), *more):
            if path is not None and path.is_file():
                digest.update(path.read_bytes() + b"\0")
        return self.model_copy(update={"sha256": digest.hexdigest()[:20]})


class FramesSection(Section):
    """What packets look like, where they are no plain UDP datagrams; or a capture file in place of generated ones."""

    template: str | None = option(None, "Headers as Scapy writes them: 'Ether()/IP(dst=$dst)/UDP()'.")
    layers: StudyPath | None = option(None, "A Python file with Scapy layers for the template.")
    pcap: StudyPath | None = option(None, "Send the frames of this capture file in place of a traffic.")
    pcap_host: str | None = option(None, "The host that sends them (default: the first).")
    pcap_speed: float = option(1.0, "Times as fast as they were recorded.", gt=0)


class WorkloadConfiguration(PointConfiguration):
    """All that a sweep of a workload study can vary. expect: by metric, register or counter
    (experiments/systems/workload/expectations.py)."""

    clock: Clock = option("virtual", "real: Mininet, as root; virtual: one process, time goes from event to event.")
    program: ProgramSection = ProgramSection()
    traffic: TrafficSection = TrafficSection()
    frames: FramesSection = FramesSection()
    samples: SamplesSection = SamplesSection()
    expect: dict[str, float | str] = Field(default_factory=dict)

    @field_validator("expect")
    @classmethod
    def _readable(cls, expect: dict[str, float | str]) -> dict[str, float | str]:
        for subject, condition in expect.items():
            try:
                parse_expectation(subject, condition)
            except UserError as error:
                raise ValueError(str(error)) from None
        return expect

    def canonical(self) -> WorkloadConfiguration:
        return self.model_copy(update={"program": self.program.with_digest([self.frames.layers, self.frames.pcap])})
