"""A file that describes a network, and what else it says: programs and entries of switches."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from gradbed.common.errors import UserError
from gradbed.common.problems import first_problem
from gradbed.topo.files import graphml, network_script, own_form, p4_utils, p4app, tutorials
from gradbed.topo.files.description import Described
from gradbed.topo.graph import Topology
from gradbed.topo.link import LinkModel

_SCRIPT, _GRAPHS = ".py", (".graphml", graphml.GML)
_YAML = (".yaml", ".yml")
SUFFIXES = (_SCRIPT, ".json", *_GRAPHS, *_YAML)
_OF_OTHERS = {
    ".mn": "a network of MiniEdit, Mininet's editor",
    ".conf": "a network of Mini-NDN (nodes and links in sections)",
    ".ned": "a network of OMNeT++",
    ".brite": "a network of BRITE",
    ".dot": "a graph of Graphviz",
    ".gv": "a graph of Graphviz",
    ".csv": "a table",
    ".xml": "XML of another kind than GraphML",
    ".gexf": "a graph in GEXF",
    ".net": "a graph of Pajek",
}
"""Suffixes of files that people have, and that are not read."""
FORMS = "docs/topologies.md shows the forms"
_OBJECT = "has to be an object"
_WRONG = {
    "missing": "is missing",
    "dict_type": _OBJECT,
    "model_type": _OBJECT,
    "list_type": "has to be a list",
    "string_type": "has to be a text",
    "extra_forbidden": "is not known",
    "too_short": "has too few parts",
    "too_long": "has too many parts",
}
"""By pydantic's types of errors."""
_JSON_FORMS: tuple[tuple[str, frozenset[str], Callable[[Mapping[str, Any]], Described]], ...] = (
    (p4_utils.FORM, frozenset({"topology"}), p4_utils.describe),
    (p4app.FORM, frozenset({"targets"}), p4app.describe),
    ("node-link JSON of networkx", frozenset({"nodes"}), graphml.describe_node_link),
    (tutorials.FORM, frozenset({"hosts"}), tutorials.describe),
    (tutorials.FORM, frozenset({"switches"}), tutorials.describe),
)
"""Name, the keys by which it is known, and what reads it; the first that fits counts."""
_LEVELS = 2
"""Folders above the file in which paths are looked for: some are relative to the exercise's, which is above."""


@dataclass(frozen=True)
class TopologyFile:
    """A network, and what else its file says.

    topology: the network. entries: files that say what a switch holds. program: the source for switches of which the
    file does not say another. named_programs: the name of a switch's program, such as "basic" or "p4src/basic.p4",
    where the file says which. form: in words, of files that say what switches run; else empty.
    """

    path: Path
    topology: Topology
    entries: Mapping[str, Path] = field(default_factory=dict)
    program: Path | None = None
    named_programs: Mapping[str, str] = field(default_factory=dict)
    form: str = ""

    def files(self, program: Path | None) -> list[Path]:
        """Return all files that the network depends on, besides what programs include. program: as for `sources`."""
        try:
            sources = list(self.sources(program).values())
        except UserError:  # said where programs are compiled
            sources = []
        return [self.path, *dict.fromkeys(sources), *self.entries.values()]

    def sources(self, program: Path | None) -> dict[str, Path]:
        """Return the source of every switch's program.

        program: the one given for all switches; switches with another one in the file keep theirs if its source is
        there, but for files that name others alone. None: the file's own programs.

        Raises:
            UserError: The file does not say what a switch runs, or the source is not there.
        """
        if program is None:
            return {switch.name: self._own_source(switch.name) for switch in self.topology.switches}
        found = {switch.name: program for switch in self.topology.switches}
        if program == self.program:
            return {switch: self._source(self.named_programs.get(switch)) or program for switch in found}
        stems = {switch: _stem(name) for switch, name in self.named_programs.items()}
        if len(stems) == len(found) and program.stem not in stems.values():
            return found  # the file knows nothing of it
        for switch, stem in stems.items():
            if stem != program.stem:
                found[switch] = self._source(stem, program.parent, program.parent.parent) or program
        return found

    def own_programs(self) -> dict[str, str]:
        """Return the programs of switches as the file spells them; switches without one are left out."""
        default = {} if self.program is None else {each.name: self.program.name for each in self.topology.switches}
        return {**default, **self.named_programs}

    def _own_source(self, switch: str) -> Path:
        name = self.named_programs.get(switch)
        if name is None and self.program is None:
            raise UserError(f"{self.path} names no program for {switch}: which program? name a P4 file")
        source = self.program if name is None else self._source(name)
        if source is None:
            raise UserError(
                f"{self.path}: {switch} runs {name}, and {_stem(str(name))}.p4 is not there: "
                "which program? name a P4 file"
            )
        return source

    def _source(self, name: str | None, *before: Path) -> Path | None:
        """Return the P4 file of a program's name, first in the folders `before`. Its path counts where it is one of
        P4."""
        if name is None:
            return None
        folders = [*before, *_folders(self.path)]
        names = [name] if name.endswith(".p4") else []
        places = [place for folder in folders for place in (folder, folder / "solution")]
        tried = [*(folder / each for each in names for folder in folders), *(p / f"{_stem(name)}.p4" for p in places)]
        return next((path for path in tried if path.is_file()), None)


def _stem(name: str) -> str:
    """Return a program's name without folder and ending, as of "basic", "build/basic.json" and "basic.p4"."""
    return Path(name).name.removesuffix(".json").removesuffix(".p4")


def is_topology_file(kind: str) -> bool:
    """Return whether a topology's kind names a file, and no generator such as "fat-tree:4"."""
    return Path(kind.strip()).suffix in SUFFIXES


def unread_file(kind: str) -> str | None:
    """Return a line about a file that a topology's kind names and that is not read; None if it names none."""
    path = Path(kind.strip())
    what = _OF_OTHERS.get(path.suffix.lower())
    if what is None and not (path.suffix and path.is_file()):
        return None
    return f"{path} is {what or 'a file of a kind'}, which is not read: {', '.join(SUFFIXES)} are ({FORMS})"


def topology_file(kind: str, link: LinkModel | None = None, scale_factor: float = 1.0) -> TopologyFile | None:
    """Return the file that a topology's kind names; None if it names none, but a generator such as "fat-tree:4".

    link: where the file gives nothing. scale_factor: emulated over nominal rate, for what it gives.

    Raises:
        UserError: Something in the file is wrong; one line.
    """
    found = _built(kind, link, scale_factor)
    return None if found is None else _with_files(*found)


def _built(
    kind: str, link: LinkModel | None = None, scale_factor: float = 1.0
) -> tuple[Path, Topology, Described] | None:
    if not is_topology_file(kind):
        return None
    path = Path(kind.strip())
    try:
        described = _described(path)
        topology = described.build(path.stem, link or LinkModel(), scale_factor)
    except ValidationError as error:
        raise UserError(f"{path}: {first_problem(error)}") from None
    except OverflowError:
        raise UserError(f"{path}: a rate or a time is too large") from None
    except (UserError, ValueError) as error:
        raise UserError(f"{path}: {error}") from None
    return path, topology, described


def _described(path: Path) -> Described:
    try:
        if path.suffix == _SCRIPT:
            return network_script.describe(path)
        if path.suffix in _GRAPHS:
            return graphml.describe(path)
        return own_form.describe(path) if path.suffix in _YAML else _read(path)
    except ValidationError as error:
        raise UserError(f"{_problem(error)} ({FORMS})") from None


def _problem(error: ValidationError) -> str:
    first = error.errors()[0]
    place = ".".join(map(str, first["loc"])) or "it"
    return f"{place} {_WRONG.get(first['type'], first['msg'])}"


def _read(path: Path) -> Described:
    """JSON in either form. pydantic.ValidationError."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"it cannot be read: {error.strerror}") from None
    except RecursionError:
        raise UserError("it is nested too deeply") from None
    except ValueError as error:
        raise UserError(f"it is no JSON: {error}") from None
    if not isinstance(data, dict):
        raise UserError("it is no topology: it holds no object")
    return _read_form(data)


def _read_form(data: Mapping[str, Any]) -> Described:
    """Read a file in the form that its contents have."""
    for form, keys, describe in _JSON_FORMS:
        if keys <= data.keys():
            try:
                return describe(data)
            except ValidationError as error:
                raise UserError(f"{_problem(error)} ({form}; {FORMS})") from None
            except UserError as error:
                raise UserError(f"{error} ({form})") from None
    known = "; ".join(f"{', '.join(sorted(keys))}: {form}" for form, keys, _ in _JSON_FORMS)
    raise UserError(f"it is JSON of no form that is known by what it holds ({known})")


def read_topology(kind: str, link: LinkModel | None = None, scale_factor: float = 1.0) -> Topology | None:
    """Return the network of a file as `topology_file` does; other files that it names need not be there."""
    found = _built(kind, link, scale_factor)
    return None if found is None else found[1]


def _with_files(path: Path, topology: Topology, described: Described) -> TopologyFile:
    entries = {switch: _found(path, name) for switch, name in described.entries.items()}
    named = dict(described.programs)
    for switch, file in entries.items():
        if switch not in named and (name := tutorials.program_of(file)):
            named[switch] = name
    program = None if described.program is None else _found(path, described.program)
    return TopologyFile(path, topology, entries, program, named, described.form)


def _found(path: Path, name: str) -> Path:
    """Return the absolute path of a file that another one names."""
    for folder in _folders(path):
        if (folder / name).is_file():
            return (folder / name).resolve()
    raise UserError(f"{path} names {name}, which is not there")


def _folders(path: Path) -> Iterable[Path]:
    return [path.resolve().parent, *path.resolve().parent.parents][: _LEVELS + 1]
