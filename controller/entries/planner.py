"""The plan of a network from files of entries, and the service for users' own programs."""

from __future__ import annotations

import runpy
import traceback
from collections.abc import Collection as AnyCollection
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict

from gradbed.common.errors import UserError
from gradbed.controller.core.service import Service
from gradbed.controller.entries.collection import Collection
from gradbed.controller.entries.commands import read_commands
from gradbed.controller.entries.document import Element, FilePosition, parse_document, read_document
from gradbed.controller.entries.runtime_json import is_runtime_json, read_runtime_json
from gradbed.controller.entries.sections import Reader
from gradbed.controller.planning.plan import Plan, SwitchPlan
from gradbed.controller.planning.routing import Routes
from gradbed.controller.southbound.p4runtime.schema import ProgramSchema, read_p4info
from gradbed.topo.graph import Switch, Topology


class EntriesSettings(BaseModel):
    """The files with the contents of switches."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    programs: dict[str, Path]
    """P4Info file of each program."""
    switches: dict[str, str]
    """Program of each switch."""
    files: tuple[Path, ...] = ()
    """Files for all switches, YAML or Python."""
    switch_files: dict[str, Path] = {}
    """Files for single switches: YAML, runtime JSON of p4lang/tutorials, or commands of simple_switch_CLI."""
    skip_invalid: bool = False
    """Leave out and log what does not fit the programs, instead of raising an error."""


# ---- The plan of a network ----

_latest: list[tuple[object, Plan]] = []
"""The latest request and its plan: a trial's check, the trial and its controller ask for the same plan, which may
have hundreds of thousands of entries."""


def _bytes_of(file: Path) -> bytes | None:
    try:
        return file.read_bytes()
    except OSError:
        return None  # the reader of the file reports why


class EntriesPlanner:
    """Make plans from the files of `settings`, for the links that are up."""

    def __init__(self, settings: EntriesSettings) -> None:
        self._settings = settings
        self._documents: dict[Path, Element] = {}

    @cached_property
    def _p4infos(self) -> dict[str, Any]:
        return {name: read_p4info(path) for name, path in self._settings.programs.items()}

    @cached_property
    def _schemas(self) -> dict[str, ProgramSchema]:
        return {name: ProgramSchema(p4info) for name, p4info in self._p4infos.items()}

    def plan(self, topology: Topology, routes: Routes) -> Plan:
        """Return what every switch of the settings should hold.

        Raises:
            UserError: Something in the files is wrong, as a rule with FILE:LINE:COLUMN.
        """
        files = {*self._settings.files, *self._settings.switch_files.values()}
        if any(file.suffix == ".py" for file in files):
            return self._plan(topology, routes)  # which may read whatever it likes
        texts = [_bytes_of(file) for file in sorted({*files, *self._settings.programs.values()})]
        asked = self._settings, topology, routes, texts
        for known, plan in tuple(_latest):
            if known == asked:
                return plan
        plan = self._plan(topology, routes)
        _latest[:] = [(asked, plan)]
        return plan

    def _plan(self, topology: Topology, routes: Routes) -> Plan:
        made = {
            file: call_function(file, topology, self._argument)
            for file in self._settings.files
            if file.suffix == ".py"
        }
        plan = Plan(
            switches={
                switch.name: self._switch_plan(topology, routes, switch, made)
                for switch in topology.switches
                if switch.name in self._settings.switches
            }
        )
        for file, part in made.items():
            if isinstance(part, Plan):
                plan = self._with(plan, part, file)
        return plan

    @property
    def _argument(self) -> Any:
        """P4Info for functions: of the only program, or by the programs' names."""
        infos = self._p4infos
        return next(iter(infos.values())) if len(infos) == 1 else infos

    def _switch_plan(
        self, topology: Topology, routes: Routes, switch: Switch, made: dict[Path, Plan | Element]
    ) -> SwitchPlan:
        program = self._settings.switches[switch.name]
        schema = self._schemas[program]
        reader = Reader(topology, routes, switch, schema, list(self._schemas.values()))
        collection = Collection(schema, self._settings.skip_invalid)
        own = self._settings.switch_files.get(switch.name)
        if own is not None:
            self._read(own, program, reader, collection, own=True)
        for file in self._settings.files:
            document = made.get(file)
            if document is None:
                self._read(file, program, reader, collection)
            elif isinstance(document, Element):
                reader.read(document, collection)
        return collection.plan(program)

    def _read(self, file: Path, program: str, reader: Reader, collection: Collection, own: bool = False) -> None:
        """Read a file for one switch. own: the file is for this switch alone."""
        if file.suffix == ".txt":
            read_commands(file, self._p4infos[program], reader.schema, collection)
            return
        document = self._document(file)
        if is_runtime_json(document):
            read_runtime_json(document, reader.schema, reader.variables, collection)
        else:
            reader.read(document, collection, own=own)

    def _document(self, file: Path) -> Element:
        if file not in self._documents:
            self._documents[file] = read_document(file)
        return self._documents[file]

    def _with(self, plan: Plan, part: Plan, file: Path) -> Plan:
        place = FilePosition(file, 1, 1)
        for name, switch in part.switches.items():
            if name not in plan.switches:
                raise place.error(f"the plan names {name}, which is no switch that runs a program")
            try:
                normalised = self._schemas[plan[name].program].normalised(switch)
                merged = plan[name].merged(normalised.model_copy(update={"program": plan[name].program}))
            except (UserError, ValueError) as error:
                raise place.error(f"{name}: {error}") from None
            plan = Plan(switches={**plan.switches, name: merged})
        return plan


# ---- The service ----


class TrafficRequest(BaseModel, frozen=True, extra="forbid"):
    """A request without fields: the tables are filled already."""


class Admitted(BaseModel, frozen=True):
    """A job's number."""

    job: int


class EntriesService(Service[EntriesSettings, TrafficRequest, TrafficRequest, Admitted]):
    """`base` is the plan of the entries; jobs add nothing to it."""

    Settings, Request, State, Answer = EntriesSettings, TrafficRequest, TrafficRequest, Admitted
    programs: AnyCollection[str] = ()

    def __init__(self, topology: Topology, routes: Routes, settings: EntriesSettings) -> None:
        super().__init__(topology, routes, settings)
        self.programs = tuple(settings.programs)
        self._planner = EntriesPlanner(settings)

    def base(self) -> Plan:
        return self._planner.plan(self.topology, self.routes)

    def admit(self, number: int, request: TrafficRequest, others: Mapping[int, TrafficRequest]) -> TrafficRequest:
        return request

    def plan(self, number: int, state: TrafficRequest) -> Plan:
        return Plan(switches={})

    def answer(self, number: int, state: TrafficRequest) -> Admitted:
        return Admitted(job=number)


# ---- Entries that a function of the user's makes: `entries(topology, p4info)` in a Python file ----


NAME = "entries"


def call_function(file: Path, topology: Topology, p4info: Any) -> Plan | Element:
    """Return what the function returns: a plan, or a mapping in the form of a YAML file (an Element then).

    Raises:
        EntriesError: It raises an exception; with the line of the file.
    """
    try:
        function = runpy.run_path(str(file)).get(NAME)
    except OSError as error:
        raise UserError(f"cannot read {file}: {error.strerror}") from None
    except (Exception, SystemExit) as error:
        raise _place(file, error).error(_described(error)) from None
    if not callable(function):
        raise FilePosition(file, 1, 1).error(f"it has no function {NAME}(topology, p4info)")
    try:
        found = function(topology, p4info)
    except (Exception, SystemExit) as error:
        raise _place(file, error).error(_described(error)) from None
    if isinstance(found, Plan):
        return found
    if not isinstance(found, dict):
        raise FilePosition(file, 1, 1).error(f"{NAME}() returns a Plan or a mapping, not {type(found).__name__}")
    try:
        text = yaml.safe_dump(found, sort_keys=False)
    except yaml.YAMLError as error:
        raise FilePosition(file, 1, 1).error(
            f"{NAME}() returns what entries cannot hold: {_described(error)}"
        ) from None
    return parse_document(text, Path(f"{file} ({NAME}() as YAML)"))


def _place(file: Path, error: BaseException) -> FilePosition:
    """Return the innermost line of the file on the way to the exception."""
    if isinstance(error, SyntaxError) and error.filename == str(file):
        return FilePosition(file, error.lineno or 1, error.offset or 1)
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(file)]
    return FilePosition(file, lines[-1] if lines and lines[-1] else 1, 1)


def _described(error: BaseException) -> str:
    text = " ".join((error.msg if isinstance(error, SyntaxError) else str(error)).split())
    if isinstance(error, (UserError, SyntaxError)):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
