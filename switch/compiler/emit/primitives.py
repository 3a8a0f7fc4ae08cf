"""Expressions of BMv2 JSON, and actions as lists of primitives with jumps.

BMv2 computes with integers of any size, so results are cut to their width: with & for bit<N>, with two_comp_mod
for int<N>. It also keeps truth values apart from numbers; d2b and b2d convert between them.
"""

from __future__ import annotations

from typing import Any

from gradbed.switch.compiler import ir
from gradbed.switch.compiler import types as t
from gradbed.switch.compiler.ir import LoweredAction
from gradbed.switch.compiler.source import SourceManager

# ---- Expressions ----


Json = dict[str, Any]

_COMPARISONS = frozenset(("==", "!=", "<", "<=", ">", ">="))
_BOOLEAN = {"&&": "and", "||": "or"}


def hex_digits(value: int, width_bits: int) -> str:
    """Return a number as BMv2 reads it: whole bytes, with a sign if it is negative."""
    digits = 2 * ((width_bits + 7) // 8) or 2
    return f"-0x{-value:0{digits}x}" if value < 0 else f"0x{value:0{digits}x}"


def hexstr(value: int, width_bits: int = 0) -> Json:
    return {"type": "hexstr", "value": hex_digits(value, width_bits) if width_bits else f"{value:#x}"}


def operation(operator: str, left: Json | None, right: Json | None) -> Json:
    return {"type": "expression", "value": {"op": operator, "left": left, "right": right}}


def field(ref: ir.FieldRef) -> Json:
    return {"type": "field", "value": [ref.header, ref.field]}


def _width(type_: t.Type) -> int:
    return type_.width if isinstance(type_, (t.Bit, t.Int)) else 1


def _cut(value: Json, type_: t.Type) -> Json:
    width = _width(type_)
    if isinstance(type_, t.Int):
        return operation("two_comp_mod", value, hexstr(width))
    return operation("&", value, hexstr((1 << width) - 1, width))


def number(expr: ir.Expr) -> Json:
    """Return the expression as a number."""
    if isinstance(expr, ir.Const):
        return hexstr(expr.value, _width(expr.type))
    if isinstance(expr, ir.FieldRef):
        return field(expr)
    if isinstance(expr, ir.RuntimeData):
        local = {"type": "local", "value": expr.index}
        return _cut(local, expr.type) if isinstance(expr.type, t.Int) else local
    if isinstance(expr, ir.StackLast):
        return _stack_last(expr)
    if isinstance(expr, ir.LastIndex):
        kind = "header_union_stack" if expr.of_unions else "header_stack"
        return operation("last_stack_index", None, {"type": kind, "value": expr.stack})
    if isinstance(expr, ir.LoweredChoice):
        return {
            "type": "expression",
            "value": {
                "op": "?",
                "left": number(expr.if_true),
                "right": number(expr.if_false),
                "cond": boolean(expr.condition),
            },
        }
    if expr.type is t.BOOL and not (isinstance(expr, ir.Operation) and expr.operator == "cast"):
        return operation("b2d", None, boolean(expr))
    assert isinstance(expr, ir.Operation)
    return _arithmetic(expr)


def boolean(expr: ir.Expr) -> Json:
    """Return the expression as a truth value."""
    if isinstance(expr, ir.Const):
        return {"type": "bool", "value": bool(expr.value)}
    if isinstance(expr, ir.SameHeader):
        return operation("==", {"type": "header", "value": expr.left}, {"type": "header", "value": expr.right})
    if isinstance(expr, ir.Operation):
        operator = expr.operator
        if operator == "!":
            return operation("not", None, boolean(expr.left))
        if operator in _BOOLEAN:
            assert expr.right is not None
            return operation(_BOOLEAN[operator], boolean(expr.left), boolean(expr.right))
        if operator in _COMPARISONS:
            assert expr.right is not None
            return operation(operator, number(expr.left), number(expr.right))
        if operator == "cast":
            return operation("==", number(expr.left), hexstr(1, 1))
    return operation("d2b", None, number(expr))


def _stack_last(expr: ir.StackLast) -> Json:
    if expr.member:
        return {"type": "union_stack_field", "value": [expr.stack, expr.member, expr.field]}
    return {"type": "stack_field", "value": [expr.stack, expr.field]}


def _arithmetic(expr: ir.Operation) -> Json:
    operator, type_ = expr.operator, expr.type
    if operator == "cast":
        return _cast(expr)
    if operator == "slice":
        shifted = number(expr.left)
        if expr.low:
            shifted = operation(">>", shifted, hexstr(expr.low))
        source = expr.left.type
        whole = isinstance(source, t.Bit) and expr.low + _width(type_) == source.width
        return shifted if whole else _cut(shifted, type_)
    if operator == "neg":
        return _cut(operation("-", hexstr(0), number(expr.left)), type_)
    if operator == "~":
        return _cut(operation("~", None, number(expr.left)), type_)
    assert expr.right is not None
    if operator == "++":
        return _concatenate(expr.left, expr.right, type_)
    left, right = number(expr.left), number(expr.right)
    if operator in ("|+|", "|-|"):
        exact = operation(operator[1], left, right)
        saturate = "sat_cast" if isinstance(type_, t.Int) else "usat_cast"
        return operation(saturate, exact, hexstr(_width(type_)))
    result = operation(operator, left, right)
    return _cut(result, type_) if operator in ("+", "-", "*", "<<") else result


def _cast(expr: ir.Operation) -> Json:
    source, target = expr.left.type, expr.type
    if source is t.BOOL:
        return operation("b2d", None, boolean(expr.left))
    value = number(expr.left)
    narrows = _width(target) < _width(source)
    if isinstance(source, t.Bit) and isinstance(target, t.Bit):
        return _cut(value, target) if narrows else value
    if isinstance(source, t.Int) and isinstance(target, t.Int):
        return _cut(value, target) if narrows else value
    return _cut(value, target)


def _concatenate(left: ir.Expr, right: ir.Expr, type_: t.Type) -> Json:
    low = number(right)
    if isinstance(right.type, t.Int):
        low = _cut(low, t.bit(right.type.width))
    high = operation("<<", number(left), hexstr(_width(right.type)))
    joined = operation("|", high, low)
    return _cut(joined, type_) if isinstance(type_, t.Int) else joined


def parameter(item: ir.Parameter) -> Json:
    """Return a parameter of a primitive."""
    if isinstance(item, ir.Ref):
        return {"type": item.kind, "value": item.name}
    if isinstance(item, ir.LoweredNumber):
        return hexstr(item.value)
    if isinstance(item, ir.LoweredText):
        return {"type": "string", "value": item.text}
    if isinstance(item, ir.LoweredVector):
        return {"type": "parameters_vector", "value": [parameter(inner) for inner in item.items]}
    return argument(number(item))


def argument(value: Json) -> Json:
    """Return a number or truth value as BMv2 wants it outside of an expression."""
    if value["type"] == "expression":
        return {"type": "expression", "value": value}
    if value["type"] == "local":
        return {"type": "runtime_data", "value": value["value"]}
    return value


# ---- Actions ----


class PrimitiveList:
    """The primitives of an action; jumps get their targets when all are known."""

    def __init__(self, sources: SourceManager) -> None:
        self._sources = sources
        self._primitives: list[Json] = []
        self._starts: dict[ir.Label, int] = {}
        self._ends: dict[ir.Label, int] = {}
        self._jumps: list[tuple[Json, ir.Label, bool]] = []

    def finish(self) -> list[Json]:
        for jump, label, to_start in self._jumps:
            target = (self._starts if to_start else self._ends)[label]
            jump["parameters"].append(hexstr(target))
        return self._primitives

    def add(self, body: list[ir.LoweredStatement]) -> None:
        for statement in body:
            if isinstance(statement, ir.LoweredAssign):
                self._emit("assign", [field(statement.target), parameter(statement.value)], statement)
            elif isinstance(statement, ir.LoweredPrimitive):
                self._emit(statement.op, [parameter(item) for item in statement.parameters], statement)
            elif isinstance(statement, ir.LoweredIf):
                self._branch(statement)
            elif isinstance(statement, ir.LoweredBlock):
                self._starts[statement.label] = len(self._primitives)
                self.add(statement.body)
                self._place_end(statement.label)
            elif isinstance(statement, ir.Leave):
                self._jump("_jump", [], statement.label, False)
                return
            elif isinstance(statement, ir.Repeat):
                self._jump("_jump", [], statement.label, True)
                return
            else:
                raise AssertionError(f"{type(statement).__name__} in an action")

    def _emit(self, op: str, parameters: list[Json], statement: ir.LoweredStatement) -> None:
        primitive: Json = {"op": op, "parameters": parameters}
        if statement.loc:
            primitive["source_info"] = self._sources.source_info(statement.loc, statement.end)
        self._primitives.append(primitive)

    def _jump(self, op: str, parameters: list[Json], label: ir.Label, to_start: bool) -> None:
        jump: Json = {"op": op, "parameters": parameters}
        self._primitives.append(jump)
        self._jumps.append((jump, label, to_start))

    def _branch(self, statement: ir.LoweredIf) -> None:
        behind_then, behind = ir.Label("else"), ir.Label("endif")
        then, otherwise, condition = statement.then, statement.otherwise, statement.condition
        if not then:
            then, otherwise = otherwise, then
            condition = ir.Operation(t.BOOL, "!", condition)
        self._jump("_jump_if_zero", [parameter(condition)], behind_then, False)
        if statement.loc:
            self._primitives[-1]["source_info"] = self._sources.source_info(statement.loc, statement.end)
        self.add(then)
        if otherwise:
            self._jump("_jump", [], behind, False)
        self._ends[behind_then] = len(self._primitives)
        self.add(otherwise)
        self._place_end(behind)

    def _place_end(self, label: ir.Label) -> None:
        """Put a label here; a jump to it from directly before is left out."""
        here = len(self._primitives)
        if self._jumps and self._primitives and self._primitives[-1] is self._jumps[-1][0]:
            jump, target, to_start = self._jumps[-1]
            if target is label and not to_start and jump["op"] == "_jump":
                self._jumps.pop()
                self._primitives.pop()
                for positions in (self._starts, self._ends):
                    for other, position in positions.items():
                        if position == here:
                            positions[other] = here - 1
                here -= 1
        self._ends[label] = here


def action_json(action: LoweredAction, number_: int, sources: SourceManager) -> Json:
    primitives = PrimitiveList(sources)
    primitives.add(action.body)
    runtime_data = [{"name": item.name, "bitwidth": t.width_bits(item.type)} for item in action.parameters]
    return {
        "name": action.name,
        "id": number_,
        "runtime_data": runtime_data,
        "primitives": primitives.finish(),
        "source_info": sources.source_info(action.node.name_loc, action.node.name_loc + len(action.node.name)),
    }
