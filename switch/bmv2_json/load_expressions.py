"""The loader of expressions and parameters, which resolves their names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradbed.switch.bmv2_json import expressions as ex
from gradbed.switch.bmv2_json.model import HeaderInstance, HeaderType, StackInstance, UnionInstance
from gradbed.switch.bmv2_json.reader import JsonNode

if TYPE_CHECKING:
    from collections.abc import Mapping

_ARITHMETIC = {"+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>"}
_COMPARISONS = {"==", "!=", "<", "<=", ">", ">="}
_CASTS = {"two_comp_mod", "usat_cast", "sat_cast"}
_MAX_CAST_WIDTH = 1 << 16
VALID = "$valid$"


class NameTable:
    """The headers, stacks, unions and other objects that expressions may refer to."""

    def __init__(self) -> None:
        self.types: dict[str, HeaderType] = {}
        self.headers: dict[str, HeaderInstance] = {}
        self.stacks: dict[str, StackInstance] = {}
        self.unions: dict[str, UnionInstance] = {}
        self.union_stacks: dict[str, StackInstance] = {}
        self.calculations: set[str] = set()
        self.registers: set[str] = set()
        self.counters: set[str] = set()
        self.meters: set[str] = set()
        self.externs: set[str] = set()

    def header_type(self, reference: ex.HeaderReference) -> HeaderType:
        if isinstance(reference, ex.NamedHeader):
            return self.headers[reference.name].type
        if isinstance(reference, ex.StackElement):
            return self.headers[self.stacks[reference.stack].elements[0]].type
        return self.headers[self.union(reference.union).members[reference.member]].type

    def union(self, reference: ex.UnionReference) -> UnionInstance:
        if isinstance(reference, ex.NamedUnion):
            return self.unions[reference.name]
        return self.unions[self.union_stacks[reference.stack].elements[0]]


def named(node: JsonNode, what: str, names: Mapping[str, object] | set[str]) -> str:
    """Return the name in `node`, which must be one of `names`."""
    name = node.text()
    if name not in names:
        raise node.error(f"no {what} named '{name[:80]}'")
    return name


def field_of(names: NameTable, header: ex.HeaderReference, node: JsonNode) -> ex.Data:
    """Return a field by name, or the validity of the header for $valid$."""
    wanted = node.text()
    if wanted == VALID:
        return ex.FromBoolean(ex.IsValid(header))
    for index, field in enumerate(names.header_type(header).fields):
        if field.name == wanted:
            return ex.FieldReference(header, index)
    raise node.error(f"no field '{wanted[:80]}' in header type {names.header_type(header).name}")


def field(names: NameTable, node: JsonNode) -> ex.Data:
    """Return a [header, field] pair, where p4c also writes a bare operation for an element chosen at run time."""
    header, member = node.pair()
    if isinstance(header.value, dict):
        element = _operation(names, header)
        if not isinstance(element, ex.HeaderReference):
            raise header.error("expected a header, got " + _kind(element))
        return field_of(names, element, member)
    return field_of(names, ex.NamedHeader(named(header, "header", names.headers)), member)


def target_field(names: NameTable, node: JsonNode) -> ex.FieldReference:
    """Return a [header, field] pair that can be written."""
    target = field(names, node)
    if not isinstance(target, ex.FieldReference):
        raise node.error("this field cannot be written")
    return target


def key_width(names: NameTable, node: JsonNode, value: ex.Data) -> int:
    """Return the bits of an element of a key: a field, a validity or lookahead bits."""
    if isinstance(value, ex.FieldReference):
        kind = names.header_type(value.header).fields[value.index]
        if kind.variable:
            raise node.error("a variable-length field cannot be a key")
        return kind.width
    if isinstance(value, ex.Lookahead):
        return value.width
    if isinstance(value, ex.FromBoolean):
        return 1
    raise node.error("a key is made of fields")


def data(names: NameTable, node: JsonNode) -> ex.Data:
    value = parameter(names, node)
    if not isinstance(value, ex.Data):
        raise node.error("expected a number, got " + _kind(value))
    return value


def boolean(names: NameTable, node: JsonNode) -> ex.Boolean:
    value = parameter(names, node)
    if not isinstance(value, ex.Boolean):
        raise node.error("expected a Boolean, got " + _kind(value))
    return value


def _header(names: NameTable, node: JsonNode) -> ex.HeaderReference:
    value = parameter(names, node)
    if not isinstance(value, ex.HeaderReference):
        raise node.error("expected a header, got " + _kind(value))
    return value


def _union(names: NameTable, node: JsonNode) -> ex.UnionReference:
    value = parameter(names, node)
    if not isinstance(value, ex.UnionReference):
        raise node.error("expected a header union, got " + _kind(value))
    return value


def _kind(value: ex.Parameter) -> str:
    if isinstance(value, ex.Data):
        return "a number"
    if isinstance(value, ex.Boolean):
        return "a Boolean"
    if isinstance(value, ex.HeaderReference):
        return "a header"
    if isinstance(value, ex.UnionReference):
        return "a header union"
    return "a " + type(value).__name__.lower()


def parameter(names: NameTable, node: JsonNode) -> ex.Parameter:  # noqa: C901 (one case for each kind)
    """Return a 'type value object': anything that a primitive, an expression or a key may refer to."""
    kind = node["type"].text()
    if kind == "expression":
        value = node["value"]
        # Two forms are in use: the operation itself, and another type-value object around it.
        return _operation(names, value) if value.has("op") else parameter(names, value)
    value = node["value"]
    if kind == "hexstr":
        return ex.Constant(value.hexadecimal())
    if kind == "bool":
        return ex.Truth(value.boolean())
    if kind == "field":
        return field(names, value)
    if kind in ("runtime_data", "local"):
        return ex.RuntimeArgument(value.integer())
    if kind == "header":
        return ex.NamedHeader(named(value, "header", names.headers))
    if kind == "header_stack":
        return ex.HeaderStack(named(value, "header stack", names.stacks))
    if kind == "header_union":
        return ex.NamedUnion(named(value, "header union", names.unions))
    if kind == "header_union_stack":
        return ex.UnionStack(named(value, "header union stack", names.union_stacks))
    if kind == "stack_field":
        stack, member = value.pair()
        last = ex.StackElement(named(stack, "header stack", names.stacks), None)
        if member.text() == "last" and all(f.name != "last" for f in names.header_type(last).fields):
            return last
        return field_of(names, last, member)
    if kind == "union_stack_field":
        return _union_stack_field(names, value)
    if kind == "register":
        array, index = value.pair()
        return ex.RegisterCell(named(array, "register array", names.registers), data(names, index))
    if kind == "lookahead":
        offset, width = value.pair()
        return ex.Lookahead(offset.integer(0, 1 << 20), width.integer(1, 1 << 16))
    if kind == "calculation":
        return ex.Calculation(named(value, "calculation", names.calculations))
    if kind == "register_array":
        return ex.RegisterReference(named(value, "register array", names.registers))
    if kind == "counter_array":
        return ex.CounterReference(named(value, "counter array", names.counters))
    if kind == "meter_array":
        return ex.MeterReference(named(value, "meter array", names.meters))
    if kind == "extern":
        return ex.ExternInstance(named(value, "extern instance", names.externs))
    if kind == "string":
        return ex.Text(value.text())
    if kind in ("parameters_vector", "field_list"):
        if value.value == {}:
            return ex.Vector(())
        return ex.Vector(tuple(parameter(names, item) for item in value))
    raise node.error(f"type '{kind[:40]}' is not supported")


def _union_stack_field(names: NameTable, value: JsonNode) -> ex.Data:
    parts = list(value)
    if len(parts) != 3:
        raise value.error(f"expected three elements, got {len(parts)}")
    union = ex.UnionStackElement(named(parts[0], "header union stack", names.union_stacks), None)
    members = names.union(union).member_names
    if parts[1].text() not in members:
        raise parts[1].error(f"no member '{parts[1].text()[:80]}' in the union")
    return field_of(names, ex.UnionMember(union, members.index(parts[1].text())), parts[2])


def _operation(names: NameTable, node: JsonNode) -> ex.Parameter:
    op = node["op"].text()
    left, right = node.get("left"), node["right"]
    if op == "?":
        return _choice(names, node)
    if op in ("access_field", "access_union_header", "dereference_header_stack", "dereference_stack"):
        return _access(names, op, node["left"], right)
    if op == "dereference_union_stack":
        union_stack = parameter(names, node["left"])
        if not isinstance(union_stack, ex.UnionStack):
            raise node.error("expected a header union stack on the left")
        return ex.UnionStackElement(union_stack.name, data(names, right))
    if op in ("last_stack_index", "size_stack"):
        stack = parameter(names, right)
        if not isinstance(stack, (ex.HeaderStack, ex.UnionStack)):
            raise right.error("expected a header stack")
        count = ex.StackCount(stack.name)
        return count if op == "size_stack" else ex.Arithmetic("-", count, ex.Constant(1))
    if op in _CASTS:
        return ex.CastOperation(op, data(names, node["left"]), _cast_width(names, right))
    if op == "~":
        return ex.Complement(data(names, right))
    if op in _ARITHMETIC:
        first = ex.Constant(0) if left is None and op in "+-" else data(names, node["left"])
        return ex.Arithmetic(op, first, data(names, right))
    if op == "not":
        return ex.Negation(boolean(names, right))
    if op in ("and", "or"):
        return ex.Logic(op, boolean(names, node["left"]), boolean(names, right))
    if op == "d2b":
        return ex.NonZero(data(names, right))
    if op == "b2d":
        return ex.FromBoolean(boolean(names, right))
    if op == "valid":
        return ex.IsValid(_header(names, right))
    if op == "valid_union":
        return ex.IsUnionValid(_union(names, right))
    if op in _COMPARISONS:
        return _comparison(names, op, node)
    raise node.error(f"operation '{op[:40]}' is not supported")


def _cast_width(names: NameTable, node: JsonNode) -> int:
    width = data(names, node)
    if not isinstance(width, ex.Constant) or not 1 <= width.value <= _MAX_CAST_WIDTH:
        raise node.error("a cast needs a constant width in bits")
    return width.value


def _choice(names: NameTable, node: JsonNode) -> ex.Data | ex.Boolean:
    condition = boolean(names, node["cond"])
    left, right = parameter(names, node["left"]), parameter(names, node["right"])
    if isinstance(left, ex.Data) and isinstance(right, ex.Data):
        return ex.Choice(condition, left, right)
    if isinstance(left, ex.Boolean) and isinstance(right, ex.Boolean):
        return ex.BooleanChoice(condition, left, right)
    raise node.error("both sides of '?' must be numbers, or both Booleans")


def _access(names: NameTable, op: str, left: JsonNode, right: JsonNode) -> ex.Data | ex.HeaderReference:
    if op == "access_field":
        header = _header(names, left)
        return ex.FieldReference(header, right.integer(0, len(names.header_type(header).fields) - 1))
    if op == "access_union_header":
        union = _union(names, left)
        return ex.UnionMember(union, right.integer(0, len(names.union(union).members) - 1))
    stack = parameter(names, left)
    if not isinstance(stack, ex.HeaderStack):
        raise left.error("expected a header stack")
    return ex.StackElement(stack.name, data(names, right))


def _comparison(names: NameTable, op: str, node: JsonNode) -> ex.Boolean:
    left, right = parameter(names, node["left"]), parameter(names, node["right"])
    equal: ex.Boolean
    if _is_variable(names, left) and _is_variable(names, right) and op in ("==", "!="):
        assert isinstance(left, ex.FieldReference) and isinstance(right, ex.FieldReference)
        equal = ex.VariableFieldsEqual(left, right)
        return equal if op == "==" else ex.Negation(equal)
    if isinstance(left, ex.Data) and isinstance(right, ex.Data):
        return ex.Comparison(op, left, right)
    if op in ("==", "!="):
        if isinstance(left, ex.Boolean) and isinstance(right, ex.Boolean):
            return ex.Logic(op, left, right)
        if isinstance(left, ex.HeaderReference) and isinstance(right, ex.HeaderReference):
            equal = ex.HeadersEqual(left, right)
            return equal if op == "==" else ex.Negation(equal)
        if isinstance(left, ex.UnionReference) and isinstance(right, ex.UnionReference):
            equal = ex.UnionsEqual(left, right)
            return equal if op == "==" else ex.Negation(equal)
    raise node.error(f"'{op}' cannot compare {_kind(left)} with {_kind(right)}")


def _is_variable(names: NameTable, value: ex.Parameter) -> bool:
    return isinstance(value, ex.FieldReference) and names.header_type(value.header).fields[value.index].variable
