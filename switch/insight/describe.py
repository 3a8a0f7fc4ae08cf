"""Expressions and primitives of a program as text, for programs whose JSON does not say where they come from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gradbed.switch.bmv2_json import expressions as ex
from gradbed.switch.bmv2_json import model as m
from gradbed.switch.insight.packet_state import Places


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
            case ex.Field():
                return self._field(value)
            case ex.Argument(index=index):
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
            case ex.Cast() | ex.FromBoolean() | ex.NonZero():
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
        """What extract writes to: of a stack the next element."""
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

    def _field(self, field: ex.Field) -> str:
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


def leaves(expression: Any) -> Iterator[ex.Field | ex.IsValid]:
    """The fields and validities that an expression looks at, each once, from left to right."""
    kinds = (ex.Field, ex.IsValid)
    yield from dict.fromkeys(part for part in ex.walk(expression, stop=kinds) if isinstance(part, kinds))
