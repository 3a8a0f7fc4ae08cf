"""Straight code with branches as a list of primitives with jumps."""

from __future__ import annotations

from gradbed.switch.compiler import ir
from gradbed.switch.compiler import types as t
from gradbed.switch.compiler.emit.expressions import Json, field, hexstr, parameter
from gradbed.switch.compiler.ir import LoweredAction
from gradbed.switch.compiler.source import SourceManager


class PrimitiveList:
    """Primitives of one action; jumps get their targets when all are known."""

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
        """Put a label here; a jump to it from right before it is left out."""
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
