"""Inlining of parsers, controls, actions and functions: their instances, arguments and parameters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from gradbed.switch.compiler import ir
from gradbed.switch.compiler import syntax as s
from gradbed.switch.compiler.ir import operations as op
from gradbed.switch.compiler.ir.values import (
    LVALUES,
    ExternObject,
    HeaderVariable,
    Instance,
    LValue,
    NoValue,
    PacketValue,
    StackVariable,
    StructValue,
    TextValue,
    UnionVariable,
    Value,
    header_names,
)
from gradbed.switch.compiler.lower.context import Code, CopyOut, Frame, InstanceState, ProgramState, lower, value_of
from gradbed.switch.compiler.lower.expressions import lvalue_of
from gradbed.switch.compiler.lower.values import assign, preserved, read, reset
from gradbed.switch.compiler.symbols import ExternInstanceType, ParameterType, Signature, Symbol

# ---- Instances ----


def instantiate(node: s.Instantiation, frame: Frame, program: ProgramState) -> Value:
    """Return the object that `Type(arguments) name;` declares."""
    assert node.call is not None
    name = program.control_name(node.annotations, frame.prefix, node.name)
    value = construct(node.call, frame, name, program)
    if isinstance(value, ExternObject):
        value.node = node
    return value


def construct(call: s.Call, frame: Frame, name: str, program: ProgramState) -> Value:
    """Return the object that a constructor call makes, which the control plane knows as `name`."""
    target = call.target
    if target is None or not isinstance(target.declaration, Signature):
        return NoValue()
    code = Code(program, "constructor")
    arguments: dict[str, Value] = {}
    for parameter, bound in zip(target.parameters, target.bound, strict=True):
        arguments[parameter.name] = NoValue() if bound is None else value_of(bound, frame, code)
    if not isinstance(call.type, ExternInstanceType):
        return Instance(target.declaration, name or target.declaration.name, arguments, call.loc)
    written = s.TypeSyntax(call.loc, call.end)
    node = s.Instantiation(call.loc, call.end, [], name, call.loc, written, call.arguments)
    kind = call.type.klass.name
    if any((other.kind, other.name) == (kind, name) for other in program.objects):
        code.error(call, f"the control plane knows another {kind} by the name '{name}'")
    value = ExternObject(call.type, name, arguments, node, kind)
    program.objects.append(value)
    return value


def anonymous_instance(receiver: s.Expression, node: s.Node, frame: Frame, program: ProgramState) -> Instance:
    """Return the instance of Type.apply(...): one for each such call in each enclosing instance."""
    key = (frame, node)
    known = program.anonymous_instances.get(key)
    if known is None:
        assert isinstance(receiver, s.Call) and receiver.target is not None
        name = program.instance_names.unique(program.control_name([], frame.prefix, receiver.target.name))
        value = construct(receiver, frame, name, program)
        assert isinstance(value, Instance)
        known = program.anonymous_instances[key] = value
    return known


def state_of(instance: Instance, program: ProgramState) -> InstanceState:
    """Return the state of an instance, made at its first use: a frame with its constants, objects and variables."""
    known = program.instances.get(instance)
    if known is not None:
        return known
    signature = instance.signature
    declaration = signature.node
    assert isinstance(declaration, (s.ParserDeclaration, s.ControlDeclaration))
    frame = Frame(program.globals, instance.name, signature.body_scope or signature.scope)
    often = instance.loc in program.often_applied and _has_fixed_places(declaration)
    state = program.instances[instance] = InstanceState(instance, frame, often)
    for parameter in signature.constructor:
        frame.values[parameter.symbol] = instance.arguments[parameter.name]
    for local in declaration.locals:
        if isinstance(local, s.Instantiation) and local.symbol is not None:
            frame.values[local.symbol] = instantiate(local, frame, program)
        elif isinstance(local, s.VariableDeclaration) and local.symbol is not None:
            frame.values[local.symbol] = program.storage.variable(local.symbol.type, local.name)
    return state


def lower_variables(declaration: s.ParserDeclaration | s.ControlDeclaration, frame: Frame, code: Code) -> None:
    """Initialize the variables of an instance, as at each application."""
    for local in declaration.locals:
        if isinstance(local, s.VariableDeclaration):
            lower(local, frame, code)


def often_applied(declarations: list[s.Declaration]) -> set[int]:
    """Return the positions of the instances that are applied in more than one place of the source.

    Instances that are passed to constructors count as such.
    """
    seen: Counter[Symbol] = Counter()
    for node in s.walk(declarations):
        if isinstance(node, s.Call) and node.target is not None and node.target.kind == "apply":
            receiver = node.target.receiver
            if isinstance(receiver, s.Name) and receiver.symbol is not None:
                seen[receiver.symbol] += 1
        elif isinstance(node, s.Argument) and isinstance(node.expression, s.Name):
            symbol = node.expression.symbol
            if symbol is not None and symbol.kind == "instance":
                seen[symbol] += 2
    return {
        symbol.node.call.loc
        for symbol, count in seen.items()
        if count > 1 and isinstance(symbol.node, s.Instantiation) and symbol.node.call is not None
    }


def _has_fixed_places(declaration: s.ParserDeclaration | s.ControlDeclaration) -> bool:
    """Return whether a control, or perhaps one inside it, has tables, which refer to fixed variables."""
    return isinstance(declaration, s.ControlDeclaration) and (
        bool(declaration.constructor_parameters)
        or any(isinstance(local, s.TableDeclaration) or _holds_tables(local) for local in declaration.locals)
    )


def _holds_tables(local: s.Declaration) -> bool:
    """Return whether this declares an instance of a control with tables. Objects, such as registers, have none."""
    if not isinstance(local, s.Instantiation) or local.call is None or local.call.target is None:
        return False
    signature = local.call.target.declaration
    return isinstance(signature, Signature) and (
        isinstance(signature.node, (s.ParserDeclaration, s.ControlDeclaration)) and _has_fixed_places(signature.node)
    )


# ---- Arguments and parameters ----


_WHOLE = (ir.FieldRef, HeaderVariable, UnionVariable, StackVariable, StructValue)


@dataclass(frozen=True)
class Arguments:
    """The arguments of a call."""

    values: list[Value]
    """Values for `in`, l-values for `out` and `inout`, NoValue for `_`."""
    copied_in: dict[int, Value]
    """By position, the value of an `inout` argument before a later argument changed it."""


def arguments_of(
    parameters: Sequence[ParameterType], bound: Sequence[s.Expression | None], frame: Frame, code: Code
) -> Arguments:
    """Evaluate arguments from left to right (P4_16 1.2.5, section 6.8).

    Each argument has its value at that time: whatever a later one changes is copied first, also for `inout`.
    """
    values: list[Value] = []
    ends: list[int] = []
    for parameter, node in zip(parameters, bound, strict=True):
        if node is None:
            values.append(NoValue())
        elif parameter.direction in ("out", "inout"):
            values.append(lvalue_of(node, frame, code))
        else:
            values.append(read(value_of(node, frame, code), node, code))
        ends.append(len(code.statements))
    copied_in: dict[int, Value] = {}
    # From the last one, so that copies which are put in leave the positions of earlier ones as they are.
    for index in reversed(range(len(values))):
        node = bound[index]
        if node is None or parameters[index].direction == "out":
            continue
        value = preserved(values[index], ends[index], node, code)
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
    owned: dict[Symbol, LValue] | None = None,
) -> CopyOut:
    """Give the parameters their values in the frame of the callee.

    If the callee is `closed`, it sees nothing but its parameters. Then an argument that overlaps with no other, and
    that no later one changed, may stand for its parameter without a copy. `owned` has the variables that the
    parameters always have; missing ones are added.
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
            if parameter.direction == "out" or isinstance(argument, NoValue):
                reset(variable, node, code)
            else:
                assign(variable, arguments.copied_in.get(index, argument), node, code)
            if writes and not isinstance(argument, NoValue):
                assert isinstance(argument, LVALUES)
                copy_out.pairs.append((argument, variable))
    return copy_out


def _variable(parameter: ParameterType, owned: dict[Symbol, LValue] | None, code: Code) -> LValue:
    """Return a variable of the parameter."""
    if owned is not None and parameter.symbol in owned:
        return owned[parameter.symbol]
    variable = code.storage.variable(parameter.type, parameter.name)
    if owned is not None:
        owned[parameter.symbol] = variable
    return variable


def _is_object(value: Value) -> bool:
    """Return whether no variable can hold the value."""
    return isinstance(value, (PacketValue, ExternObject, TextValue, Instance))


def _is_fixed(value: Value) -> bool:
    """Return whether the value cannot change: constants and action data."""
    if isinstance(value, ir.Expr):
        return all(isinstance(leaf, (ir.Const, ir.RuntimeData)) for leaf in ir.reads(value))
    return isinstance(value, StructValue) and all(map(_is_fixed, value.parts.values()))


def copy_back(copy_out: CopyOut, node: s.Node, code: Code) -> None:
    """Copy parameters out to their arguments."""
    for lvalue, variable in copy_out.pairs:
        assign(lvalue, variable, node, code)


def exit_pipeline(node: s.Node, code: Code) -> None:
    """Copy out the parameters of all enclosing calls, then end the pipeline (P4_16 1.2.5, section 12.5)."""
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
