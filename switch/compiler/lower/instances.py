"""Instances of parsers, controls and extern objects."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from switch.compiler import syntax as s
from switch.compiler import types as t
from switch.compiler.lower.places import ExternObject, Instance, Nothing, Place, Value
from switch.compiler.lower.scope import Frame
from switch.compiler.names import NameSet
from switch.compiler.symbols import Scope, Signature, Symbol

if TYPE_CHECKING:
    from switch.compiler.lower.state import ProgramState


@dataclass(eq=False)
class InstanceState:
    """What an instance keeps between the places where it is applied.

    `owned`: the variables of its parameters if it is applied in several places.
    """

    instance: Instance
    frame: Frame
    applied_often: bool
    owned: dict[Symbol, Place] = field(default_factory=dict)


class Instances:
    def __init__(self, program: ProgramState) -> None:
        self._program = program
        self._states: dict[Instance, InstanceState] = {}
        self._anonymous: dict[tuple[Frame, s.Node], Instance] = {}
        self._instance_names = NameSet()
        self._often_applied: set[int] = set()

    def instantiate(self, node: s.Instantiation, frame: Frame) -> Value:
        """The object that `Type(arguments) name;` declares."""
        assert node.call is not None
        name = self._program.control_name(node.annotations, frame.prefix, node.name)
        value = self.construct(node.call, frame, "", name)
        if isinstance(value, ExternObject):
            value.node = node
        return value

    def construct(self, call: s.Call, frame: Frame, prefix: str, name: str) -> Value:
        """The object that a constructor call makes, under the control plane's name `name`."""
        target = call.target
        if target is None or not isinstance(target.declaration, Signature):
            return Nothing()
        expressions = self._program.code("constructor").expressions
        arguments: dict[str, Value] = {}
        for parameter, bound in zip(target.parameters, target.bound, strict=True):
            arguments[parameter.name] = Nothing() if bound is None else expressions.value(bound, frame)
        if isinstance(call.type, t.Extern):
            node = s.Instantiation(
                call.loc, call.end, [], name, call.loc, s.TypeSyntax(call.loc, call.end), call.arguments
            )
            kind = call.type.klass.name
            if any((other.kind, other.name) == (kind, name) for other in self._program.objects):
                self._program.reporter.error(
                    call.loc, f"the control plane knows another {kind} by the name '{name}'", call.end
                )
            value = ExternObject(call.type, name, arguments, node, kind)
            self._program.objects.append(value)
            return value
        return Instance(target.declaration, name or target.declaration.name, arguments, call.loc)

    def anonymous_instance(self, receiver: s.Expression, node: s.Node, frame: Frame) -> Instance:
        """The instance behind Type.apply(...): one for each such call in each instance around it."""
        key = (frame, node)
        known = self._anonymous.get(key)
        if known is None:
            assert isinstance(receiver, s.Call) and receiver.target is not None
            name = self._instance_names.unique(self._program.control_name([], frame.prefix, receiver.target.name))
            value = self.construct(receiver, frame, "", name)
            assert isinstance(value, Instance)
            known = self._anonymous[key] = value
        return known

    def state_of(self, instance: Instance) -> InstanceState:
        """The frame of an instance, with its constants, objects and variables, made when first needed."""
        known = self._states.get(instance)
        if known is not None:
            return known
        signature = instance.signature
        declaration = signature.node
        assert isinstance(declaration, (s.ParserDeclaration, s.ControlDeclaration))
        scope = _body_scope(declaration, signature)
        frame = Frame(self._program.globals, instance.name, scope)
        often = instance.loc in self._often_applied and _has_fixed_places(declaration)
        state = InstanceState(instance, frame, often)
        self._states[instance] = state
        for parameter in signature.constructor:
            frame.values[parameter.symbol] = instance.arguments[parameter.name]
        for local in declaration.locals:
            if isinstance(local, s.Instantiation) and local.symbol is not None:
                frame.values[local.symbol] = self.instantiate(local, frame)
            elif isinstance(local, s.VariableDeclaration) and local.symbol is not None:
                frame.values[local.symbol] = self._program.storage.variable(local.symbol.type, local.name)
        return state

    def find_often_applied(self) -> None:
        """Positions of the instances that are applied in more than one place of the source.

        Instances that are passed to constructors count as such.
        """
        seen: dict[Symbol, int] = {}
        for node in s.walk(self._program.checked.program.declarations):
            if isinstance(node, s.Call) and node.target is not None and node.target.kind == "apply":
                receiver = node.target.receiver
                if isinstance(receiver, s.Name) and receiver.symbol is not None:
                    seen[receiver.symbol] = seen.get(receiver.symbol, 0) + 1
            elif isinstance(node, s.Argument) and isinstance(node.expression, s.Name):
                symbol = node.expression.symbol
                if symbol is not None and symbol.kind == "instance":
                    seen[symbol] = 2
        self._often_applied = {
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
    """Whether this declares an instance of a control with tables. Objects, such as registers, have none."""
    if not isinstance(local, s.Instantiation) or local.call is None or local.call.target is None:
        return False
    signature = local.call.target.declaration
    return isinstance(signature, Signature) and (
        isinstance(signature.node, (s.ParserDeclaration, s.ControlDeclaration)) and _has_fixed_places(signature.node)
    )


def _body_scope(declaration: s.ParserDeclaration | s.ControlDeclaration, signature: Signature) -> Scope:
    return signature.body_scope if signature.body_scope is not None else signature.scope
