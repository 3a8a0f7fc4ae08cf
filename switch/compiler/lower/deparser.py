"""What a deparser does, as BMv2's does it: primitives one after the other, then headers in a fixed order."""

from __future__ import annotations

from gradbed.switch.compiler import ir
from gradbed.switch.compiler import types as t
from gradbed.switch.compiler.lower.context import ProgramState

_NO_BRANCHES = "a deparser cannot branch on this target, except to emit a header if that is valid"
_INSTEAD = "emit() leaves out headers that are not valid: make them so at the end of egress"


def lower_deparser(
    program: ProgramState, body: list[ir.LoweredStatement]
) -> tuple[list[str], list[ir.LoweredStatement]]:
    """The headers in the order they are emitted, and what is done before that.

    BMv2 does all of it before it writes the first header, whatever the order in the program.
    """
    order: list[str] = []
    primitives: list[ir.LoweredStatement] = []
    for statement in body:
        if isinstance(statement, ir.LoweredIf):
            headers = _emitted_if_valid(statement)
            if headers is not None:
                order += headers
                continue
            chosen = _chosen(program, statement)
            if chosen is None:
                program.reporter.error(statement.loc or 1, _NO_BRANCHES, statement.end, hint=_INSTEAD)
                continue
            primitives += chosen
        elif isinstance(statement, ir.LoweredPrimitive) and statement.op == "emit":
            order.append(_header(statement))
        elif isinstance(statement, (ir.LoweredAssign, ir.LoweredPrimitive)):
            if _written(statement) & set(order):
                message = "a header that has been emitted cannot be changed on this target"
                program.reporter.error(statement.loc or 1, message, statement.end)
            primitives.append(statement)
        else:
            program.reporter.error(statement.loc or 1, _NO_BRANCHES, statement.end, hint=_INSTEAD)
    return order, primitives


def _header(emit: ir.LoweredPrimitive) -> str:
    (header,) = emit.parameters
    assert isinstance(header, ir.Ref)
    return header.name


def _emitted_if_valid(statement: ir.LoweredIf) -> list[str] | None:
    """The header of `if (header.isValid()) { emit(header); }`, which is what emit() does anyway; None for others."""
    if statement.otherwise or not isinstance(statement.condition, ir.FieldRef):
        return None
    headers = []
    for inner in statement.then:
        if not (isinstance(inner, ir.LoweredPrimitive) and inner.op == "emit"):
            return None
        headers.append(_header(inner))
    return headers if {(name, "$valid$") for name in headers} == {_field(statement.condition)} else None


def _field(place: ir.FieldRef) -> tuple[str, str]:
    return place.header, place.field


def _chosen(program: ProgramState, statement: ir.LoweredIf) -> list[ir.LoweredStatement] | None:
    """Assignments under a condition as assignments of what it chooses; None if there is anything else."""
    condition = program.storage.scalar(t.BOOL, "condition")
    result: list[ir.LoweredStatement] = [
        ir.LoweredAssign(statement.loc, statement.end, condition, statement.condition)
    ]
    for branch, taken in ((statement.then, True), (statement.otherwise, False)):
        for inner in branch:
            if not isinstance(inner, ir.LoweredAssign):
                return None
            values = (inner.value, inner.target) if taken else (inner.target, inner.value)
            choice = ir.LoweredChoice(inner.target.type, condition, *values)
            result.append(ir.LoweredAssign(inner.loc, inner.end, inner.target, choice))
    return result


def _written(statement: ir.LoweredAssign | ir.LoweredPrimitive) -> set[str]:
    """The headers that a statement may change."""
    if isinstance(statement, ir.LoweredAssign):
        return {statement.target.header}
    if statement.op in ("log_msg", "assert", "assume"):
        return set()
    names = {part.header for part in statement.parameters if isinstance(part, ir.FieldRef)}
    return names | {part.name for part in statement.parameters if isinstance(part, ir.Ref)}
