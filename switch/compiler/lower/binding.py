"""Arguments and parameters of what is inlined: copy-in and copy-out where they matter, also at an exit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gradbed.switch.compiler import ir
from gradbed.switch.compiler import syntax as s
from gradbed.switch.compiler.ir import operations as op
from gradbed.switch.compiler.ir.places import (
    PLACES,
    ExternObject,
    HeaderPlace,
    Instance,
    Nothing,
    PacketValue,
    Place,
    StackPlace,
    StructValue,
    TextValue,
    UnionPlace,
    Value,
    header_names,
)
from gradbed.switch.compiler.lower.context import Code, CopyOut, Frame, value_of
from gradbed.switch.compiler.lower.copying import assign, kept, read, reset
from gradbed.switch.compiler.lower.expressions import place_of
from gradbed.switch.compiler.symbols import ParameterType, Symbol

_WHOLE = (ir.FieldRef, HeaderPlace, UnionPlace, StackPlace, StructValue)


@dataclass(frozen=True)
class Arguments:
    """The arguments of one call.

    values: values for what is read, places for what is written, Nothing for `_`. copied_in: by position, the value of
    an `inout` argument's place before a later argument changed it.
    """

    values: list[Value]
    copied_in: dict[int, Value]


def arguments_of(
    parameters: Sequence[ParameterType], bound: Sequence[s.Expression | None], frame: Frame, code: Code
) -> Arguments:
    """Evaluate arguments left to right (P4_16, section 6.8).

    Each one counts as it is at its turn, so what a later one changes is copied first: also for `inout`.
    """
    values: list[Value] = []
    ends: list[int] = []
    for parameter, node in zip(parameters, bound, strict=True):
        if node is None:
            values.append(Nothing())
        elif parameter.direction in ("out", "inout"):
            values.append(place_of(node, frame, code))
        else:
            values.append(read(value_of(node, frame, code), node, code))
        ends.append(len(code.statements))
    copied_in: dict[int, Value] = {}
    # From the last one, so that copies which are put in leave the positions of earlier ones as they are.
    for index in reversed(range(len(values))):
        node = bound[index]
        if node is None or parameters[index].direction == "out":
            continue
        value = kept(values[index], ends[index], node, code)
        if parameters[index].direction != "inout":
            values[index] = value
        elif value is not values[index]:
            copied_in[index] = value
    return Arguments(values, copied_in)


def bind(
    parameters: Sequence[ParameterType],
    arguments: Arguments,
    frame: Frame,
    node: s.Node,
    code: Code,
    *,
    closed: bool,
    owned: dict[Symbol, Place] | None = None,
) -> CopyOut:
    """Give the parameters their values in the callee's frame.

    `closed`: the callee sees nothing but its parameters, so that an argument that overlaps with no other, and that no
    later one changed, may stand for its parameter itself. `owned`: variables that the parameters always have (filled
    in here).
    """
    copy_out = CopyOut()
    names = [header_names(argument) for argument in arguments.values]
    for index, (parameter, argument) in enumerate(zip(parameters, arguments.values, strict=True)):
        writes = parameter.direction in ("out", "inout")
        others = [
            other
            for position, other in enumerate(names)
            if position != index and (writes or parameters[position].direction in ("out", "inout"))
        ]
        alone = index not in arguments.copied_in and not any(names[index] & other for other in others)
        if _is_object(argument) or (owned is None and not writes and _is_fixed(argument)):
            frame.values[parameter.symbol] = argument
        elif owned is None and closed and alone and isinstance(argument, _WHOLE):
            frame.values[parameter.symbol] = argument
            if parameter.direction == "out":
                reset(argument, node, code)
        else:
            variable = _variable(parameter, owned, code)
            frame.values[parameter.symbol] = variable
            if parameter.direction == "out" or isinstance(argument, Nothing):
                reset(variable, node, code)
            else:
                assign(variable, arguments.copied_in.get(index, argument), node, code)
            if writes and not isinstance(argument, Nothing):
                assert isinstance(argument, PLACES)
                copy_out.pairs.append((argument, variable))
    return copy_out


def _variable(parameter: ParameterType, owned: dict[Symbol, Place] | None, code: Code) -> Place:
    """A parameter's own variable."""
    if owned is not None and parameter.symbol in owned:
        return owned[parameter.symbol]
    variable = code.storage.variable(parameter.type, parameter.name)
    if owned is not None:
        owned[parameter.symbol] = variable
    return variable


def _is_object(value: Value) -> bool:
    """Return whether it is nothing that a variable could hold."""
    return isinstance(value, (PacketValue, ExternObject, TextValue, Instance))


def _is_fixed(value: Value) -> bool:
    """Return whether nothing can change the value: constants and action data."""
    if isinstance(value, ir.Expr):
        return all(isinstance(leaf, (ir.Const, ir.RuntimeData)) for leaf in ir.reads(value))
    return isinstance(value, StructValue) and all(map(_is_fixed, value.parts.values()))


def copy_back(copy_out: CopyOut, node: s.Node, code: Code) -> None:
    for place, variable in copy_out.pairs:
        assign(place, variable, node, code)


def exit_pipeline(node: s.Node, code: Code) -> None:
    """Copy out what the calls around would copy, then end the pipeline."""
    for copy_out in reversed(code.copy_outs):
        copy_back(copy_out, node, code)
    if code.kind != "action":
        code.emit(ir.LoweredEnd(node.loc, node.end))
        return
    if code.exit_flag is not None:
        code.assign(code.exit_flag, op.TRUE, node)
    else:
        code.primitive(node, "exit")
    assert code.finished is not None
    code.leave(code.finished, node)
