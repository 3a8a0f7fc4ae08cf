"""Primitives that use externs or ask something of the engine, as C statements."""

from __future__ import annotations

from gradbed.switch.bmv2_json import expressions as ex
from gradbed.switch.bmv2_json.model import Source
from gradbed.switch.bmv2_json.reader import MalformedProgram
from gradbed.switch.codegen.c_text import quoted
from gradbed.switch.codegen.emit.assignments import Assignments
from gradbed.switch.codegen.layout import DIGEST, FRAME_LENGTH
from gradbed.switch.state.externs.kind import ExternKind
from gradbed.switch.state.externs.kinds import EXTERNS


class ExternStatements(Assignments):
    """Externs, and requests to the engine."""

    # ---- State ----

    def _read_register(self, target: ex.Parameter, register: ex.Parameter, index: ex.Parameter) -> str:
        if not isinstance(register, ex.RegisterArray):
            raise MalformedProgram("BMv2 JSON: register_read needs a register array")
        return self.assign(target, ex.RegisterCell(register.name, self._number(index)))

    def _register_write(self, register: ex.Parameter, index: ex.Parameter, value: ex.Parameter) -> str:
        if not isinstance(register, ex.RegisterArray):
            raise MalformedProgram("BMv2 JSON: register_write needs a register array")
        return self._write_register(register.name, self._number(index), self._number(value))

    def _count(self, counter: ex.Parameter, index: ex.Parameter) -> str:
        if not isinstance(counter, ex.CounterArray) or counter.name not in self._index["counter"]:
            raise MalformedProgram("BMv2 JSON: count needs an indirect counter array")
        at = self.values.index(self._number(index))
        return f"gb_counter_count(&sw->counters[{self._index['counter'][counter.name]}], {at}, phv[{FRAME_LENGTH}]);"

    def _execute_meter(self, meter: ex.Parameter, index: ex.Parameter, target: ex.Parameter) -> str:
        if not isinstance(meter, ex.MeterArray) or meter.name not in self._index["meter"]:
            raise MalformedProgram("BMv2 JSON: execute_meter needs an indirect meter array")
        if not isinstance(target, ex.Field):
            raise MalformedProgram("BMv2 JSON: execute_meter writes to a field")
        at = self.values.index(self._number(index))
        old = self.values.emit(target, 1)
        cells = f"sw->meters[{self._index['meter'][meter.name]}]"
        colour = f"gb_meter_execute({cells}, {at}, {self._now}, phv[{FRAME_LENGTH}], {old})"
        return self.store_text(target, colour)

    def _method(self, op: str, instance: ex.ExternInstance, given: tuple[ex.Parameter, ...]) -> str:
        """A call of a method of one of this project's own externs."""
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
            elif role == "out" and isinstance(parameter, ex.Field):
                target = parameter
            else:
                raise MalformedProgram(f"BMv2 JSON: '{op}' takes a {'calculation' if role == 'key' else 'field'}")
        call = f"{kind.c_name}_{method}({', '.join(arguments)})"
        return f"{call};" if target is None else self.store_text(target, call)

    def _hash(self, target: ex.Parameter, base: ex.Parameter, name: ex.Parameter, size: ex.Parameter) -> str:
        if not isinstance(target, ex.Field) or not isinstance(name, ex.Calculation):
            raise MalformedProgram(
                "BMv2 JSON: modify_field_with_hash_based_offset takes field, base, calculation, size"
            )
        first, modulus = self.values.emit(self._number(base), 1), self.values.emit(self._number(size), 1)
        number = self._index["calculation"][name.name]
        return self.store_text(target, f"(gb_hash_modulo(calculation_{number}(sw, p), {modulus}) + {first})")

    def _random(self, target: ex.Parameter, low: ex.Parameter, high: ex.Parameter) -> str:
        if not isinstance(target, ex.Field):
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
        """Of several calls the smallest length counts, as on BMv2."""
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
    """The text between the {} of a log_msg format, with escaped braces put right."""
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
