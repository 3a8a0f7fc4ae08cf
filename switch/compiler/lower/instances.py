"""Instances of parsers, controls and extern objects."""

from __future__ import annotations

from collections import Counter

from gradbed.switch.compiler import syntax as s
from gradbed.switch.compiler.ir.places import ExternObject, Instance, Nothing, Value
from gradbed.switch.compiler.lower.context import Code, Frame, InstanceState, ProgramState, lower, value_of
from gradbed.switch.compiler.symbols import ExternInstanceType, Signature, Symbol


def instantiate(node: s.Instantiation, frame: Frame, program: ProgramState) -> Value:
    """The object that `Type(arguments) name;` declares."""
    assert node.call is not None
    name = program.control_name(node.annotations, frame.prefix, node.name)
    value = construct(node.call, frame, name, program)
    if isinstance(value, ExternObject):
        value.node = node
    return value


def construct(call: s.Call, frame: Frame, name: str, program: ProgramState) -> Value:
    """The object that a constructor call makes, under the control plane's name `name`."""
    target = call.target
    if target is None or not isinstance(target.declaration, Signature):
        return Nothing()
    code = Code(program, "constructor")
    arguments: dict[str, Value] = {}
    for parameter, bound in zip(target.parameters, target.bound, strict=True):
        arguments[parameter.name] = Nothing() if bound is None else value_of(bound, frame, code)
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
    """The instance behind Type.apply(...): one for each such call in each instance around it."""
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
    """The frame of an instance, with its constants, objects and variables, made when first needed."""
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
    """What the variables of an instance are each time that it is applied."""
    for local in declaration.locals:
        if isinstance(local, s.VariableDeclaration):
            lower(local, frame, code)


def often_applied(declarations: list[s.Declaration]) -> set[int]:
    """Positions of the instances that are applied in more than one place of the source.

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
    """Whether there are tables in a control, or perhaps in controls inside it: they refer to fixed variables."""
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
