"""The parser as C: one function, with its states as labels."""

from __future__ import annotations

from gradbed.switch.bmv2_json import expressions as ex
from gradbed.switch.bmv2_json import model as m
from gradbed.switch.bmv2_json.reader import MalformedProgram
from gradbed.switch.codegen.emit.headers_c import load_fields, load_variable, split_at_variable
from gradbed.switch.codegen.emit.probes import NO_PROBES, OperationDone, Probes, StateEntered, TransitionTaken
from gradbed.switch.codegen.emit.statements import Statements
from gradbed.switch.codegen.emit.values import Values
from gradbed.switch.codegen.layout import Layout

_OFFSET = "(uint64_t)(at - p->data)"


class ParserWriter:
    """Emits parser states. C names: at (position), end (of the frame), error (the parser error, 0 at first)."""

    def __init__(self, model: m.ProgramModel, layout: Layout, probes: Probes = NO_PROBES) -> None:
        self.model = model
        self.layout = layout
        self._probes = probes
        self.statements = Statements(model, layout, lookahead="at", now="p->pass->std.ingress_global_timestamp")
        self._state_number = {name: i for i, name in enumerate(model.parser.states)}
        self._value_set_number = {name: i for i, name in enumerate(model.value_sets)}

    def body(self) -> list[str]:
        """Return the statements from the first state to the label `done`."""
        parser = self.model.parser
        if parser.initial is None:
            return ["goto done;", "done:;"]
        loops = _has_loop(parser)
        lines = ["uint32_t steps = 0;"] if loops else []
        lines.append(self._go(parser.initial))
        for name in _reachable(parser):
            lines.append(f"state_{self._state_number[name]}:;")
            lines.extend(self._probes.at(StateEntered(name), _OFFSET))
            if loops:
                lines.append(f"if (++steps > GB_MAX_PARSER_STEPS) {self._fail('ParserTimeout')}")
            lines.extend(self._state(parser.states[name]))
        lines.append("done:;")
        return lines

    def _go(self, state: str | None) -> str:
        return "goto done;" if state is None else f"goto state_{self._state_number[state]};"

    def _fail(self, error: str) -> str:
        return f"{{ error = {self.model.errors[error]}; goto done; }}"

    def _state(self, state: m.ParseState) -> list[str]:
        lines: list[str] = []
        for index, operation in enumerate(state.operations):
            lines.extend(self._operation(operation))
            lines.extend(self._probes.at(OperationDone(state.name, index), _OFFSET))
        return lines + self._transitions(state)

    def _checked(self, text: str, values: Values) -> list[str]:
        """Return a statement after a check that its lookahead is within the frame."""
        if values.lookahead_bits == 0:
            return [text] if text else []
        return [self._need(str((values.lookahead_bits + 7) // 8)), text]

    def _need(self, length: str) -> str:
        return f"if ((uint64_t)(end - at) < {length}) {self._fail('PacketTooShort')}"

    def _operation(self, operation: m.ParserOperation) -> list[str]:
        statements = self.statements
        if isinstance(operation, m.Extract):
            return self._extract(operation)
        if isinstance(operation, m.Assign):
            target, value = operation.target, operation.value
            text = statements.statement(lambda: statements.assign(target, value))
            return self._checked(text, statements.values)
        if isinstance(operation, m.Verify):
            condition, error = operation.condition, operation.error
            text = statements.statement(
                lambda: (
                    f"if (!{statements.values.boolean(condition)}) "
                    f"{{ error = {statements.values.emit(error, 1)}; goto done; }}"
                )
            )
            return self._checked(text, statements.values)
        if isinstance(operation, m.Advance):
            return self._advance(operation.bits)
        if operation.op in ("exit", "_jump", "_jump_if_zero"):
            raise MalformedProgram(f"BMv2 JSON: primitive '{operation.op}' in a parser")
        text = statements.primitive(operation)
        return self._checked(text, statements.values)

    def _advance(self, bits: ex.Data) -> list[str]:
        statements = self.statements
        if isinstance(bits, ex.Constant) and bits.value % 8 == 0 and 0 <= bits.value < 1 << 32:
            return [self._need(str(bits.value // 8)), f"at += {bits.value // 8};"]

        def advance() -> str:
            return (
                f"uint64_t bits = {statements.values.index(bits)}; "
                f"if (bits % 8) {self._fail('ParserInvalidArgument')} {self._need('bits / 8')} at += bits / 8;"
            )

        text = statements.statement(advance)
        return self._checked(text if text.startswith("{") else f"{{ {text} }}", statements.values)

    # ---- Extraction ----

    def _extract(self, operation: m.Extract) -> list[str]:
        header = operation.header
        stack_name = header.stack if isinstance(header, ex.StackElement) else None
        if isinstance(header, ex.UnionMember) and isinstance(header.union, ex.UnionStackElement):
            stack_name = header.union.stack
        if stack_name is None:
            return self._extract_header(header, operation.variable_bits)
        stack = self.layout.stacks[stack_name]
        full = f"if (phv[{stack.counter}] >= {stack.elements}) {self._fail('StackOutOfBounds')}"
        following: ex.HeaderReference
        if isinstance(header, ex.StackElement):
            following = ex.StackElement(stack_name, ex.StackCount(stack_name))
        else:
            assert isinstance(header, ex.UnionMember)
            following = ex.UnionMember(ex.UnionStackElement(stack_name, ex.StackCount(stack_name)), header.member)
        lines = self._extract_header(following, operation.variable_bits)
        return [full, *lines, f"phv[{stack.counter}]++;"]

    def _extract_header(self, header: ex.HeaderReference, variable_bits: ex.Data | None) -> list[str]:
        values = self.statements.values = Values(self.model, self.layout, lookahead="at")
        place = values.header_layout(header)
        kind = place.type
        fixed_bytes = kind.fixed_bits // 8
        before, variable, after = split_at_variable(kind)
        lines: list[str] = []
        fixed = place.first.isdigit()
        first = place.first if fixed else "first"
        if not fixed:
            lines.append(f"first = {place.first};")
        valid = self.statements.make_valid(header)
        if variable is None:
            lines.append(self._need(str(fixed_bytes)))
            lines.extend(load_fields(kind, before, "at", first))
            return [*lines, valid, f"at += {fixed_bytes};"]
        slot = f"{first} + {kind.offsets[variable]}"
        if variable_bits is None:
            raise MalformedProgram("BMv2 JSON: extract of a variable-length header without its length")
        lines.extend(self._variable_length(variable_bits, kind, fixed_bytes))
        lines.extend(load_fields(kind, before, "at", first))
        lines.append(f"phv[{slot}] = variable_bits;")
        lines.append(load_variable(kind, variable, "at", f"{slot} + 1"))
        if after:
            lines.append("at += variable_bits / 8;")
            lines.extend(load_fields(kind, after, "at", first))
            return [*lines, valid, f"at += {fixed_bytes};"]
        return [*lines, valid, f"at += {fixed_bytes} + variable_bits / 8;"]

    def _variable_length(self, bits: ex.Data, kind: m.HeaderType, fixed_bytes: int) -> list[str]:
        """Set variable_bits, after the checks of BMv2 in its order."""
        statements = self.statements
        text = statements.statement(lambda: f"variable_bits = {statements.values.index(bits)};")
        return [
            *self._checked(text, statements.values),
            f"if (variable_bits % 8) {self._fail('ParserInvalidArgument')}",
            self._need(f"{fixed_bytes} + variable_bits / 8"),
            f"if ({fixed_bytes} + variable_bits / 8 > {kind.max_length_bytes}) {self._fail('HeaderTooShort')}",
        ]

    # ---- Transitions ----

    def _transitions(self, state: m.ParseState) -> list[str]:
        default = next((t for t in state.transitions if t.value is None and t.value_set is None), None)
        go_default = self._take(state, default)
        cases = [t for t in state.transitions if t.value is not None or t.value_set is not None]
        if not cases:
            return [go_default]
        statements = self.statements
        lines: list[str] = []
        stack_checks = [self._last_check(part) for part in state.key]
        lines.extend(check for check in stack_checks if check)
        key = _concatenation(state.key, state.key_widths)
        width = sum(state.key_widths)

        def select() -> str:
            values = statements.values
            words = max(1, (width + 63) // 64)
            name = values.temporary(words)
            text = values.emit(key, words)
            if words == 1:
                parts = [f"{name}[0] = {text};"]
            elif words == 2:
                parts = [f"gb_store128({name}, {text});"]
            else:
                parts = [f"memcpy({name}, {text}, sizeof {name});"]
            parts.extend(f"if ({self._matches(t, name, words)}) {self._take(state, t)}" for t in cases)
            return " ".join(parts)

        text = statements.statement(select)
        return [*lines, *self._checked(text, statements.values), go_default]

    def _take(self, state: m.ParseState, transition: m.StateTransition | None) -> str:
        index = next((i for i, t in enumerate(state.transitions) if t is transition), None)
        go = self._go(transition.next_state if transition else None)
        return self._probes.jump(TransitionTaken(state.name, index), go, _OFFSET)

    def _last_check(self, part: ex.Data) -> str | None:
        """Return the check for stack.last of an empty stack, which is an error (P4_16 1.2.5, section 8.18)."""
        if isinstance(part, ex.FieldReference):
            header = part.header
            stack = None
            if isinstance(header, ex.StackElement) and header.index is None:
                stack = header.stack
            if isinstance(header, ex.UnionMember) and isinstance(header.union, ex.UnionStackElement):
                stack = header.union.stack if header.union.index is None else None
            if stack is not None:
                return f"if (phv[{self.layout.stacks[stack].counter}] == 0) {self._fail('StackOutOfBounds')}"
        return None

    def _matches(self, transition: m.StateTransition, key: str, words: int) -> str:
        mask = transition.mask
        if transition.value_set is not None:
            number = self._value_set_number[transition.value_set]
            if mask is None:
                return f"gb_value_set_contains(sw->value_sets[{number}], {key})"
            parts = ", ".join(f"{key}[{i}] & {mask >> 64 * i & (1 << 64) - 1:#x}ULL" for i in range(words))
            masks = ", ".join(f"{mask >> 64 * i & (1 << 64) - 1:#x}ULL" for i in range(words))
            return (
                f"gb_value_set_contains_masked(sw->value_sets[{number}], (uint64_t[]){{{parts}}}, "
                f"(uint64_t[]){{{masks}}})"
            )
        assert transition.value is not None and mask is not None
        tests = []
        for i in range(words):
            value_word, mask_word = (v >> 64 * i & (1 << 64) - 1 for v in (transition.value, mask))
            if mask_word:
                tests.append(f"({key}[{i}] & {mask_word:#x}ULL) == {value_word:#x}ULL")
        return " && ".join(tests) or "1"


def _concatenation(parts: tuple[ex.Data, ...], widths: tuple[int, ...]) -> ex.Data:
    """Return the parts as unsigned bit strings, the first one on top."""
    result: ex.Data | None = None
    for part, width in zip(parts, widths, strict=True):
        bits: ex.Data = ex.Arithmetic("&", part, ex.Constant((1 << width) - 1))
        if result is not None:
            bits = ex.Arithmetic("|", ex.Arithmetic("<<", result, ex.Constant(width)), bits)
        result = bits
    return result or ex.Constant(0)


def _reachable(parser: m.Parser) -> list[str]:
    """Return states in the order in which they are met, so that the common path falls through the text."""
    order: list[str] = []
    waiting = [parser.initial] if parser.initial else []
    seen = set(waiting)
    while waiting:
        name = waiting.pop()
        order.append(name)
        for transition in reversed(parser.states[name].transitions):
            if transition.next_state is not None and transition.next_state not in seen:
                seen.add(transition.next_state)
                waiting.append(transition.next_state)
    return order


def _has_loop(parser: m.Parser) -> bool:
    following = {n: {t.next_state for t in s.transitions if t.next_state} for n, s in parser.states.items()}
    remaining = dict(following)
    while remaining:
        ends = [name for name, targets in remaining.items() if not targets & remaining.keys()]
        if not ends:
            return True
        for name in ends:
            del remaining[name]
    return False
