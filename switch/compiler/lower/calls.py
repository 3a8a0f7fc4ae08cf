"""Calls: functions, actions, parsers and controls are inlined, with copy-in and copy-out where they matter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from switch.compiler import syntax as s
from switch.compiler import types as t
from switch.compiler.lower import ir
from switch.compiler.lower.expressions import Expressions, has_effects
from switch.compiler.lower.places import (
    ElementOf,
    ExternObject,
    HeaderPlace,
    Instance,
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
    header_names,
)
from switch.compiler.lower.scope import MAX_INLINING, Code, CopyOut, Frame
from switch.compiler.symbols import Signature, Symbol

if TYPE_CHECKING:
    from switch.compiler.lower.assignments import Assignments
    from switch.compiler.lower.externs import Externs
    from switch.compiler.lower.parsers import Parsers
    from switch.compiler.lower.statements import Statements
    from switch.compiler.lower.tables import Tables

_WHOLE = (ir.FieldRef, HeaderPlace, UnionPlace, StackPlace, StructValue)


class Calls:
    assignments: Assignments
    expressions: Expressions
    externs: Externs
    parsers: Parsers
    statements: Statements
    tables: Tables

    def __init__(self, code: Code) -> None:
        self._code = code

    def call(self, node: s.Call, frame: Frame) -> Value:
        target = node.target
        assert target is not None
        kind = target.kind
        if kind == "header_method":
            return self._header_method(node, target, frame)
        if kind == "function" or kind == "action":
            return self._inline(node, target, frame)
        if kind in ("extern_function", "extern_method"):
            return self.externs.call(node, target, frame)
        if kind == "stack_method":
            self._stack_method(node, target, frame)
            return Nothing()
        if kind == "apply_table":
            self.tables.apply(node, frame)
            return Nothing()
        if kind in ("apply", "apply_type"):
            self._apply(node, target, frame)
            return Nothing()
        if kind == "constructor":
            return self._code.program.instances.construct(node, frame, frame.prefix, "")
        return Nothing()

    def apply_result(self, node: s.Member, frame: Frame) -> ir.Expr:
        """table.apply().hit or .miss as a value."""
        result = self._code.program.storage.scalar(t.BOOL, "tmp")
        assert isinstance(node.base, s.Call)
        apply = self.tables.apply(node.base, frame, kind="hit")
        for name in ("hit", "miss"):
            value = ir.Const(t.BOOL, int(name == node.name))
            apply.branches.setdefault(name, []).append(ir.Assign(node.loc, node.end, result, value))
        return result

    # --- methods of headers and stacks ---

    def _header_method(self, node: s.Call, target: s.CallTarget, frame: Frame) -> Value:
        assert target.receiver is not None
        if target.name == "isValid":
            return self.expressions.validity(self.expressions.value(target.receiver, frame), node)
        place = self.expressions.place(target.receiver, frame)
        self.assignments.set_valid(place, target.name == "setValid", node)
        return Nothing()

    def _stack_method(self, node: s.Call, target: s.CallTarget, frame: Frame) -> None:
        assert target.receiver is not None
        place = self.expressions.place(target.receiver, frame)
        if not isinstance(place, StackPlace):
            self._code.error(node, "this header stack cannot be shifted on this target")
            return
        count = target.bound[0]
        assert count is not None and isinstance(count.value, int)
        kind = "header_stack" if place in self._code.program.storage.stacks else "header_union_stack"
        name = "push" if target.name == "push_front" else "pop"
        self._code.emit(ir.Primitive(node.loc, node.end, name, (ir.Ref(kind, place.name), ir.Number(count.value))))

    # --- binding arguments ---

    def arguments(
        self, parameters: list[s.ParameterType], bound: list[s.Expression | None], frame: Frame
    ) -> list[Value]:
        """Left to right: values for what is read, places for what is written, Nothing for `_`."""
        results: list[Value] = []
        for index, (parameter, node) in enumerate(zip(parameters, bound, strict=True)):
            if node is None:
                results.append(Nothing())
            elif parameter.direction in ("out", "inout"):
                results.append(self.expressions.place(node, frame))
            else:
                value = self.expressions.value(node, frame)
                value = self.expressions.read(value, node)
                if any(other is not None and has_effects(other) for other in bound[index + 1 :]):
                    value = self.expressions.snapshot(value, node)
                results.append(value)
        return results

    def bind(
        self,
        parameters: list[s.ParameterType],
        arguments: list[Value],
        frame: Frame,
        node: s.Node,
        closed: bool,
        owned: dict[Symbol, Place] | None = None,
    ) -> CopyOut:
        """Give the parameters their values in the callee's frame.

        `closed`: the callee sees nothing but its parameters, so that an argument that overlaps with no other may
        stand for its parameter itself. `owned`: variables that the parameters always have (filled in here).
        """
        copy_out = CopyOut()
        names = [header_names(argument) for argument in arguments]
        for index, (parameter, argument) in enumerate(zip(parameters, arguments, strict=True)):
            writes = parameter.direction in ("out", "inout")
            if isinstance(argument, (PacketValue, ExternObject, TextValue, Instance)):
                frame.values[parameter.symbol] = argument
                continue
            if owned is None and not writes and _is_fixed(argument):
                frame.values[parameter.symbol] = argument
                continue
            others = [
                other
                for position, other in enumerate(names)
                if position != index and (writes or parameters[position].direction in ("out", "inout"))
            ]
            alone = not any(names[index] & other for other in others)
            if owned is None and closed and alone and isinstance(argument, _WHOLE):
                frame.values[parameter.symbol] = argument
                if parameter.direction == "out":
                    self.assignments.reset(argument, node)
                continue
            if owned is not None and parameter.symbol in owned:
                variable = owned[parameter.symbol]
            else:
                variable = self._code.program.storage.variable(parameter.type, parameter.name)
                if owned is not None:
                    owned[parameter.symbol] = variable
            frame.values[parameter.symbol] = variable
            if parameter.direction == "out" or isinstance(argument, Nothing):
                self.assignments.reset(variable, node)
            else:
                self.assignments.assign(variable, argument, node)
            if writes and not isinstance(argument, Nothing):
                assert isinstance(argument, (*_WHOLE, SliceOf, ElementOf, StackCursor))
                copy_out.pairs.append((argument, variable))
        return copy_out

    def copy_back(self, copy_out: CopyOut, node: s.Node) -> None:
        for place, variable in copy_out.pairs:
            self.assignments.assign(place, variable, node)

    # --- functions and actions ---

    def _inline(self, node: s.Call, target: s.CallTarget, frame: Frame) -> Value:
        signature = target.declaration
        assert isinstance(signature, Signature)
        declaration = signature.node
        assert isinstance(declaration, s.FunctionDeclaration) and declaration.body is not None
        if self._code.depth >= MAX_INLINING:
            raise self._code.reporter.fatal(node.loc, f"calls are nested more than {MAX_INLINING} deep")
        self._code.depth += 1
        arguments = self.arguments(target.parameters, target.bound, frame)
        closure = self._declaring_frame(signature, frame) if target.kind == "action" else None
        if target.kind == "action" and not self._code.in_action:
            self._code.program.actions.record_call(declaration, closure.prefix if closure else "")
        outer, self._code.in_action = self._code.in_action, self._code.in_action or target.kind == "action"
        callee = Frame(closure or self._code.program.globals, frame.prefix)
        copy_out = self.bind(target.parameters, arguments, callee, node, closed=target.kind == "function")
        self._code.copy_outs.append(copy_out)
        result = self.body(declaration.body, signature.return_type, callee, node)
        self._code.in_action = outer
        self._code.copy_outs.pop()
        if copy_out.pairs and not isinstance(result, Nothing):
            result = self.expressions.snapshot(result, node)
        self.copy_back(copy_out, node)
        self._code.depth -= 1
        return result

    def _declaring_frame(self, signature: Signature, frame: Frame) -> Frame | None:
        """The frame of the control that an action belongs to: the innermost one that has its symbol's scope."""
        current: Frame | None = frame
        while current is not None:
            if current.owns is signature.scope.parent:
                return current
            current = current.parent
        return None

    def body(self, body: s.Block, return_type: t.Type, frame: Frame, node: s.Node) -> Value:
        """A body with its returns; the value it returns."""
        last = body.statements[-1] if body.statements else None
        returns = [inner for inner in s.walk(body) if isinstance(inner, s.Return)]
        if not returns or (returns == [last]):
            for statement in body.statements if not returns else body.statements[:-1]:
                self.statements.lower(statement, frame)
            if isinstance(last, s.Return) and last.value is not None:
                return self.expressions.read(self.expressions.value(last.value, frame), last)
            return Nothing()
        result: Place | None = None
        if return_type is not t.VOID:
            result = self._code.program.storage.variable(return_type, "retval")
        label = ir.Label("return")
        self._code.returns.append((label, result))
        with self._code.branch() as inlined:
            self.statements.block(body, frame)
        self._code.returns.pop()
        self._code.emit(ir.Block(node.loc, node.end, label, inlined))
        return Nothing() if result is None else result

    # --- parsers and controls ---

    def _apply(self, node: s.Call, target: s.CallTarget, frame: Frame) -> None:
        assert target.receiver is not None
        if target.kind == "apply_type":
            instance = self._code.program.instances.anonymous_instance(target.receiver, node, frame)
        else:
            receiver = self.expressions.value(target.receiver, frame)
            if not isinstance(receiver, Instance):
                self._code.error(node, "this cannot be applied")
                return
            instance = receiver
        if self._code.depth >= MAX_INLINING:
            raise self._code.reporter.fatal(node.loc, f"calls are nested more than {MAX_INLINING} deep")
        self._code.depth += 1
        arguments = self.arguments(target.parameters, target.bound, frame)
        # The instance's own parameters: the call may have been checked against a mere type of control.
        self.apply_instance(instance, instance.signature.parameters, arguments, node)
        self._code.depth -= 1

    def apply_instance(
        self, instance: Instance, parameters: list[s.ParameterType], arguments: list[Value], node: s.Node
    ) -> None:
        """Inline the body of an instance here."""
        state = self._code.program.instances.state_of(instance)
        owned = state.owned if state.applied_often else None
        copy_out = self.bind(parameters, arguments, state.frame, node, closed=True, owned=owned)
        self._code.copy_outs.append(copy_out)
        declaration = instance.signature.node
        if isinstance(declaration, s.ParserDeclaration):
            self.parsers.inline(declaration, state, node)
        else:
            assert isinstance(declaration, s.ControlDeclaration) and declaration.body is not None
            for local in declaration.locals:
                if isinstance(local, s.VariableDeclaration):
                    self.statements.lower(local, state.frame)
            self.body(declaration.body, t.VOID, state.frame, node)
        self._code.copy_outs.pop()
        self.copy_back(copy_out, node)


def _is_fixed(value: Value) -> bool:
    """Whether nothing can change the value: constants and action data."""
    if isinstance(value, ir.Expr):
        return all(isinstance(leaf, (ir.Const, ir.RuntimeData)) for leaf in ir.reads(value))
    if isinstance(value, StructValue):
        return all(map(_is_fixed, value.parts.values()))
    return False
