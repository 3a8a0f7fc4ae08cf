"""Calls of functions of v1model and of methods of its objects, lowered to BMv2 primitives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from gradbed.switch.compiler import ir
from gradbed.switch.compiler import syntax as s
from gradbed.switch.compiler import types as t
from gradbed.switch.compiler.ir import operations as op
from gradbed.switch.compiler.ir.storage import SCALARS, STANDARD_METADATA
from gradbed.switch.compiler.ir.values import (
    ElementOf,
    ExternObject,
    HeaderValue,
    HeaderVariable,
    NoValue,
    PacketValue,
    SliceOf,
    StackCursor,
    StackVariable,
    StructValue,
    TextValue,
    UnionVariable,
    Value,
    default_value,
    value_type,
)
from gradbed.switch.compiler.lower.context import Code, Frame, value_of
from gradbed.switch.compiler.lower.inlining import arguments_of
from gradbed.switch.compiler.lower.values import as_scalar, assign, copied, part, read, set_valid
from gradbed.switch.state.externs import EXTERNS, ExternKind

DROP_PORT = 511
"""The port that mark_to_drop writes to egress_spec."""

_IN_BITS = 64
"""Limit for a number of a method of gradbed.p4: in C it is one uint64_t."""


@dataclass(frozen=True)
class _Call:
    """A call of a function, or of a method of an object (then `object` is its name in the control plane)."""

    node: s.Call
    target: s.CallTarget
    arguments: list[Value]
    code: Code
    object: str = ""

    def scalar(self, position: int) -> ir.Expr:
        return as_scalar(self.arguments[position], self.node, self.code)

    def constant(self, position: int, what: str) -> ir.Const:
        value = self.arguments[position]
        if isinstance(value, ir.Const):
            return value
        self.error(f"{what} must be known at compile time")
        return ir.Const(t.bit(32), 0)

    def emit(self, name: str, *parameters: ir.Parameter) -> None:
        self.code.primitive(self.node, name, *parameters)

    def error(self, message: str) -> None:
        self.code.error(self.node, message)

    def with_result(self, position: int, write: Callable[[ir.FieldRef], None]) -> None:
        """Let a primitive write a field, and move the result on if that argument is no plain field."""
        lvalue = self.arguments[position]
        if isinstance(lvalue, ir.FieldRef):
            write(lvalue)
        elif isinstance(lvalue, NoValue):
            write(self.code.storage.scalar(t.bit(32), "unused"))
        else:
            type_ = self.node.type if t.is_scalar(self.node.type or t.VOID) else None
            result = self.code.storage.scalar(type_ or _width_of(lvalue), "tmp")
            write(result)
            assign(lvalue, result, self.node, self.code)


_Handler = Callable[[_Call], None]
_FUNCTIONS: dict[str, _Handler] = {}
_METHODS: dict[tuple[str, str], _Handler] = {}


def _function(*names: str) -> Callable[[_Handler], _Handler]:
    """Register the rule for calls of these functions."""

    def register(handler: _Handler) -> _Handler:
        _FUNCTIONS.update(dict.fromkeys(names, handler))
        return handler

    return register


def _method(kind: str, name: str) -> Callable[[_Handler], _Handler]:
    """Register the rule for calls of this method of an extern."""

    def register(handler: _Handler) -> _Handler:
        _METHODS[kind, name] = handler
        return handler

    return register


def call_extern(node: s.Call, target: s.CallTarget, frame: Frame, code: Code) -> Value:
    name, handler = "", None
    if target.kind == "extern_function":
        handler, what = _FUNCTIONS.get(target.name), f"extern function '{target.name}'"
    else:
        assert target.receiver is not None
        receiver = value_of(target.receiver, frame, code)
        if isinstance(receiver, PacketValue):
            return _packet(node, target, frame, code)
        if not isinstance(receiver, ExternObject):
            code.error(node, "this object is not known here")
            return NoValue()
        name = receiver.name
        handler, what = _METHODS.get((receiver.kind, target.name)), f"'{receiver.kind}.{target.name}'"
        if receiver.kind in EXTERNS:
            handler = partial(_gradbed_method, EXTERNS[receiver.kind])
    if handler is None:
        code.error(node, f"{what} is not part of v1model")
        return default_value(target.return_type)
    arguments = arguments_of(target.parameters, target.bound, frame, code).values
    handler(_Call(node, target, arguments, code, name))
    return NoValue()


# ---- Contents of values ----


def _flatten(value: Value, node: s.Node, code: Code) -> list[ir.Expr]:
    """Return all scalars in a value, in order."""
    value = read(value, node, code)
    inner: list[Value]
    match value:
        case ir.Expr():
            return [value]
        case StructValue(parts=parts) | UnionVariable(members=parts):
            inner = list(parts.values())
        case HeaderVariable():
            inner = [part(value, name, node, code) for name in value.type.fields]
        case HeaderValue(parts=dict(parts)):
            inner = list(parts.values())
        case StackVariable():
            inner = list(value.elements)
        case TextValue() | NoValue():
            inner = []
        case _:
            code.error(node, "this value has no fixed form on this target")
            inner = []
    return [item for each in inner for item in _flatten(each, node, code)]


def _fields(value: Value, node: s.Node, code: Code) -> list[ir.Expr]:
    """Return scalars as metadata fields or constants, with their present values.

    Fields of headers are copied, since BMv2 leaves out the fields of headers that are not valid. So are arguments of
    actions, since a calculation is outside of the action that asks for it.
    """
    result: list[ir.Expr] = []
    for item in _flatten(value, node, code):
        if isinstance(item, ir.RuntimeData):
            copy = code.storage.scalar(item.type, "tmp")
            code.assign(copy, item, node)
            item = copy
        plain = isinstance(item, ir.FieldRef) and (_is_metadata(item) or isinstance(item.type, t.Varbit))
        result.append(item if plain else copied(item, node, code))
    return result


def _is_metadata(field: ir.FieldRef) -> bool:
    return field.header in (SCALARS, STANDARD_METADATA)


# ---- Functions ----


@_function("static_assert")
def _static_assert(call: _Call) -> None:
    """Do nothing: the checker has evaluated it."""


@_function("assert", "assume")
def _assert(call: _Call) -> None:
    call.emit(call.target.name, call.scalar(0))


@_function("mark_to_drop")
def _mark_to_drop(call: _Call) -> None:
    """Drop the packet by the primitive of BMv2, or set the fields of a copy of its metadata, such as a parameter."""
    given = call.arguments[0] if call.arguments else None
    if not isinstance(given, StructValue) or _is_packet_metadata(given):
        call.emit("mark_to_drop", ir.Ref("header", STANDARD_METADATA))
        return
    for name, value in (("egress_spec", DROP_PORT), ("mcast_grp", 0)):
        field = given.parts[name]
        type_ = value_type(field)
        assert type_ is not None
        assign(field, ir.Const(type_, value), call.node, call.code)


def _is_packet_metadata(given: StructValue) -> bool:
    field = given.parts.get("egress_spec")
    return isinstance(field, ir.FieldRef) and field.header == STANDARD_METADATA


@_function("truncate")
def _truncate(call: _Call) -> None:
    call.emit("truncate", call.scalar(0))


@_function("random")
def _random(call: _Call) -> None:
    low, high = call.scalar(1), call.scalar(2)
    call.with_result(0, lambda field: call.emit("modify_field_rng_uniform", field, low, high))


@_function("hash")
def _hash(call: _Call) -> None:
    _, _, _, data, _ = call.arguments
    chosen = call.constant(1, "the algorithm of a hash")
    fields = _fields(data, call.node, call.code)
    calculation = ir.Ref("calculation", call.code.program.add_calculation(chosen.name, fields, False, 0, 0))
    low, size = call.scalar(2), call.scalar(4)
    name = "modify_field_with_hash_based_offset"
    call.with_result(0, lambda field: call.emit(name, field, low, calculation, size))


@_function("digest")
def _digest(call: _Call) -> None:
    receiver = call.scalar(0)
    fields: list[ir.FieldRef] = []
    for item in _flatten(call.arguments[1], call.node, call.code):
        # BMv2 reads the fields when ingress ends: keep what they are now.
        copy = call.code.storage.scalar(item.type, "digest")
        call.code.assign(copy, item, call.node)
        fields.append(copy)
    number = call.code.program.add_digest(call.target.parameters[1].type, fields, call.node)
    call.emit("generate_digest", receiver, ir.LoweredNumber(number))


@_function("clone", "clone3", "clone_preserving_field_list")
def _clone(call: _Call) -> None:
    kind = call.constant(0, "the type of a clone")
    name = "clone_ingress_pkt_to_egress" if kind.name == "I2E" else "clone_egress_pkt_to_egress"
    number = _field_list(call, 2) if len(call.arguments) > 2 else call.code.program.field_lists.empty()
    call.emit(name, call.scalar(1), ir.LoweredNumber(number))


@_function("recirculate", "recirculate_preserving_field_list", "resubmit", "resubmit_preserving_field_list")
def _recirculate_or_resubmit(call: _Call) -> None:
    number = _field_list(call, 0)
    call.emit(call.target.name.removesuffix("_preserving_field_list"), ir.LoweredNumber(number))


def _field_list(call: _Call, position: int) -> int:
    """Return the number of the field list of a copy of the packet: by its index, or of the given fields."""
    lists = call.code.program.field_lists
    if call.target.name.endswith("_preserving_field_list"):
        return lists.annotated(call.constant(position, "the index of a field list").value)
    items = _flatten(call.arguments[position], call.node, call.code)
    # Headers travel in the packet.
    return lists.add([item for item in items if isinstance(item, ir.FieldRef) and _is_metadata(item)])


@_function("log_msg")
def _log_msg(call: _Call) -> None:
    text, *values = call.arguments
    if not isinstance(text, TextValue):
        call.error("the message must be a string")
        return
    items = tuple(_flatten(values[0], call.node, call.code)) if values else ()
    call.emit("log_msg", ir.LoweredText(text.text), ir.LoweredVector(items))


@_function("verify")
def _verify(call: _Call) -> None:
    if call.code.kind != "parser":
        call.error("'verify' can only be called in a parser")
        return
    condition, error = call.scalar(0), call.scalar(1)
    if condition != op.TRUE:
        call.code.emit(ir.LoweredVerify(call.node.loc, call.node.end, condition, error))


@_function("update_checksum", "update_checksum_with_payload", "verify_checksum", "verify_checksum_with_payload")
def _checksum(call: _Call) -> None:
    name, node, code = call.target.name, call.node, call.code
    _, data, checksum, _ = call.arguments
    if code.kind != "checksum":
        call.error(f"'{name}' can only be called in the control that verifies or computes checksums")
        return
    if not isinstance(checksum, ir.FieldRef):
        call.error("the checksum must be a field")
        return
    chosen = call.constant(3, "the algorithm of a checksum")
    fields = [piece for item in _flatten(data, node, code) for piece in _joined(item)]
    for item in fields:
        if not isinstance(item, (ir.FieldRef, ir.Const)):
            call.error("a checksum covers fields and constants only on this target")
    payload = name.endswith("_with_payload")
    calculation = code.program.add_calculation(chosen.name, fields, payload, node.loc, node.end)
    primitive = "verify_checksum" if name.startswith("verify") else "update_checksum"
    call.emit(primitive, call.scalar(0), checksum, ir.Ref("calculation", calculation))


# ---- Counters, meters, registers ----


@_method("counter", "count")
def _count(call: _Call) -> None:
    call.emit("count", ir.Ref("counter_array", call.object), call.scalar(0))


@_method("direct_counter", "count")
def _direct_count(call: _Call) -> None:
    """Do nothing: each hit of the table of the counter counts."""


@_method("meter", "execute_meter")
def _execute_meter(call: _Call) -> None:
    meter, index = ir.Ref("meter_array", call.object), call.scalar(0)
    call.with_result(1, lambda field: call.emit("execute_meter", meter, index, field))


@_method("direct_meter", "read")
def _direct_meter(call: _Call) -> None:
    """Copy the field that BMv2 writes at each hit, whether the action reads it or not."""
    results = call.code.program.direct_meter_results
    result = results.get(call.object)
    if result is None:
        result = results[call.object] = call.code.storage.scalar(call.target.parameters[0].type, "colour")
    (lvalue,) = call.arguments
    if not isinstance(lvalue, NoValue):
        assign(lvalue, result, call.node, call.code)


@_method("register", "read")
def _register_read(call: _Call) -> None:
    register, index = ir.Ref("register_array", call.object), call.scalar(1)
    if isinstance(call.arguments[0], (StructValue, HeaderVariable)):
        call.error("registers hold numbers only on this target")
        return
    call.with_result(0, lambda field: call.emit("register_read", field, register, index))


@_method("register", "write")
def _register_write(call: _Call) -> None:
    call.emit("register_write", ir.Ref("register_array", call.object), call.scalar(0), call.scalar(1))


def _gradbed_method(kind: ExternKind, call: _Call) -> None:
    """Lower a method of an extern of gradbed.p4, with parameters in the order of its declaration."""
    parameters: list[ir.Parameter] = [ir.Ref("extern", call.object)]
    result = None
    for position, role in enumerate(kind.methods[call.target.name]):
        declared = call.target.parameters[position]
        if role == "key":
            fields = _fields(call.arguments[position], call.node, call.code)
            parameters.append(ir.Ref("calculation", call.code.program.add_calculation("xxh64", fields, False, 0, 0)))
            continue
        what = f"'{declared.name}' of {kind.name}.{call.target.name}"
        if not t.is_scalar(declared.type):
            call.error(f"{what} is of type {declared.type}: {role} takes bits or bool")
            return
        if role == "out":
            result = position
            continue
        if (width := t.width_bits(declared.type) or 0) > _IN_BITS:
            call.error(f"{what} has {width} bits; in takes up to {_IN_BITS}")
            return
        parameters.append(call.scalar(position))
    operation = kind.operation(call.target.name)
    if result is None:
        call.emit(operation, *parameters)
        return
    before, after = parameters[: 1 + result], parameters[1 + result :]
    call.with_result(result, lambda field: call.emit(operation, *before, field, *after))


# ---- Packet_in and packet_out ----


def _packet(node: s.Call, target: s.CallTarget, frame: Frame, code: Code) -> Value:
    name = target.name
    wanted, where = ("deparser", "the deparser") if name == "emit" else ("parser", "a parser")
    if code.kind != wanted:
        code.error(node, f"'{name}' can only be called in {where}")
        return NoValue() if name == "emit" else default_value(target.return_type)
    match name:
        case "emit":
            (value,) = arguments_of(target.parameters, target.bound, frame, code).values
            for header in _header_order(read(value, node, code), node, code):
                code.primitive(node, "emit", ir.Ref("header", header))
        case "extract":
            _extract(node, target, frame, code)
        case "lookahead":
            return _lookahead(node, target, code)
        case "advance":
            (bits,) = arguments_of(target.parameters, target.bound, frame, code).values
            code.emit(ir.LoweredAdvance(node.loc, node.end, as_scalar(bits, node, code)))
        case _:
            # length(): the parser sees the packet before anything is removed from it or put in.
            return ir.FieldRef(t.bit(32), STANDARD_METADATA, "packet_length")
    return NoValue()


def _extract(node: s.Call, target: s.CallTarget, frame: Frame, code: Code) -> None:
    type_ = target.parameters[0].type
    if not isinstance(type_, t.Struct) or not type_.is_header:
        code.error(node, f"only headers can be extracted, not {type_}")
        return
    lvalue, *rest = arguments_of(target.parameters, target.bound, frame, code).values
    length = as_scalar(rest[0], node, code) if rest else None
    has_varbit = any(isinstance(inner, t.Varbit) for inner in type_.fields.values())
    if has_varbit != (length is not None):
        wanted = "needs the length of its varbit field" if has_varbit else "has no varbit field"
        code.error(node, f"header '{type_}' {wanted}")
        return
    if isinstance(lvalue, NoValue):
        lvalue = code.storage.header(type_, "skipped")
    match lvalue:
        case HeaderVariable():
            code.emit(ir.LoweredExtract(node.loc, node.end, "regular", lvalue.name, "", length))
        case StackCursor(which="next"):
            kind = "union_stack" if lvalue.member else "stack"
            code.emit(ir.LoweredExtract(node.loc, node.end, kind, lvalue.stack.name, lvalue.member, length))
        case _:
            copy = code.storage.header(type_, "extracted")
            code.emit(ir.LoweredExtract(node.loc, node.end, "regular", copy.name, "", length))
            assign(lvalue, copy, node, code)


def _lookahead(node: s.Call, target: s.CallTarget, code: Code) -> Value:
    type_ = target.return_type
    if t.width_bits(type_) is None or _has_varbit(type_):
        code.error(node, f"lookahead needs a type of fixed size, not {type_}")
        return default_value(type_)
    value = code.storage.variable(type_, "lookahead")
    fields = [field for field in _flatten(value, node, code) if isinstance(field, ir.FieldRef)]
    widths = [t.width_bits(field.type) or 0 for field in fields]
    if sum(widths) > t.MAX_WIDTH_BITS:
        code.error(node, f"lookahead takes at most {t.MAX_WIDTH_BITS} bits, {type_} has {sum(widths)}")
    elif fields == [value]:
        code.emit(ir.LoweredLookahead(node.loc, node.end, fields[0], 0, widths[0]))
    elif fields:
        # One look, so that a packet which ends inside fails it whole (P4_16, section 13.8.3), then its slices.
        below = sum(widths)
        bits = code.storage.scalar(t.bit(below), "bits")
        code.emit(ir.LoweredLookahead(node.loc, node.end, bits, 0, below))
        if isinstance(value, HeaderVariable):
            set_valid(value, True, node, code)
        for field, width in zip(fields, widths, strict=True):
            below -= width
            code.assign(field, op.cast(op.slice_of(bits, below + width - 1, below), field.type), node)
    return value


def _header_order(value: Value, node: s.Node, code: Code) -> list[str]:
    """Return the headers in a value in the order in which they are emitted."""
    inner: list[Value]
    match value:
        case HeaderVariable():
            return [value.name]
        case StackVariable():
            inner = list(value.elements)
        case UnionVariable(members=parts) | StructValue(parts=parts):
            inner = list(parts.values())
        case HeaderValue(parts=None):
            inner = []
        case _:
            code.error(node, "only headers can be emitted")
            inner = []
    return [name for each in inner for name in _header_order(each, node, code)]


def _joined(item: ir.Expr) -> list[ir.Expr]:
    """Return parts that together have the same bits: a and b for `a ++ b`, zeros and the number for a wider one."""
    if isinstance(item, ir.Operation) and item.right is not None and item.operator == "++":
        return _joined(item.left) + _joined(item.right)
    if isinstance(item, ir.Operation) and item.operator == "cast" and isinstance(item.type, t.Bit):
        inner = item.left.type
        if isinstance(inner, t.Bit) and inner.width < item.type.width:
            return [ir.Const(t.bit(item.type.width - inner.width), 0), *_joined(item.left)]
    return [item]


def _width_of(lvalue: Value) -> t.Type:
    match lvalue:
        case SliceOf():
            return t.bit(lvalue.high - lvalue.low + 1)
        case ElementOf():
            type_: t.Type = lvalue.stack.type.element
            for name in lvalue.path:
                assert isinstance(type_, t.Struct)
                type_ = type_.fields[name]
            return type_
    return t.bit(64)


def _has_varbit(type_: t.Type) -> bool:
    if isinstance(type_, t.Struct):
        return any(map(_has_varbit, type_.fields.values()))
    return isinstance(type_, t.Varbit)
