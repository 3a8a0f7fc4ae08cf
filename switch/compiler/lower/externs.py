"""Calls of v1model's functions and of methods of its objects, as BMv2 primitives."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from switch.compiler import syntax as s
from switch.compiler import types as t
from switch.compiler.lower import ir
from switch.compiler.lower import operations as op
from switch.compiler.lower.expressions import Expressions, default_value
from switch.compiler.lower.places import (
    ElementOf,
    ExternObject,
    HeaderPlace,
    HeaderValue,
    Nothing,
    PacketValue,
    Place,
    SliceOf,
    StackCursor,
    StackPlace,
    StructValue,
    TextValue,
    UnionPlace,
    Value,
)
from switch.compiler.lower.scope import Code, Frame
from switch.compiler.lower.storage import STANDARD_METADATA

if TYPE_CHECKING:
    from switch.compiler.lower.assignments import Assignments
    from switch.compiler.lower.calls import Calls


class Externs:
    assignments: Assignments
    calls: Calls
    expressions: Expressions

    def __init__(self, code: Code) -> None:
        self._code = code
        functions: dict[str, Callable[[s.Call, s.CallTarget, list[Value]], Value]] = {
            "assert": self._assert,
            "assume": self._assert,
            "clone": self._clone,
            "clone3": self._clone,
            "clone_preserving_field_list": self._clone,
            "digest": self._digest,
            "hash": self._hash,
            "log_msg": self._log_msg,
            "mark_to_drop": self._mark_to_drop,
            "random": self._random,
            "recirculate": self._again,
            "recirculate_preserving_field_list": self._again,
            "resubmit": self._again,
            "resubmit_preserving_field_list": self._again,
            "static_assert": self._static_assert,
            "truncate": self._truncate,
            "update_checksum": self._checksum,
            "update_checksum_with_payload": self._checksum,
            "verify": self._verify,
            "verify_checksum": self._checksum,
            "verify_checksum_with_payload": self._checksum,
        }
        self._functions = functions
        self._methods: dict[tuple[str, str], Callable[[s.Call, ExternObject, list[Value]], Value]] = {
            ("counter", "count"): self._count,
            ("direct_counter", "count"): self._nothing,
            ("direct_meter", "read"): self._direct_meter,
            ("meter", "execute_meter"): self._execute_meter,
            ("register", "read"): self._register_read,
            ("register", "write"): self._register_write,
        }

    def call(self, node: s.Call, target: s.CallTarget, frame: Frame) -> Value:
        if target.kind == "extern_method":
            return self._method(node, target, frame)
        handler = self._functions.get(target.name)
        if handler is None:
            self._code.error(node, f"extern function '{target.name}' is not part of v1model")
            return default_value(target.return_type)
        return handler(node, target, self.calls.arguments(target.parameters, target.bound, frame))

    def _method(self, node: s.Call, target: s.CallTarget, frame: Frame) -> Value:
        assert target.receiver is not None
        receiver = self.expressions.value(target.receiver, frame)
        if isinstance(receiver, PacketValue):
            return self._packet(node, target, frame)
        if not isinstance(receiver, ExternObject):
            self._code.error(node, "this object is not known here")
            return Nothing()
        handler = self._methods.get((receiver.kind, target.name))
        if handler is None:
            self._code.error(node, f"'{receiver.kind}.{target.name}' is not part of v1model")
            return default_value(target.return_type)
        return handler(node, receiver, self.calls.arguments(target.parameters, target.bound, frame))

    # --- helpers ---

    def _emit(self, node: s.Node, name: str, *parameters: ir.Parameter) -> None:
        self._code.emit(ir.Primitive(node.loc, node.end, name, parameters))

    def _scalar(self, value: Value, node: s.Node) -> ir.Expr:
        return self.expressions.as_scalar(value, node)

    def _constant(self, value: Value, node: s.Node, what: str) -> ir.Const:
        if isinstance(value, ir.Const):
            return value
        self._code.error(node, f"{what} must be known at compile time")
        return ir.Const(t.bit(32), 0)

    def _with_result(self, place: Value, node: s.Node, write: Callable[[ir.FieldRef], None]) -> None:
        """Let a primitive write a field, and move the result on if it was not meant for a plain field."""
        if isinstance(place, ir.FieldRef):
            write(place)
            return
        if isinstance(place, Nothing):
            write(self._code.program.storage.scalar(t.bit(32), "unused"))
            return
        type_ = node.type if isinstance(node, s.Expression) and t.is_scalar(node.type or t.VOID) else None
        result = self._code.program.storage.scalar(type_ or _width_of(place), "tmp")
        write(result)
        self.assignments.assign(place, result, node)

    def flatten(self, value: Value, node: s.Node) -> list[ir.Expr]:
        """All scalars in a value, in order."""
        value = self.expressions.read(value, node)
        if isinstance(value, ir.Expr):
            return [value]
        if isinstance(value, StructValue):
            return [item for part in value.parts.values() for item in self.flatten(part, node)]
        if isinstance(value, HeaderPlace):
            return [
                item
                for name in value.type.fields
                for item in self.flatten(self.expressions.part(value, name, node), node)
            ]
        if isinstance(value, HeaderValue) and value.parts is not None:
            return [item for part in value.parts.values() for item in self.flatten(part, node)]
        if isinstance(value, StackPlace):
            return [item for element in value.elements for item in self.flatten(element, node)]
        if isinstance(value, UnionPlace):
            return [item for member in value.members.values() for item in self.flatten(member, node)]
        if isinstance(value, (TextValue, Nothing)):
            return []
        self._code.error(node, "this value has no fixed form on this target")
        return []

    def _fields(self, value: Value, node: s.Node) -> list[ir.Expr]:
        """Scalars as metadata fields or constants, with the values they have now.

        Fields of headers are copied: BMv2 leaves out the fields of headers that are not valid.
        """
        result: list[ir.Expr] = []
        for item in self.flatten(value, node):
            plain = isinstance(item, ir.Const) or (
                isinstance(item, ir.FieldRef)
                and (item.header in ("scalars", "standard_metadata") or isinstance(item.type, t.Varbit))
            )
            result.append(item if plain else self._copied(item, node))
        return result

    def _copied(self, item: ir.Expr, node: s.Node) -> ir.Expr:
        copy = self.expressions.snapshot(item, node)
        assert isinstance(copy, ir.Expr)
        return copy

    # --- functions ---

    def _nothing(self, node: s.Call, receiver: ExternObject, arguments: list[Value]) -> Value:
        return Nothing()

    def _assert(self, node: s.Call, target: s.CallTarget, arguments: list[Value]) -> Value:
        self._emit(node, target.name, self._scalar(arguments[0], node))
        return Nothing()

    def _static_assert(self, node: s.Call, target: s.CallTarget, arguments: list[Value]) -> Value:
        return op.TRUE

    def _mark_to_drop(self, node: s.Call, target: s.CallTarget, arguments: list[Value]) -> Value:
        self._emit(node, "mark_to_drop", ir.Ref("header", "standard_metadata"))
        return Nothing()

    def _truncate(self, node: s.Call, target: s.CallTarget, arguments: list[Value]) -> Value:
        self._emit(node, "truncate", self._scalar(arguments[0], node))
        return Nothing()

    def _random(self, node: s.Call, target: s.CallTarget, arguments: list[Value]) -> Value:
        low, high = self._scalar(arguments[1], node), self._scalar(arguments[2], node)
        self._with_result(
            arguments[0], node, lambda field: self._emit(node, "modify_field_rng_uniform", field, low, high)
        )
        return Nothing()

    def _hash(self, node: s.Call, target: s.CallTarget, arguments: list[Value]) -> Value:
        result, algorithm, base, data, limit = arguments
        chosen = self._constant(algorithm, node, "the algorithm of a hash")
        fields = self._fields(data, node)
        calculation = self._code.program.add_calculation(chosen.name, list(fields), False, 0, 0)
        low, size = self._scalar(base, node), self._scalar(limit, node)
        self._with_result(
            result,
            node,
            lambda field: self._emit(
                node,
                "modify_field_with_hash_based_offset",
                field,
                low,
                ir.Ref("calculation", calculation),
                size,
            ),
        )
        return Nothing()

    def _digest(self, node: s.Call, target: s.CallTarget, arguments: list[Value]) -> Value:
        receiver = self._scalar(arguments[0], node)
        fields: list[ir.FieldRef] = []
        for item in self.flatten(arguments[1], node):
            # BMv2 reads the fields when ingress ends: keep what they are now.
            copy = self._code.program.storage.scalar(item.type, "digest")
            self._code.emit(ir.Assign(node.loc, node.end, copy, item))
            fields.append(copy)
        number = self._code.program.add_digest(target.parameters[1].type, fields, node)
        self._emit(node, "generate_digest", receiver, ir.Number(number))
        return Nothing()

    def _clone(self, node: s.Call, target: s.CallTarget, arguments: list[Value]) -> Value:
        kind = self._constant(arguments[0], node, "the type of a clone")
        name = "clone_ingress_pkt_to_egress" if kind.name == "I2E" else "clone_egress_pkt_to_egress"
        number = (
            self._field_list(node, target, arguments[2])
            if len(arguments) > 2
            else self._code.program.empty_field_list()
        )
        self._emit(node, name, self._scalar(arguments[1], node), ir.Number(number))
        return Nothing()

    def _again(self, node: s.Call, target: s.CallTarget, arguments: list[Value]) -> Value:
        number = self._field_list(node, target, arguments[0])
        self._emit(node, target.name.removesuffix("_preserving_field_list"), ir.Number(number))
        return Nothing()

    def _field_list(self, node: s.Call, target: s.CallTarget, kept: Value) -> int:
        """The number of the list of what a copy of the packet keeps: by its index, or the fields themselves."""
        if target.name.endswith("_preserving_field_list"):
            index = self._constant(kept, node, "the index of a field list")
            return self._code.program.field_list(index.value)
        fields = [item for item in self.flatten(kept, node) if isinstance(item, ir.FieldRef)]
        # Headers travel in the packet.
        metadata = [item for item in fields if item.header in ("scalars", STANDARD_METADATA)]
        return self._code.program.add_field_list(metadata)

    def _log_msg(self, node: s.Call, target: s.CallTarget, arguments: list[Value]) -> Value:
        text = arguments[0]
        if not isinstance(text, TextValue):
            self._code.error(node, "the message must be a string")
            return Nothing()
        items = tuple(self.flatten(arguments[1], node)) if len(arguments) > 1 else ()
        self._emit(node, "log_msg", ir.Text(text.text), ir.Vector(items))
        return Nothing()

    def _verify(self, node: s.Call, target: s.CallTarget, arguments: list[Value]) -> Value:
        if self._code.kind != "parser":
            self._code.error(node, "'verify' can only be called in a parser")
            return Nothing()
        condition, error = (self._scalar(argument, node) for argument in arguments)
        if condition != op.TRUE:
            self._code.emit(ir.Verify(node.loc, node.end, condition, error))
        return Nothing()

    def _checksum(self, node: s.Call, target: s.CallTarget, arguments: list[Value]) -> Value:
        condition, data, checksum, algorithm = arguments
        if self._code.kind != "checksum":
            self._code.error(
                node, f"'{target.name}' can only be called in the control that verifies or computes checksums"
            )
            return Nothing()
        if not isinstance(checksum, ir.FieldRef):
            self._code.error(node, "the checksum must be a field")
            return Nothing()
        chosen = self._constant(algorithm, node, "the algorithm of a checksum")
        fields = [part for item in self.flatten(data, node) for part in _joined(item)]
        for item in fields:
            if not isinstance(item, (ir.FieldRef, ir.Const)):
                self._code.error(node, "a checksum covers fields and constants only on this target")
        payload = target.name.endswith("_with_payload")
        calculation = self._code.program.add_calculation(chosen.name, fields, payload, node.loc, node.end)
        self._emit(
            node,
            "verify_checksum" if target.name.startswith("verify") else "update_checksum",
            self._scalar(condition, node),
            checksum,
            ir.Ref("calculation", calculation),
        )
        return Nothing()

    # --- counters, meters, registers ---

    def _count(self, node: s.Call, receiver: ExternObject, arguments: list[Value]) -> Value:
        self._emit(node, "count", ir.Ref("counter_array", receiver.name), self._scalar(arguments[0], node))
        return Nothing()

    def _execute_meter(self, node: s.Call, receiver: ExternObject, arguments: list[Value]) -> Value:
        index = self._scalar(arguments[0], node)
        meter = ir.Ref("meter_array", receiver.name)
        self._with_result(arguments[1], node, lambda field: self._emit(node, "execute_meter", meter, index, field))
        return Nothing()

    def _direct_meter(self, node: s.Call, receiver: ExternObject, arguments: list[Value]) -> Value:
        place = arguments[0]
        if not isinstance(place, ir.FieldRef):
            self._code.error(node, "the result of a direct meter must go into a field")
            return Nothing()
        known = self._code.program.direct_meter_results.setdefault(receiver.name, place)
        if known != place:
            self._code.error(node, "all calls of read() of one direct meter must write the same field")
        return Nothing()

    def _register_read(self, node: s.Call, receiver: ExternObject, arguments: list[Value]) -> Value:
        index = self._scalar(arguments[1], node)
        register = ir.Ref("register_array", receiver.name)
        place = arguments[0]
        if isinstance(place, (StructValue, HeaderPlace)):
            self._code.error(node, "registers hold numbers only on this target")
            return Nothing()
        self._with_result(place, node, lambda field: self._emit(node, "register_read", field, register, index))
        return Nothing()

    def _register_write(self, node: s.Call, receiver: ExternObject, arguments: list[Value]) -> Value:
        index, value = self._scalar(arguments[0], node), self._scalar(arguments[1], node)
        self._emit(node, "register_write", ir.Ref("register_array", receiver.name), index, value)
        return Nothing()

    # --- packet_in and packet_out ---

    def _packet(self, node: s.Call, target: s.CallTarget, frame: Frame) -> Value:
        name = target.name
        if name == "emit":
            return self._emit_headers(node, target, frame)
        if self._code.kind != "parser":
            self._code.error(node, f"'{name}' can only be called in a parser")
            return default_value(target.return_type)
        if name == "extract":
            return self._extract(node, target, frame)
        if name == "lookahead":
            return self._lookahead(node, target)
        if name == "advance":
            (bits,) = self.calls.arguments(target.parameters, target.bound, frame)
            self._code.emit(ir.Advance(node.loc, node.end, self._scalar(bits, node)))
            return Nothing()
        # length(): the parser sees the packet before anything is removed from it or put in.
        return ir.FieldRef(t.bit(32), STANDARD_METADATA, "packet_length")

    def _extract(self, node: s.Call, target: s.CallTarget, frame: Frame) -> Value:
        type_ = target.parameters[0].type
        if not isinstance(type_, t.Struct) or not type_.is_header:
            self._code.error(node, f"only headers can be extracted, not {type_}")
            return Nothing()
        arguments = self.calls.arguments(target.parameters, target.bound, frame)
        place = arguments[0]
        length = None
        has_varbit = any(isinstance(inner, t.Varbit) for inner in type_.fields.values())
        if len(arguments) == 2:
            length = self._scalar(arguments[1], node)
        if has_varbit != (length is not None):
            wanted = "needs the length of its varbit field" if has_varbit else "has no varbit field"
            self._code.error(node, f"header '{type_}' {wanted}")
            return Nothing()
        if isinstance(place, Nothing):
            place = self._code.program.storage.header(type_, "skipped")
        if isinstance(place, HeaderPlace):
            self._code.emit(ir.Extract(node.loc, node.end, "regular", place.name, "", length))
        elif isinstance(place, StackCursor) and place.which == "next":
            kind = "union_stack" if place.member else "stack"
            self._code.emit(ir.Extract(node.loc, node.end, kind, place.stack.name, place.member, length))
        else:
            copy = self._code.program.storage.header(type_, "extracted")
            self._code.emit(ir.Extract(node.loc, node.end, "regular", copy.name, "", length))
            self.assignments.assign(place, copy, node)
        return Nothing()

    def _lookahead(self, node: s.Call, target: s.CallTarget) -> Value:
        type_ = target.return_type
        if t.width_bits(type_) is None or _has_varbit(type_):
            self._code.error(node, f"lookahead needs a type of fixed size, not {type_}")
            return default_value(type_)
        value: Place = self._code.program.storage.variable(type_, "lookahead")
        if isinstance(value, HeaderPlace):
            self.assignments.set_valid(value, True, node)
        offset = 0
        for field in self.flatten(value, node):
            assert isinstance(field, ir.FieldRef)
            width = t.width_bits(field.type)
            assert width is not None
            self._code.emit(ir.Lookahead(node.loc, node.end, field, offset, width))
            offset += width
        return value

    def _emit_headers(self, node: s.Call, target: s.CallTarget, frame: Frame) -> Value:
        if self._code.kind != "deparser":
            self._code.error(node, "'emit' can only be called in the deparser")
            return Nothing()
        (value,) = self.calls.arguments(target.parameters, target.bound, frame)
        for name in self._header_order(self.expressions.read(value, node), node):
            self._emit(node, "emit", ir.Ref("header", name))
        return Nothing()

    def _header_order(self, value: Value, node: s.Node) -> list[str]:
        if isinstance(value, HeaderPlace):
            return [value.name]
        if isinstance(value, StackPlace):
            return [name for element in value.elements for name in self._header_order(element, node)]
        if isinstance(value, UnionPlace):
            return [member.name for member in value.members.values()]
        if isinstance(value, StructValue):
            return [name for part in value.parts.values() for name in self._header_order(part, node)]
        if isinstance(value, HeaderValue) and value.parts is None:
            return []
        self._code.error(node, "only headers can be emitted")
        return []


def _joined(item: ir.Expr) -> list[ir.Expr]:
    """What joined gives the same bits: `a ++ b` is a and b, a wider number is zeros and the number."""
    if isinstance(item, ir.Operation) and item.right is not None and item.operator == "++":
        return _joined(item.left) + _joined(item.right)
    if isinstance(item, ir.Operation) and item.operator == "cast" and isinstance(item.type, t.Bit):
        inner = item.left.type
        if isinstance(inner, t.Bit) and inner.width < item.type.width:
            return [ir.Const(t.bit(item.type.width - inner.width), 0), *_joined(item.left)]
    return [item]


def _width_of(place: Value) -> t.Type:
    if isinstance(place, SliceOf):
        return t.bit(place.high - place.low + 1)
    if isinstance(place, ElementOf):
        type_: t.Type = place.stack.type.element
        for name in place.path:
            assert isinstance(type_, t.Struct)
            type_ = type_.fields[name]
        return type_
    return t.bit(64)


def _has_varbit(type_: t.Type) -> bool:
    if isinstance(type_, t.Struct):
        return any(map(_has_varbit, type_.fields.values()))
    return isinstance(type_, t.Varbit)
