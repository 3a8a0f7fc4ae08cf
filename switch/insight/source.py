"""Where in the P4 source the parts of a program are: BMv2 JSON's source_info, and the text of those lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from switch.codegen.emit import probes as p

_P4_INCLUDE = Path(__file__).resolve().parent.parent / "compiler" / "p4include"


@dataclass(frozen=True)
class Source:
    """line counts from 1. fragment: the beginning of the construct's text."""

    file: str
    line: int
    fragment: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class SourceMap:
    """folders: where to look for the files that the JSON names. Parts without source_info have no source."""

    def __init__(self, json: Mapping[str, Any], folders: Sequence[Path] = ()) -> None:
        self._folders = [*folders, _P4_INCLUDE]
        self._files: dict[str, tuple[str, ...] | None] = {}
        self._sources: dict[p.Site, Source] = {}
        self._actions: dict[int, Source] = {}
        for site, source in _sites(json):
            self._sources.setdefault(site, source)
        for action in json.get("actions", ()):
            source_ = _source(action)
            if source_:
                self._actions[action["id"]] = source_

    def of(self, site: p.Site) -> Source | None:
        return self._sources.get(site)

    def action(self, action_id: int) -> Source | None:
        """Where an action is declared."""
        return self._actions.get(action_id)

    def line(self, source: Source) -> str | None:
        """The whole line, without the space around it; None where the file is not at hand."""
        lines = self.file(source.file)
        if lines is None or not 0 < source.line <= len(lines):
            return None
        return lines[source.line - 1].strip()

    def file(self, name: str) -> tuple[str, ...] | None:
        """The lines of a source file; None if it is in none of the folders."""
        if name not in self._files:
            self._files[name] = self._find(name)
        return self._files[name]

    def _find(self, name: str) -> tuple[str, ...] | None:
        for path in (folder / name for folder in self._folders):
            try:
                return tuple(path.read_text(encoding="utf-8", errors="replace").splitlines())
            except OSError:
                continue
        return None


def _source(node: Any) -> Source | None:
    info = node.get("source_info") if isinstance(node, dict) else None
    if not isinstance(info, dict) or not isinstance(info.get("line"), int):
        return None
    return Source(str(info.get("filename", "")), info["line"], str(info.get("source_fragment", "")))


def _sites(json: Mapping[str, Any]) -> Iterator[tuple[p.Site, Source]]:
    for site, node in _nodes(json):
        source = _source(node)
        if source is not None:
            yield site, source


def _nodes(json: Mapping[str, Any]) -> Iterator[tuple[p.Site, Any]]:
    for parser in json.get("parsers", ()):
        for state in parser.get("parse_states", ()):
            name = state["name"]
            yield p.StateEntered(name), state
            for index, operation in enumerate(state.get("parser_ops", ())):
                inner = operation["parameters"][0] if operation["op"] == "primitive" else {}
                yield p.OperationDone(name, index), operation
                yield p.OperationDone(name, index), inner
            for index, transition in enumerate(state.get("transitions", ())):
                yield p.TransitionTaken(name, index), transition
    for pipeline in json.get("pipelines", ()):
        for table in pipeline.get("tables", ()):
            yield p.TableApplied(table["name"]), table
            for action_id in table.get("action_ids", ()):
                yield p.CallMade(table["name"], action_id), table
        for condition in pipeline.get("conditionals", ()):
            for outcome in (True, False):
                yield p.BranchTaken(pipeline["name"], condition["name"], outcome), condition
        for call in pipeline.get("action_calls", ()):
            yield p.CallMade(call["name"], call["action_id"]), call
    for action in json.get("actions", ()):
        for index, primitive in enumerate(action.get("primitives", ())):
            yield p.PrimitiveDone(action["id"], index), primitive
    for deparser in json.get("deparsers", ()):
        for index, primitive in enumerate(deparser.get("primitives", ())):
            yield p.DeparserPrimitiveDone(index), primitive
    for index, checksum in enumerate(json.get("checksums", ())):
        yield p.ChecksumDone(index), checksum
