"""Copying values into places, part by part where they have parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from switch.compiler import syntax as s
from switch.compiler import types as t
from switch.compiler.lower import ir
from switch.compiler.lower import operations as op
from switch.compiler.lower.places import (
    ElementOf,
    HeaderPlace,
    HeaderValue,
    Nothing,
    SliceOf,
    StackCursor,
    StackPlace,
    StackValue,
    StructValue,
    UnionPlace,
    Value,
    header_names,
)
from switch.compiler.lower.scope import Code

if TYPE_CHECKING:
    from switch.compiler.lower.expressions import Expressions


class Assignments:
    expressions: Expressions

    def __init__(self, code: Code) -> None:
        self._code = code

    def assign(self, place: Value, value: Value, node: s.Node) -> None:
        """`place` must be one of PLACES."""
        if isinstance(place, StackCursor) and place.which == "last":
            place = self.expressions.last_element(place)
        if isinstance(place, ElementOf):
            self._assign_element(place, value, node)
            return
        value = self.expressions.read(value, node)
        if isinstance(place, ir.FieldRef):
            self._assign_field(place, value, node)
        elif isinstance(place, SliceOf):
            base = self.expressions.as_scalar(place.base, node)
            bits = self.expressions.as_scalar(value, node)
            self.assign(place.base, op.insert_bits(base, place.high, place.low, bits), node)
        elif isinstance(place, StructValue):
            self._assign_struct(place, value, node)
        elif isinstance(place, HeaderPlace):
            self._assign_header(place, value, node)
        elif isinstance(place, UnionPlace):
            self._assign_union(place, value, node)
        elif isinstance(place, StackPlace):
            self._assign_stack(place, value, node)
        elif isinstance(place, StackCursor):
            self._code.error(node, f"'{place.which}' cannot be assigned on this target; extract it")
        else:
            self._code.error(node, "this cannot be written to on this target")

    def reset(self, place: Value, node: s.Node) -> None:
        """What a variable is before anything is assigned: headers are invalid, the rest is as it may be."""
        if isinstance(place, HeaderPlace):
            self._primitive("remove_header", (ir.Ref("header", place.name),), node)
        elif isinstance(place, UnionPlace):
            for member in place.members.values():
                self.reset(member, node)
        elif isinstance(place, StackPlace):
            for inner in place.elements:
                self.reset(inner, node)
        elif isinstance(place, StructValue):
            for part in place.parts.values():
                self.reset(part, node)
        elif isinstance(place, ElementOf):
            for condition, element in self.expressions.elements(place, node):
                with self._code.branch() as body:
                    self.reset(element, node)
                if body:
                    self._code.emit(ir.If(node.loc, node.end, condition, body, []))

    def set_valid(self, place: Value, valid: bool, node: s.Node) -> None:
        if isinstance(place, HeaderPlace):
            self._primitive("add_header" if valid else "remove_header", (ir.Ref("header", place.name),), node)
        elif isinstance(place, ElementOf):
            for condition, element in self.expressions.elements(place, node):
                with self._code.branch() as body:
                    self.set_valid(element, valid, node)
                self._code.emit(ir.If(node.loc, node.end, condition, body, []))
        else:
            self._code.error(node, "the validity of this header cannot be changed on this target")

    def _primitive(self, name: str, parameters: tuple[ir.Parameter, ...], node: s.Node) -> None:
        self._code.emit(ir.Primitive(node.loc, node.end, name, parameters))

    def _assign_field(self, place: ir.FieldRef, value: Value, node: s.Node) -> None:
        if isinstance(value, Nothing):
            return
        expr = self.expressions.as_scalar(value, node)
        if isinstance(place.type, t.Varbit):
            if isinstance(expr, ir.FieldRef):
                self._primitive("assign_VL", (place, expr), node)
            else:
                self._code.error(node, "a varbit can only be copied from another one on this target")
        elif expr != place:
            self._code.emit(ir.Assign(node.loc, node.end, place, expr))

    def _assign_element(self, place: ElementOf, value: Value, node: s.Node) -> None:
        value = self.expressions.read(value, node)
        if (isinstance(value, ir.Expr) and not ir.is_simple(value)) or header_names(value) & header_names(place):
            value = self.expressions.snapshot(value, node)
        for condition, element in self.expressions.elements(place, node):
            with self._code.branch() as body:
                self.assign(element, value, node)
            if body:
                self._code.emit(ir.If(node.loc, node.end, condition, body, []))

    def _assign_struct(self, place: StructValue, value: Value, node: s.Node) -> None:
        if value is place or isinstance(value, Nothing):
            return
        if not isinstance(value, StructValue):
            self._code.error(node, "this value cannot be assigned on this target")
            return
        if len(place.parts) > 1 and self._overlap_badly(place, value):
            value = self.expressions.snapshot(value, node)
            assert isinstance(value, StructValue)
        for part, source in zip(place.parts.values(), value.parts.values(), strict=True):
            self.assign(part, source, node)

    @staticmethod
    def _overlap_badly(place: StructValue, value: StructValue) -> bool:
        """Whether assigning part after part would overwrite something that is still to be read."""
        written: set[str] = set()
        for part, source in zip(place.parts.values(), value.parts.values(), strict=True):
            if header_names(source) & written:
                return True
            written |= header_names(part)
        return False

    def _assign_header(self, place: HeaderPlace, value: Value, node: s.Node) -> None:
        if isinstance(value, HeaderPlace):
            if value.name != place.name:
                self._primitive("assign_header", (ir.Ref("header", place.name), ir.Ref("header", value.name)), node)
            return
        if isinstance(value, Nothing):
            return
        if not isinstance(value, HeaderValue):
            self._code.error(node, "this value cannot be assigned to a header on this target")
            return
        if value.parts is None:
            self.set_valid(place, False, node)
            return
        parts = value.parts
        if any(header_names(part) & header_names(place) for part in parts.values()):
            parts = {name: self.expressions.snapshot(part, node) for name, part in parts.items()}
        self.set_valid(place, True, node)
        for name, part in parts.items():
            self.assign(self.expressions.part(place, name, node), part, node)

    def _assign_union(self, place: UnionPlace, value: Value, node: s.Node) -> None:
        if isinstance(value, UnionPlace):
            for name, member in place.members.items():
                self.assign(member, value.members[name], node)
        elif isinstance(value, HeaderValue):
            self.reset(place, node)
        elif not isinstance(value, Nothing):
            self._code.error(node, "this value cannot be assigned to a header union on this target")

    def _assign_stack(self, place: StackPlace, value: Value, node: s.Node) -> None:
        if isinstance(value, StackPlace):
            if value.name == place.name:
                return
            element = place.type.element
            kind = "header_stack"
            if isinstance(element, t.Struct) and element.is_union:
                for position, source in enumerate(value.elements):
                    self.assign(place.elements[position], source, node)
                return
            self._primitive("assign_header_stack", (ir.Ref(kind, place.name), ir.Ref(kind, value.name)), node)
        elif isinstance(value, StackValue):
            if any(header_names(element) & header_names(place) for element in value.elements):
                copy = self.expressions.snapshot(value, node)
                self._assign_stack(place, copy, node)
                return
            for index, target in enumerate(place.elements):
                if index < len(value.elements):
                    self.assign(target, value.elements[index], node)
                else:
                    self.reset(target, node)
        elif not isinstance(value, Nothing):
            self._code.error(node, "this value cannot be assigned to a header stack on this target")
