"""Actions of tables, and those that are only called."""

from __future__ import annotations

from typing import TYPE_CHECKING

from switch.compiler import syntax as s
from switch.compiler import types as t
from switch.compiler.lower import ir
from switch.compiler.lower.scope import Frame
from switch.compiler.lower.tables import ActionParameter, LoweredAction

if TYPE_CHECKING:
    from switch.compiler.lower.state import ProgramState


class Actions:
    """`lowered`: in order of their numbers in BMv2 JSON. `called`: by name, without a body."""

    def __init__(self, program: ProgramState) -> None:
        self._program = program
        self.lowered: list[LoweredAction] = []
        self.called: dict[str, LoweredAction] = {}
        self._known: dict[tuple[Frame, s.Node, ir.FieldRef | None], LoweredAction] = {}

    def lower(self, ref: s.ActionRef, owner: Frame, exit_flag: ir.FieldRef | None) -> LoweredAction:
        """The action of a table, its body lowered once: for all tables, or for one where it has bound arguments."""
        node = ref.action
        assert node is not None
        is_global = self._is_global(node)
        key = (self._program.globals if is_global else owner, ref if ref.bound else node, exit_flag)
        known = self._known.get(key)
        if known is None:
            name = self._program.control_name(node.annotations, "" if is_global else owner.prefix, node.name)
            known = self._known[key] = self._lower_action(ref, node, name, owner, exit_flag)
            self.lowered.append(known)
        return known

    def record_call(self, node: s.FunctionDeclaration, prefix: str) -> None:
        """An action is called by a control itself: P4Info lists it, though the control plane cannot use it."""
        name = self._program.control_name(node.annotations, "" if self._is_global(node) else prefix, node.name)
        self.called.setdefault(name, LoweredAction(name, [], [], node))

    def _is_global(self, node: s.FunctionDeclaration) -> bool:
        symbol = self._program.checked.globals.names.get(node.name)
        return symbol is not None and symbol.node is node

    def _lower_action(
        self,
        ref: s.ActionRef,
        node: s.FunctionDeclaration,
        name: str,
        owner: Frame,
        exit_flag: ir.FieldRef | None,
    ) -> LoweredAction:
        assert node.body is not None
        code = self._program.code("action")
        code.exit_flag = exit_flag
        frame = Frame(owner, owner.prefix)
        parameters: list[ActionParameter] = []
        directed = [parameter for parameter in node.signature if parameter.direction]
        label, finished = ir.Label("return"), ir.Label("finished")
        code.finished = finished
        with code.branch() as body:
            arguments = code.calls.arguments(directed, ref.bound, owner) if ref.bound else []
            copy_out = code.calls.bind(directed[: len(arguments)], arguments, frame, ref, closed=False)
            for parameter in node.signature:
                if not parameter.direction:
                    data = ir.RuntimeData(t.representation(parameter.type), len(parameters))
                    frame.values[parameter.symbol] = data
                    given = parameter.node.annotations
                    annotation = s.find_annotation(given, "name")
                    name_there = annotation.string() if annotation is not None else None
                    parameters.append(ActionParameter(name_there or parameter.name, parameter.type, given))
            code.returns.append((label, None))
            code.copy_outs.append(copy_out)
            with code.branch() as inner:
                code.statements_lowering.block(node.body, frame)
            code.copy_outs.pop()
            code.emit(ir.Block(node.loc, node.end, label, inner))
            code.calls.copy_back(copy_out, ref)
        return LoweredAction(name, parameters, [ir.Block(node.loc, node.end, finished, body)], node)
