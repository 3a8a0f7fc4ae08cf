"""Where in the P4 source the parts of a program are: by the program's model, and the text of those lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from gradbed.switch.bmv2_json import model as m
from gradbed.switch.codegen.emit import probes as p

_P4_INCLUDE = Path(__file__).resolve().parent.parent / "compiler" / "p4include"


class SourceMap:
    """folders: where to look for the files that the program names. Not all parts have a source."""

    def __init__(self, model: m.ProgramModel | None, folders: Sequence[Path] = ()) -> None:
        """model: None where only files are looked for."""
        self._folders = [*folders, _P4_INCLUDE]
        self._files: dict[str, tuple[str, ...] | None] = {}
        self._sources = dict(_sites(model)) if model is not None else {}
        self._actions = {} if model is None else {number: action.source for number, action in model.actions.items()}

    def of(self, site: p.Site) -> m.Source | None:
        return self._sources.get(site)

    def action(self, action_id: int) -> m.Source | None:
        """Where an action is declared."""
        return self._actions.get(action_id)

    def line(self, source: m.Source) -> str | None:
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


def _sites(model: m.ProgramModel) -> Iterator[tuple[p.Site, m.Source | None]]:
    for name, state in model.parser.states.items():
        yield p.StateEntered(name), state.source
        for index, source in enumerate(state.operation_sources):
            yield p.OperationDone(name, index), source
        for index, transition in enumerate(state.transitions):
            yield p.TransitionTaken(name, index), transition.source
    for pipeline in model.pipelines.values():
        for node in pipeline.nodes.values():
            for site in _sites_of(node, pipeline.name):
                yield site, node.source
    for number, action in model.actions.items():
        for index, primitive in enumerate(action.primitives):
            yield p.PrimitiveDone(number, index), primitive.source
    for index, primitive in enumerate(model.deparser_primitives):
        yield p.DeparserPrimitiveDone(index), primitive.source
    for index, checksum in enumerate(model.checksums):
        yield p.ChecksumDone(index), checksum.source


def _sites_of(node: m.ControlNode, pipeline: str) -> list[p.Site]:
    match node:
        case m.Table():
            return [p.TableApplied(node.name), *(p.CallMade(node.name, action.id) for action in node.actions)]
        case m.Condition():
            return [p.BranchTaken(pipeline, node.name, outcome) for outcome in (True, False)]
        case m.ActionCall():
            return [p.CallMade(node.name, node.action_id)]
