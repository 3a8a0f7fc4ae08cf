"""What primitives write to (fields, headers, stacks, register cells), as C statements."""

from __future__ import annotations

from collections.abc import Callable

from gradbed.switch.bmv2_json import expressions as ex
from gradbed.switch.bmv2_json.model import ActionParameter, ProgramModel, words_of
from gradbed.switch.bmv2_json.reader import MalformedProgram
from gradbed.switch.codegen.emit.probes import NO_PROBES, Probes
from gradbed.switch.codegen.emit.ranges import unsigned_range
from gradbed.switch.codegen.emit.values import Values, register_cell_bits
from gradbed.switch.codegen.layout import GROWTH, Layout


class Assignments:
    """Writes of packet and registers. The C text refers to sw, p, phv, and data for an action's arguments."""

    def __init__(
        self,
        model: ProgramModel,
        layout: Layout,
        parameters: tuple[ActionParameter, ...] = (),
        lookahead: str | None = None,
        now: str = "now",
        probes: Probes = NO_PROBES,
    ) -> None:
        """parameters and lookahead: see Values. now: C for the time in us that meters go by."""
        self.model = model
        self.layout = layout
        self._parameters = parameters
        self._lookahead = lookahead
        self._now = now
        self._probes = probes
        self._index = {
            "register": {name: i for i, name in enumerate(model.registers)},
            "counter": {name: i for i, name in enumerate(model.indirect_counters)},
            "meter": {name: i for i, name in enumerate(model.indirect_meters)},
            "calculation": {name: i for i, name in enumerate(model.calculations)},
            "extern": {name: i for i, name in enumerate(model.externs)},
        }
        self.values = self._new_values()

    def _new_values(self) -> Values:
        return Values(self.model, self.layout, self._parameters, self._lookahead)

    def statement(self, emit: Callable[[], str]) -> str:
        """What `emit` returns, as one C statement with the temporaries that its expressions needed."""
        self.values = self._new_values()
        text = emit()
        if not text:
            return ""
        if self.values.lines:
            return "{ " + " ".join([*self.values.lines, text]) + " }"
        return text

    # ---- Fields and register cells ----

    def store(self, target: ex.Field, value: ex.Data) -> str:
        """Write a number to a field, truncated to its width (or clamped, if the field saturates)."""
        kind = self.values.field_type(target)
        if kind.variable:
            raise MalformedProgram(f"BMv2 JSON: the variable-length field '{kind.name}' cannot be given a number")
        if kind.width == 0:
            return ""
        if kind.saturating:
            value = ex.Cast("sat_cast" if kind.signed else "usat_cast", value, kind.width)
        low, high = self.values.range(value)
        least, most = unsigned_range(kind.width)
        fits = least <= low and high <= most
        standard = self.layout.standard(target)
        words = words_of(kind.width)
        text = self.values.emit(value, words)
        if standard:
            return f"p->pass->std.{standard} = {self._masked(text, kind.width, fits)};"
        slot = self.values.slot(target)
        if words == 1:
            return f"phv[{slot}] = {self._masked(text, kind.width, fits)};"
        if words == 2:
            if not fits and kind.width < 128:
                text = f"({text} & GB_U128({(1 << kind.width - 64) - 1:#x}ULL, ~0ULL))"
            return f"gb_store128(&phv[{slot}], {text});"
        return f"gb_wide_truncate(&phv[{slot}], {text}, {words}, {kind.width});"

    @staticmethod
    def _masked(text: str, width: int, fits: bool) -> str:
        return text if fits or width >= 64 else f"({text}) & {(1 << width) - 1:#x}ULL"

    def store_text(self, target: ex.Field, text: str) -> str:
        """Write C text of type uint64_t to a field, truncated."""
        kind = self.values.field_type(target)
        standard = self.layout.standard(target)
        if kind.variable or kind.width == 0:
            raise MalformedProgram(f"BMv2 JSON: field '{kind.name}' cannot be given a number")
        if standard:
            return f"p->pass->std.{standard} = {self._masked(text, kind.width, False)};"
        words = words_of(kind.width)
        if words == 1:
            return f"phv[{self.values.slot(target)}] = {self._masked(text, kind.width, False)};"
        return f"gb_wide_from64(&phv[{self.values.slot(target)}], {words}, {text}, false);"

    def assign(self, target: ex.Parameter, value: ex.Parameter) -> str:
        number = self._number(value)
        if isinstance(target, ex.Field):
            if self.values.field_type(target).variable:
                return self.assign_variable(target, value)
            return self.store(target, number)
        if isinstance(target, ex.RegisterCell):
            return self._write_register(target.register, target.index, number)
        raise MalformedProgram("BMv2 JSON: assignment to something that is not a field")

    def assign_variable(self, target: ex.Parameter, value: ex.Parameter) -> str:
        if not isinstance(target, ex.Field) or not isinstance(value, ex.Field):
            raise MalformedProgram("BMv2 JSON: assign_VL takes two fields")
        to, source = self.values.field_type(target), self.values.field_type(value)
        if not to.variable or not source.variable:
            raise MalformedProgram("BMv2 JSON: assign_VL takes variable-length fields")
        words = to.words - 1
        return f"gb_copy_variable(&phv[{self.values.slot(target)}], &phv[{self.values.slot(value)}], {words});"

    def _write_register(self, name: str, index: ex.Data, value: ex.Data) -> str:
        width = self.model.registers[name].width
        register, at = f"&sw->registers[{self._index['register'][name]}]", self.values.index(index)
        low, high = self.values.range(value)
        fits = low >= 0 and high < 1 << width
        bits, words = register_cell_bits(width), words_of(width)
        text = self.values.emit(value, words)
        if bits:
            # The store itself truncates to the cell.
            return f"gb_register_write{bits}({register}, {at}, {self._masked(text, width, fits or bits == width)});"
        cell = self.values.temporary(words)
        source = cell if words == 2 else text
        fill = f"gb_store128({cell}, {text}); " if words == 2 else ""
        truncate = f"gb_wide_truncate({cell}, {source}, {words}, {width}); "
        return f"{fill}{truncate}gb_register_write_wide({register}, {at}, {cell});"

    # ---- Headers ----

    def make_valid(self, header: ex.HeaderReference) -> str:
        """Statements that mark a header valid, and the others of its union invalid."""
        siblings: list[ex.HeaderReference] = []
        if isinstance(header, ex.UnionMember):
            siblings = [m for m in self.values.union_members(header.union) if m != header]
        elif isinstance(header, ex.NamedHeader):
            siblings = [ex.NamedHeader(n) for n in self.layout.member_of.get(header.name, ()) if n != header.name]
        others = "".join(f"{self.values.validity(s)} = 0; " for s in siblings)
        return f"{others}{self.values.validity(header)} = 1;"

    def header_bytes(self, header: ex.HeaderReference) -> str:
        place = self.values.header_place(header)
        fixed = str(place.type.fixed_bits // 8)
        variable = place.type.variable_field
        if variable is None:
            return fixed
        return f"{fixed} + phv[{place.first} + {place.type.offsets[variable]}] / 8"

    def _add_header(self, header: ex.Parameter) -> str:
        reference = self._header(header)
        if self.values.is_metadata(reference):
            return ""
        place = self.values.header_place(reference)
        zero = f"memset(&phv[{place.first}], 0, {place.type.words} * sizeof *phv);"
        growth = f"phv[{GROWTH}] += {place.type.fixed_bits // 8};"
        return f"if (!{self.values.validity(reference)}) {{ {zero} {growth} {self.make_valid(reference)} }}"

    def _remove_header(self, header: ex.Parameter) -> str:
        reference = self._header(header)
        if self.values.is_metadata(reference):
            return ""
        validity = self.values.validity(reference)
        return f"if ({validity}) {{ phv[{GROWTH}] -= {self.header_bytes(reference)}; {validity} = 0; }}"

    def _assign_header(self, target: ex.Parameter, source: ex.Parameter) -> str:
        to, come_from = self._header(target), self._header(source)
        a, b = self.values.header_place(to), self.values.header_place(come_from)
        if a.type != b.type:
            raise MalformedProgram(f"BMv2 JSON: assign_header from {b.type.name} to {a.type.name}")
        copy = f"memmove(&phv[{a.first}], &phv[{b.first}], {a.type.words} * sizeof *phv);"
        if self.values.is_metadata(to):
            return copy
        validity = self.values.validity(to)
        return f"if ({self.values.validity(come_from)}) {{ {copy} {self.make_valid(to)} }} else {validity} = 0;"

    def _assign_union(self, target: ex.Parameter, source: ex.Parameter) -> str:
        if not isinstance(target, ex.UnionReference) or not isinstance(source, ex.UnionReference):
            raise MalformedProgram("BMv2 JSON: assign_union takes two header unions")
        pairs = zip(self.values.union_members(target), self.values.union_members(source), strict=False)
        return "{ " + " ".join(self._assign_header(a, b) for a, b in pairs) + " }"

    def _assign_stack(self, target: ex.Parameter, source: ex.Parameter) -> str:
        a, b = (self.layout.stacks[self._stack(s)] for s in (target, source))
        if (a.elements, a.stride, a.validity_stride) != (b.elements, b.stride, b.validity_stride):
            raise MalformedProgram("BMv2 JSON: assignment between stacks of different types")
        return (
            f"memmove(&phv[{a.validity}], &phv[{b.validity}], {a.elements * a.validity_stride} * sizeof *phv); "
            f"memmove(&phv[{a.first}], &phv[{b.first}], {a.elements * a.stride} * sizeof *phv); "
            f"phv[{a.counter}] = phv[{b.counter}];"
        )

    def _shift_stack(self, direction: str, stack: ex.Parameter, count: ex.Parameter) -> str:
        place = self.layout.stacks[self._stack(stack)]
        amount = self.values.index(self._number(count))
        return (
            f"gb_stack_{direction}(phv, {place.counter}, {place.elements}, {place.validity}, "
            f"{place.validity_stride}, {place.first}, {place.stride}, {amount});"
        )

    # ---- Parameters ----

    def _number(self, value: ex.Parameter) -> ex.Data:
        if not isinstance(value, ex.Data):
            raise MalformedProgram("BMv2 JSON: a primitive is given something that is not a number")
        return value

    def _header(self, value: ex.Parameter) -> ex.HeaderReference:
        if not isinstance(value, ex.HeaderReference):
            raise MalformedProgram("BMv2 JSON: a primitive is given something that is not a header")
        return value

    def _stack(self, value: ex.Parameter) -> str:
        if not isinstance(value, (ex.HeaderStack, ex.UnionStack)):
            raise MalformedProgram("BMv2 JSON: a primitive is given something that is not a header stack")
        return value.name
