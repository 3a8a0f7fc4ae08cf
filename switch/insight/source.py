"""Parts of a program as people know them: their places in the P4 source with the text of those lines, or a
description where the program's JSON does not say where they come from.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from gradbed.switch.bmv2_json import expressions as ex
from gradbed.switch.bmv2_json import model as m
from gradbed.switch.codegen.emit import probes as p
from gradbed.switch.insight.packet_state import Places

# ---- Places in the source ----


_P4_INCLUDE = Path(__file__).resolve().parent.parent / "compiler" / "p4include"


class SourceMap:
    """folders: where to look for the files that the program names. Not all parts have a source."""

    def __init__(self, model: m.ProgramModel | None, folders: Sequence[Path] = ()) -> None:
        """Look for files in these folders; `model` is None where only files are looked for."""
        self._folders = [*folders, _P4_INCLUDE]
        self._files: dict[str, tuple[str, ...] | None] = {}
        self._sources = dict(_sites(model)) if model is not None else {}
        self._actions = {} if model is None else {number: action.source for number, action in model.actions.items()}

    def of(self, site: p.Site) -> m.Source | None:
        return self._sources.get(site)

    def action(self, action_id: int) -> m.Source | None:
        """Return where an action is declared."""
        return self._actions.get(action_id)

    def line(self, source: m.Source) -> str | None:
        """Return the whole line, without the space around it; None where the file is not at hand."""
        lines = self.file(source.file)
        if lines is None or not 0 < source.line <= len(lines):
            return None
        return lines[source.line - 1].strip()

    def file(self, name: str) -> tuple[str, ...] | None:
        """Return the lines of a source file; None if it is in none of the folders."""
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
        case m.ConditionalStep():
            return [p.BranchTaken(pipeline, node.name, outcome) for outcome in (True, False)]
        case m.PipelineActionCall():
            return [p.CallMade(node.name, node.action_id)]


# ---- Expressions and primitives as text ----


class Describer:
    """parameters: names of the action at hand, for its arguments."""

    def __init__(self, places: Places, parameters: tuple[str, ...] = ()) -> None:
        self._places = places
        self._parameters = parameters

    def primitive(self, primitive: m.Primitive) -> str:
        if primitive.op == "assign" and len(primitive.parameters) == 2:
            target, value = primitive.parameters
            return f"{self.text(target)} = {self.text(value)}"
        return f"{primitive.op}({', '.join(self.text(part) for part in primitive.parameters)})"

    def operation(self, operation: m.ParserOperation) -> str:
        if isinstance(operation, m.Extract):
            return f"extract({self.extracted(operation.header)})"
        if isinstance(operation, m.Assign):
            return f"{self.text(operation.target)} = {self.text(operation.value)}"
        if isinstance(operation, m.Verify):
            return f"verify({self.text(operation.condition)}, ...)"
        if isinstance(operation, m.Advance):
            return f"advance({self.text(operation.bits)})"
        return self.primitive(operation)

    def text(self, value: Any) -> str:
        match value:
            case ex.Constant():
                return str(value.value)
            case ex.Truth():
                return "true" if value.value else "false"
            case ex.FieldReference():
                return self._field(value)
            case ex.RuntimeArgument(index=index):
                return self._parameters[index] if index < len(self._parameters) else f"argument {index}"
            case ex.RegisterCell():
                return f"{value.register}[{self.text(value.index)}]"
            case ex.Lookahead():
                return f"lookahead({value.offset}, {value.width})"
            case ex.StackCount():
                return f"{value.stack}.next"
            case ex.Arithmetic() | ex.Comparison() | ex.Logic():
                op = {"and": "&&", "or": "||"}.get(value.op, value.op)
                return f"({self.text(value.left)} {op} {self.text(value.right)})"
            case ex.Complement():
                return f"~{self.text(value.operand)}"
            case ex.Negation():
                return f"!{self.text(value.operand)}"
            case ex.CastOperation() | ex.FromBoolean() | ex.NonZero():
                return self.text(value.operand)
            case ex.Choice() | ex.BooleanChoice():
                return f"({self.text(value.condition)} ? {self.text(value.if_true)} : {self.text(value.if_false)})"
            case ex.IsValid(reference) | ex.IsUnionValid(reference):
                return f"{self.header(reference)}.isValid()"
            case ex.HeadersEqual() | ex.UnionsEqual():
                return f"({self.header(value.left)} == {self.header(value.right)})"
            case ex.VariableFieldsEqual():
                return f"({self.text(value.left)} == {self.text(value.right)})"
            case ex.Text():
                return repr(value.value)
            case ex.Vector():
                return f"[{', '.join(map(self.text, value.items))}]"
            case ex.StackElement() | ex.UnionStackElement() | ex.UnionMember():
                return self.header(value)
        return str(value.name)

    def extracted(self, reference: ex.HeaderReference) -> str:
        """Return what extract writes to: of a stack the next element."""
        return self.header(reference).replace(".last", ".next")

    def header(self, reference: ex.HeaderReference | ex.UnionReference) -> str:
        if isinstance(reference, (ex.NamedHeader, ex.NamedUnion)):
            return reference.name
        if isinstance(reference, ex.UnionMember):
            return f"{self.header(reference.union)}.{self._member(reference)}"
        if reference.index is None:
            return f"{reference.stack}.last"
        return f"{reference.stack}[{self.text(reference.index)}]"

    def _member(self, reference: ex.UnionMember) -> str:
        union = reference.union
        model = self._places.model
        name = union.name if isinstance(union, ex.NamedUnion) else model.union_stacks[union.stack].elements[0]
        return model.unions[name].member_names[reference.member]

    def _field(self, field: ex.FieldReference) -> str:
        header = field.header
        if isinstance(header, ex.NamedHeader):
            return self._places.field_name(header.name, field.index)
        model = self._places.model
        if isinstance(header, ex.StackElement):
            element = model.stacks[header.stack].elements[0]
        elif isinstance(header.union, ex.NamedUnion):
            element = model.unions[header.union.name].members[header.member]
        else:
            union = model.union_stacks[header.union.stack].elements[0]
            element = model.unions[union].members[header.member]
        return f"{self.header(header)}.{self._places.field_type(element, field.index).name}"


def leaves(expression: Any) -> Iterator[ex.FieldReference | ex.IsValid]:
    """Yield the fields and validities that an expression reads, each once, from left to right."""
    kinds = (ex.FieldReference, ex.IsValid)
    yield from dict.fromkeys(part for part in ex.walk(expression, stop=kinds) if isinstance(part, kinds))
