"""The section `parsers`: states with operations and transitions."""

from __future__ import annotations

from dataclasses import dataclass, field

from gradbed.switch.compiler import ir
from gradbed.switch.compiler import types as t
from gradbed.switch.compiler.emit.primitives import Json, boolean, hex_digits, hexstr, number, parameter
from gradbed.switch.compiler.emit.primitives import field as field_json
from gradbed.switch.compiler.ir import LoweredProgram
from gradbed.switch.compiler.ir.storage import NameSet, Storage
from gradbed.switch.compiler.source import SourceManager


@dataclass(eq=False)
class JsonState:
    """A state of BMv2 JSON."""

    name: str
    loc: int
    operations: list[Json] = field(default_factory=list)
    key: list[Json] = field(default_factory=list)
    transitions: list[Json] = field(default_factory=list)

    def go(self, target: JsonState | None, source: Json | None = None) -> None:
        self.transitions.append(_transition("default", None, None, target, source))


def _transition(
    kind: str, value: str | None, mask: str | None, target: JsonState | None, source: Json | None = None
) -> Json:
    """Return a transition. `source` has its source_info, which p4c leaves out and readers of the format ignore."""
    name = target.name if target is not None else None
    return {"type": kind, "value": value, "mask": mask, "next_state": name, **(source or {})}


class ParserEmitter:
    """Emits states. Those with branches become several states of BMv2, which has none within a state."""

    def __init__(self, program: LoweredProgram, storage: Storage, sources: SourceManager) -> None:
        self._program = program
        self._storage = storage
        self._sources = sources
        self._errors = program.checked.errors
        self._states: list[JsonState] = []
        self._known: dict[tuple[ir.LoweredState, JsonState | None], JsonState] = {}
        self._failures: dict[str, JsonState] = {}
        self._labels: dict[ir.Label, JsonState] = {}  # what comes after a block
        self._heads: dict[ir.Label, JsonState] = {}  # where a block that is repeated starts
        self._names = NameSet()

    def emit(self) -> list[Json]:
        start = self._state(self._program.parser_start, None)
        node = self._program.parser_node
        return [
            {
                "name": "parser",
                "id": 0,
                "source_info": self._sources.source_info(node.name_loc, node.name_loc + len(node.name)),
                "init_state": start.name,
                "parse_states": [
                    {
                        "name": state.name,
                        "id": number_,
                        "parser_ops": state.operations,
                        "transitions": state.transitions,
                        "transition_key": state.key,
                        **self._source_info(state),
                    }
                    for number_, state in enumerate(self._states)
                ],
            }
        ]

    def _source_info(self, state: JsonState) -> Json:
        return {"source_info": self._sources.source_info(state.loc, -1)} if state.loc else {}

    def _at(self, loc: int, end: int) -> Json:
        """Return the member source_info of an operation or transition."""
        return {"source_info": self._sources.source_info(loc, end)} if loc else {}

    def _new(self, name: str, loc: int = 0) -> JsonState:
        state = JsonState(self._names.unique(name), loc)
        self._states.append(state)
        return state

    def _state(self, state: ir.LoweredState, accept: JsonState | None) -> JsonState:
        """Return the JSON state for a state. `accept` is where the accept of its parser leads; None: the end."""
        key = (state, accept)
        known = self._known.get(key)
        if known is not None:
            return known
        first = self._new(state.name, state.loc)
        self._known[key] = first
        last = self._body(state.body, first)
        if last is not None:
            assert state.transition is not None
            self._select(state.transition, last, accept)
        return first

    def _target(self, target: ir.Target, accept: JsonState | None) -> JsonState | None:
        if isinstance(target, ir.LoweredState):
            return self._state(target, accept)
        return accept if target == "accept" else self._failure("reject", "NoError")

    def _failure(self, name: str, error: str) -> JsonState:
        """Return a state that ends parsing with an error."""
        known = self._failures.get(name)
        if known is None:
            known = self._failures[name] = self._new(name)
            code = self._errors[error].number if error in self._errors else 0
            known.operations.append({"op": "verify", "parameters": [{"type": "bool", "value": False}, hexstr(code)]})
            known.go(None)
        return known

    def _select(self, select: ir.Select, state: JsonState, accept: JsonState | None) -> None:
        default_at = self._at(*select.default_at)
        if not select.keys:
            state.go(self._target(select.default, accept), default_at)
            return
        state.key = [number(key) for key in select.keys]
        widths = [t.width_bits(key.type) or 1 for key in select.keys]
        for case in select.cases:
            target, source = self._target(case.target, accept), self._at(*case.at)
            if case.value_set:
                state.transitions.append(_transition("parse_vset", case.value_set, None, target, source))
                continue
            value = "".join(
                hex_digits(value, width)[2:] for (value, _), width in zip(case.matches, widths, strict=True)
            )
            mask = None
            if any(mask is not None for _, mask in case.matches):
                mask = "0x" + "".join(
                    hex_digits((1 << width) - 1 if mask is None else mask, width)[2:]
                    for (_, mask), width in zip(case.matches, widths, strict=True)
                )
            state.transitions.append(_transition("hexstr", "0x" + value, mask, target, source))
        if select.has_default:
            state.go(self._target(select.default, accept), default_at)
        else:
            state.go(self._failure("no_match", "NoMatch"))

    # ---- Operations ----

    def _body(self, body: list[ir.LoweredStatement], state: JsonState) -> JsonState | None:
        """Put statements into a state, and into further ones where they branch; None if none is left."""
        current: JsonState | None = state
        for statement in body:
            assert current is not None
            if isinstance(statement, ir.LoweredIf):
                current = self._branch(statement, current)
            elif isinstance(statement, ir.LoweredBlock):
                current = self._block(statement, current)
            elif isinstance(statement, ir.Leave):
                current.go(self._labels[statement.label])
                return None
            elif isinstance(statement, ir.Repeat):
                current.go(self._heads[statement.label])
                return None
            elif isinstance(statement, ir.SubParser):
                behind = self._new(f"{statement.start.name}_done")
                current.go(self._state(statement.start, behind))
                current = behind
            else:
                current.operations.append(self._operation(statement) | self._at(statement.loc, statement.end))
            if current is None:
                return None
        return current

    def _branch(self, statement: ir.LoweredIf, state: JsonState) -> JsonState | None:
        test = self._storage.scalar(t.BOOL, "tmp")
        state.operations.append(self._set(test, statement.condition))
        state.key = [field_json(test)]
        ends = []
        for body, is_then in ((statement.then, True), (statement.otherwise, False)):
            branch = self._new(f"{state.name}_{'true' if is_then else 'false'}")
            kind, value = ("hexstr", "0x01") if is_then else ("default", None)
            state.transitions.append(_transition(kind, value, None, branch))
            ends.append(self._body(body, branch))
        if ends == [None, None]:
            return None
        join = self._new(f"{state.name}_join")
        for end in ends:
            if end is not None:
                end.go(join)
        return join

    def _block(self, statement: ir.LoweredBlock, state: JsonState) -> JsonState | None:
        if not statement.label.used:
            return self._body(statement.body, state)
        if any(isinstance(inner, ir.Repeat) for inner in statement.body):
            head = self._heads[statement.label] = self._new(f"{state.name}_{statement.label.name}")
            state.go(head)
            state = head
        behind = self._new(f"{state.name}_{statement.label.name}_end")
        self._labels[statement.label] = behind
        end = self._body(statement.body, state)
        if end is not None:
            end.go(behind)
        return behind

    def _operation(self, statement: ir.LoweredStatement) -> Json:
        if isinstance(statement, ir.LoweredAssign):
            return self._set(statement.target, statement.value)
        if isinstance(statement, ir.LoweredLookahead):
            source = {"type": "lookahead", "value": [statement.offset_bits, statement.width_bits]}
            return {"op": "set", "parameters": [field_json(statement.target), source]}
        if isinstance(statement, ir.LoweredExtract):
            return self._extract(statement)
        if isinstance(statement, ir.LoweredAdvance):
            return {"op": "advance", "parameters": [parameter(statement.bits)]}
        if isinstance(statement, ir.LoweredVerify):
            return {"op": "verify", "parameters": [boolean(statement.condition), number(statement.error)]}
        assert isinstance(statement, ir.LoweredPrimitive)
        inner: Json = {"op": statement.op, "parameters": [parameter(item) for item in statement.parameters]}
        if statement.loc:
            inner["source_info"] = self._sources.source_info(statement.loc, statement.end)
        return {"op": "primitive", "parameters": [inner]}

    @staticmethod
    def _set(target: ir.FieldRef, value: ir.Expr) -> Json:
        source = parameter(value)
        if source["type"] == "stack_field":
            source = {"type": "expression", "value": source}
        return {"op": "set", "parameters": [field_json(target), source]}

    @staticmethod
    def _extract(statement: ir.LoweredExtract) -> Json:
        name: str | list[str] = [statement.name, statement.member] if statement.member else statement.name
        parameters: list[Json] = [{"type": statement.kind, "value": name}]
        if statement.length is None:
            return {"op": "extract", "parameters": parameters}
        parameters.append({"type": "expression", "value": number(statement.length)})
        return {"op": "extract_VL", "parameters": parameters}
