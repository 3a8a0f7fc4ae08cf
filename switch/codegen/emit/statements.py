"""Primitives of actions and parsers as C, one statement for each, and whole actions."""

from __future__ import annotations

from collections.abc import Callable

from gradbed.switch.bmv2_json import expressions as ex
from gradbed.switch.bmv2_json.model import ActionParameter, Primitive, ProgramModel, Source, words_of
from gradbed.switch.bmv2_json.reader import MalformedProgram
from gradbed.switch.codegen.emit.probes import NO_PROBES, ArrayAccess, Probes, Site, array_accesses
from gradbed.switch.codegen.emit.ranges import unsigned_range
from gradbed.switch.codegen.emit.values import Values, quoted, register_cell_bits
from gradbed.switch.codegen.layout import DIGEST, FRAME_LENGTH, GROWTH, Layout
from gradbed.switch.state.externs import EXTERNS, ExternKind

# ---- Assignments ----


class Assignments:
    """Writes of packet and registers. The C text refers to sw, p, phv, and data for the arguments of an action."""

    def __init__(
        self,
        model: ProgramModel,
        layout: Layout,
        parameters: tuple[ActionParameter, ...] = (),
        lookahead: str | None = None,
        now: str = "now",
        probes: Probes = NO_PROBES,
    ) -> None:
        """Emit for a model and a layout.

        Args:
            model: The program.
            layout: Where fields are.
            parameters: See Values.
            lookahead: See Values.
            now: C for the time in us that meters use.
            probes: Where to emit probes.
        """
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
        """Return what `emit` returns, as one C statement with the temporaries that its expressions needed."""
        self.values = self._new_values()
        text = emit()
        if not text:
            return ""
        if self.values.lines:
            return "{ " + " ".join([*self.values.lines, text]) + " }"
        return text

    # ---- Fields and register cells ----

    def store(self, target: ex.FieldReference, value: ex.Data) -> str:
        """Write a number to a field, truncated to its width (or clamped, if the field saturates)."""
        kind = self.values.field_type(target)
        if kind.variable:
            raise MalformedProgram(f"BMv2 JSON: the variable-length field '{kind.name}' cannot be given a number")
        if kind.width == 0:
            return ""
        if kind.saturating:
            value = ex.CastOperation("sat_cast" if kind.signed else "usat_cast", value, kind.width)
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

    def store_text(self, target: ex.FieldReference, text: str) -> str:
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
        if isinstance(target, ex.FieldReference):
            if self.values.field_type(target).variable:
                return self.assign_variable(target, value)
            return self.store(target, number)
        if isinstance(target, ex.RegisterCell):
            return self._write_register(target.register, target.index, number)
        raise MalformedProgram("BMv2 JSON: assignment to something that is not a field")

    def assign_variable(self, target: ex.Parameter, value: ex.Parameter) -> str:
        if not isinstance(target, ex.FieldReference) or not isinstance(value, ex.FieldReference):
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
        """Return statements that mark a header valid, and the others of its union invalid."""
        siblings: list[ex.HeaderReference] = []
        if isinstance(header, ex.UnionMember):
            siblings = [m for m in self.values.union_members(header.union) if m != header]
        elif isinstance(header, ex.NamedHeader):
            siblings = [ex.NamedHeader(n) for n in self.layout.member_of.get(header.name, ()) if n != header.name]
        others = "".join(f"{self.values.validity(s)} = 0; " for s in siblings)
        return f"{others}{self.values.validity(header)} = 1;"

    def header_bytes(self, header: ex.HeaderReference) -> str:
        place = self.values.header_layout(header)
        fixed = str(place.type.fixed_bits // 8)
        variable = place.type.variable_field
        if variable is None:
            return fixed
        return f"{fixed} + phv[{place.first} + {place.type.offsets[variable]}] / 8"

    def _add_header(self, header: ex.Parameter) -> str:
        reference = self._header(header)
        if self.values.is_metadata(reference):
            return ""
        place = self.values.header_layout(reference)
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
        a, b = self.values.header_layout(to), self.values.header_layout(come_from)
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


# ---- Externs, and requests to the engine ----


class ExternStatements(Assignments):
    """Statements for externs, and for requests to the engine."""

    # ---- State ----

    def _read_register(self, target: ex.Parameter, register: ex.Parameter, index: ex.Parameter) -> str:
        if not isinstance(register, ex.RegisterReference):
            raise MalformedProgram("BMv2 JSON: register_read needs a register array")
        return self.assign(target, ex.RegisterCell(register.name, self._number(index)))

    def _register_write(self, register: ex.Parameter, index: ex.Parameter, value: ex.Parameter) -> str:
        if not isinstance(register, ex.RegisterReference):
            raise MalformedProgram("BMv2 JSON: register_write needs a register array")
        return self._write_register(register.name, self._number(index), self._number(value))

    def _count(self, counter: ex.Parameter, index: ex.Parameter) -> str:
        if not isinstance(counter, ex.CounterReference) or counter.name not in self._index["counter"]:
            raise MalformedProgram("BMv2 JSON: count needs an indirect counter array")
        at = self.values.index(self._number(index))
        return f"gb_counter_count(&sw->counters[{self._index['counter'][counter.name]}], {at}, phv[{FRAME_LENGTH}]);"

    def _execute_meter(self, meter: ex.Parameter, index: ex.Parameter, target: ex.Parameter) -> str:
        if not isinstance(meter, ex.MeterReference) or meter.name not in self._index["meter"]:
            raise MalformedProgram("BMv2 JSON: execute_meter needs an indirect meter array")
        if not isinstance(target, ex.FieldReference):
            raise MalformedProgram("BMv2 JSON: execute_meter writes to a field")
        at = self.values.index(self._number(index))
        old = self.values.emit(target, 1)
        cells = f"sw->meters[{self._index['meter'][meter.name]}]"
        colour = f"gb_meter_execute({cells}, {at}, {self._now}, phv[{FRAME_LENGTH}], {old})"
        return self.store_text(target, colour)

    def _method(self, op: str, instance: ex.ExternInstance, given: tuple[ex.Parameter, ...]) -> str:
        """Return a call of a method of an extern of gradbed.p4."""
        kind = extern_kind(self.model.externs[instance.name].kind)
        method = next((method for method in kind.methods if op == kind.operation(method)), None)
        roles = kind.methods.get(method or "", ())
        if method is None or len(given) != len(roles):
            raise MalformedProgram(f"BMv2 JSON: {kind.name} has no '{op[:60]}' of {len(given)} parameters")
        arguments, target = [f"sw->externs[{self._index['extern'][instance.name]}]"], None
        for role, parameter in zip(roles, given, strict=True):
            if role == "in":
                arguments.append(self.values.emit(self._number(parameter), 1))
            elif role == "key" and isinstance(parameter, ex.Calculation):
                arguments.append(f"calculation_{self._index['calculation'][parameter.name]}(sw, p)")
            elif role == "out" and isinstance(parameter, ex.FieldReference):
                target = parameter
            else:
                raise MalformedProgram(f"BMv2 JSON: '{op}' takes a {'calculation' if role == 'key' else 'field'}")
        call = f"{kind.c_name}_{method}({', '.join(arguments)})"
        return f"{call};" if target is None else self.store_text(target, call)

    def _hash(self, target: ex.Parameter, base: ex.Parameter, name: ex.Parameter, size: ex.Parameter) -> str:
        if not isinstance(target, ex.FieldReference) or not isinstance(name, ex.Calculation):
            raise MalformedProgram(
                "BMv2 JSON: modify_field_with_hash_based_offset takes field, base, calculation, size"
            )
        first, modulus = self.values.emit(self._number(base), 1), self.values.emit(self._number(size), 1)
        number = self._index["calculation"][name.name]
        return self.store_text(target, f"(gb_hash_modulo(calculation_{number}(sw, p), {modulus}) + {first})")

    def _random(self, target: ex.Parameter, low: ex.Parameter, high: ex.Parameter) -> str:
        if not isinstance(target, ex.FieldReference):
            raise MalformedProgram("BMv2 JSON: modify_field_rng_uniform writes to a field")
        bounds = [self.values.emit(self._number(v), 1) for v in (low, high)]
        drawn = self.store_text(target, f"gb_random_between(sw, {bounds[0]}, {bounds[1]})")
        if bounds[0] == "0ULL":  # no unsigned number is less, and C compilers say so
            return drawn
        return f"if ({bounds[0]} <= {bounds[1]}) {{ {drawn} }}"

    # ---- Requests to the engine ----

    def _drop(self, _standard: ex.Parameter) -> str:
        return "p->pass->std.egress_spec = sw->drop_port; p->pass->std.mcast_grp = 0;"

    def _clone(self, session: ex.Parameter, field_list: ex.Parameter) -> str:
        numbers = [self.values.emit(self._number(v), 1) for v in (session, field_list)]
        return (
            f"p->pass->requests.clone = 1; p->pass->requests.clone_session = (uint32_t){numbers[0]}; "
            f"p->pass->requests.clone_field_list = (uint32_t){numbers[1]};"
        )

    def _request(self, name: str, field_list: ex.Parameter) -> str:
        number = self.values.emit(self._number(field_list), 1)
        return f"p->pass->requests.{name} = 1; p->pass->requests.{name}_field_list = (uint32_t){number};"

    def _truncate(self, length: ex.Parameter) -> str:
        """Return a request to truncate the packet; the smallest length of several calls counts, as on BMv2."""
        number = self.values.index(self._number(length))
        requests = "p->pass->requests"
        before = f"{requests}.truncate ? {requests}.truncate_length_bytes : UINT32_MAX"
        return f"{requests}.truncate_length_bytes = (uint32_t)gb_min({number}, {before}); {requests}.truncate = 1;"

    def _digest(self, _receiver: ex.Parameter, digest: ex.Parameter) -> str:
        return f"phv[{DIGEST}] = {self.values.emit(self._number(digest), 1)};"

    def _log(self, text: ex.Parameter, vector: ex.Parameter) -> str:
        if not isinstance(text, ex.Text) or not isinstance(vector, ex.Vector):
            raise MalformedProgram("BMv2 JSON: log_msg takes a format and a vector")
        parts = ["struct gb_log_line line = {0};"]
        arguments = list(vector.items)
        for position, piece in enumerate(_format_pieces(text.value)):
            if position and arguments:
                parts.append(self._log_number(self._number(arguments.pop(0))))
            elif position:
                parts.append('gb_log_text(&line, "{}");')
            if piece:
                parts.append(f"gb_log_text(&line, {quoted(piece)});")
        return "{ " + " ".join(parts) + " gb_log_send(sw, &line); }"

    def _log_number(self, value: ex.Data) -> str:
        text, own = self.values.exact(value)
        sign = "true" if own.signed else "false"
        if own.words == 1:
            return f"gb_log_number(&line, (uint64_t[]){{{text}}}, 1, {sign});"
        if own.words == 2:
            words = self.values.temporary(2)
            return f"gb_store128({words}, {text}); gb_log_number(&line, {words}, 2, {sign});"
        return f"gb_log_number(&line, {text}, {own.words}, {sign});"

    def _assert(self, kind: str, condition: ex.Parameter, source: Source | None) -> str:
        holds = (
            self.values.boolean(condition)
            if isinstance(condition, ex.Boolean)
            else self.values.boolean(ex.NonZero(self._number(condition)))
        )
        text = quoted(f"{kind} failed: {source} {source.fragment}" if source else f"{kind} failed")
        return f"if (!{holds}) gb_log(sw, {text});"


def extern_kind(name: str) -> ExternKind:
    kind = EXTERNS.get(name)
    if kind is None:
        raise MalformedProgram(f"BMv2 JSON: extern type '{name[:60]}' is not supported")
    return kind


def _format_pieces(text: str) -> list[str]:
    """Return the text between the {} of a log_msg format, with escaped braces replaced."""
    pieces, rest = [""], text
    while rest:
        if rest.startswith(("\\{", "\\}")):
            pieces[-1] += rest[1]
            rest = rest[2:]
        elif rest[0] == "{" and "}" in rest:
            rest = rest[rest.index("}") + 1 :]
            pieces.append("")
        else:
            pieces[-1] += rest[0]
            rest = rest[1:]
    return pieces


# ---- Primitives and actions ----


_JUMPS = ("_jump", "_jump_if_zero")


class Statements(ExternStatements):
    """Emits primitives. The C text refers to sw, p, phv, and data for the arguments of the action at hand."""

    # ---- Primitives by name ----

    def primitive(self, primitive: Primitive) -> str:
        """Return one C statement, empty for a primitive without effect. Jumps are left to `body`."""
        op, parameters = primitive.op, primitive.parameters
        if op in ("assert", "assume") and len(parameters) == 1:
            return self.statement(lambda: self._assert(op, parameters[0], primitive.source))
        first = parameters[0] if parameters else None
        if isinstance(first, ex.ExternInstance):
            return self.statement(lambda: self._method(op, first, parameters[1:]))
        handler, count = self._handler(op)
        if handler is None:
            raise MalformedProgram(f"BMv2 JSON: primitive '{op[:60]}' is not supported")
        if len(parameters) != count:
            raise MalformedProgram(f"BMv2 JSON: primitive '{op}' takes {count} parameters, got {len(parameters)}")
        return self.statement(lambda: handler(*parameters))

    def _handler(self, op: str) -> tuple[Callable[..., str] | None, int]:
        handlers: dict[str, tuple[Callable[..., str], int]] = {
            "assign": (self.assign, 2),
            "assign_VL": (self.assign_variable, 2),
            "assign_header": (self._assign_header, 2),
            "assign_union": (self._assign_union, 2),
            "assign_header_stack": (self._assign_stack, 2),
            "assign_union_stack": (self._assign_stack, 2),
            "add_header": (self._add_header, 1),
            "remove_header": (self._remove_header, 1),
            "push": (lambda stack, count: self._shift_stack("push", stack, count), 2),
            "pop": (lambda stack, count: self._shift_stack("pop", stack, count), 2),
            "register_read": (self._read_register, 3),
            "register_write": (self._register_write, 3),
            "count": (self._count, 2),
            "execute_meter": (self._execute_meter, 3),
            "modify_field_with_hash_based_offset": (self._hash, 4),
            "modify_field_rng_uniform": (self._random, 3),
            "mark_to_drop": (self._drop, 1),
            "clone_ingress_pkt_to_egress": (self._clone, 2),
            "clone_egress_pkt_to_egress": (self._clone, 2),
            "resubmit": (lambda fields: self._request("resubmit", fields), 1),
            "recirculate": (lambda fields: self._request("recirculate", fields), 1),
            "truncate": (self._truncate, 1),
            "generate_digest": (self._digest, 2),
            "log_msg": (self._log, 2),
            "exit": (lambda: "return 1;", 0),
        }
        return handlers.get(op, (None, 0))

    # ---- Whole actions ----

    def body(
        self, primitives: tuple[Primitive, ...], site: Callable[[int], Site], drop: Callable[[int], int] | None = None
    ) -> list[str]:
        """Return the statements of an action. `exit` returns 1 from the function that contains them.

        Args:
            primitives: The primitives of the action.
            site: Returns the site of a primitive.
            drop: Returns the first drop site of a mark_to_drop (see DropSites), where packets are dropped.
        """
        targets = {self._jump_target(p, len(primitives)) for p in primitives if p.op in _JUMPS}
        backward = any(
            p.op in _JUMPS and self._jump_target(p, len(primitives)) <= i for i, p in enumerate(primitives)
        )
        lines = ["uint32_t jumps = 0;"] if backward else []
        for index, primitive in enumerate(primitives):
            if index in targets:
                lines.append(f"at_{index}:;")
            if primitive.op in _JUMPS:
                lines.extend(self._probes.at(site(index)))
                lines.append(self._jump(primitive, index, len(primitives)))
            else:
                lines.extend(self._probed(primitive, site(index)))
            if primitive.op == "mark_to_drop" and drop is not None:
                lines.append(f"sw->drop_site = {drop(index)}u + sw->drop_caller;")
        if len(primitives) in targets:
            lines.append(f"at_{len(primitives)}:;")
        return lines

    def _probed(self, primitive: Primitive, site: Site) -> list[str]:
        """Return the statement of a primitive, with probes around it."""
        text = self.primitive(primitive)
        statement = [text] if text else []
        if not self._probes.recording:
            return statement
        if primitive.op == "exit":
            return [*self._probes.at(site), *statement]
        accesses = array_accesses(primitive)
        before = [self._access(site, access) for access in accesses]
        after = self._probes.accessed(site) if any(a.writes for a in accesses) else []
        return [*before, *statement, *after, *self._probes.at(site)]

    def _access(self, site: Site, access: ArrayAccess) -> str:
        number = self._index[access.kind][access.name]
        return self.statement(lambda: self._probes.access(site, access, number, self.values.index(access.index)))

    def _jump_target(self, primitive: Primitive, count: int) -> int:
        target = primitive.parameters[-1] if primitive.parameters else None
        if not isinstance(target, ex.Constant) or not target.value >= 0:
            raise MalformedProgram(f"BMv2 JSON: {primitive.op} needs a constant target")
        return min(target.value, count)

    def _jump(self, primitive: Primitive, index: int, count: int) -> str:
        target = self._jump_target(primitive, count)
        # A loop that the packet does not end is ended for it.
        guard = "" if target > index else "if (++jumps > GB_MAX_JUMPS) return 0; "
        go = f"{{ {guard}goto at_{target}; }}"
        if primitive.op == "_jump":
            return go
        if len(primitive.parameters) != 2:
            raise MalformedProgram("BMv2 JSON: _jump_if_zero takes 2 parameters")
        condition = self._number(primitive.parameters[0])
        return self.statement(lambda: f"if (!{self.values.boolean(ex.NonZero(condition))}) {go}")
