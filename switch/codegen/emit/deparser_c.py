"""The deparser and checksums as C."""

from __future__ import annotations

import functools

from gradbed.switch.bmv2_json import expressions as ex
from gradbed.switch.bmv2_json import model as m
from gradbed.switch.codegen.emit.headers_c import split_at_variable, store_fields, store_variable
from gradbed.switch.codegen.emit.probes import NO_PROBES, ChecksumDone, HeaderEmitted, Probes
from gradbed.switch.codegen.emit.statements import Statements
from gradbed.switch.codegen.layout import Layout


class DeparserWriter:
    """Emits checksums and the deparser."""

    def __init__(self, model: m.ProgramModel, layout: Layout, probes: Probes = NO_PROBES) -> None:
        self.model = model
        self.layout = layout
        self._probes = probes
        self.statements = Statements(model, layout, now="p->pass->std.egress_global_timestamp")
        self._number = {name: i for i, name in enumerate(model.calculations)}

    def verify_checksums(self) -> list[str]:
        lines = []
        for index, checksum in enumerate(self.model.checksums):
            if checksum.verify:
                lines.append(self._verify(checksum))
                lines.extend(self._verified(checksum, self._probes.at(ChecksumDone(index))))
        return lines

    def _verify(self, checksum: m.Checksum) -> str:
        statements = self.statements

        def emit() -> str:
            values = statements.values
            valid, condition = self._applies(checksum)
            width = values.field_type(checksum.target).width
            stored = values.emit(ex.Arithmetic("&", checksum.target, ex.Constant((1 << width) - 1)), 1)
            computed = f"calculation_{self._number[checksum.calculation]}(sw, p)"
            return f"if ({valid} && {condition} && {computed} != {stored}) p->pass->std.checksum_error = 1;"

        return statements.statement(emit)

    def _applies(self, checksum: m.Checksum) -> tuple[str, str]:
        """Return C for the validity of the field with the checksum, and for the condition of the checksum."""
        values = self.statements.values
        condition = values.boolean(checksum.condition) if checksum.condition else "1"
        return values.validity(checksum.target.header), condition

    def _verified(self, checksum: m.Checksum, probes: list[str]) -> list[str]:
        if not probes:
            return []
        return [self.statements.statement(lambda: f"if ({' && '.join(self._applies(checksum))}) {probes[0]}")]

    def update_checksums(self) -> list[str]:
        lines = []
        for index, checksum in enumerate(self.model.checksums):
            if checksum.update:
                lines.append(self.statements.statement(functools.partial(self._update, checksum, index)))
        return lines

    def _update(self, checksum: m.Checksum, index: int) -> str:
        computed = f"calculation_{self._number[checksum.calculation]}(sw, p)"
        store = " ".join(
            [self.statements.store_text(checksum.target, computed), *self._probes.at(ChecksumDone(index))]
        )
        if checksum.condition is None:
            return store
        return f"if ({self.statements.values.boolean(checksum.condition)}) {{ {store} }}"

    def max_bytes(self) -> int:
        total = 0
        for name in self.model.deparser:
            kind = self.model.headers[name].type
            total += kind.fixed_bits // 8
            if kind.variable_field is not None:
                total += kind.fields[kind.variable_field].width // 8
        return total

    def body(self) -> list[str]:
        """Return statements that measure the valid headers and write them in front of the payload."""
        statements = self.statements
        leave = " ".join([*self._probes.end("deparse"), "return;"])
        lines = ["uint32_t size = 0;"]
        for name in self.model.deparser:
            header = ex.NamedHeader(name)
            length = statements.header_bytes(header)
            lines.append(f"if ({statements.values.validity(header)}) size += (uint32_t)({length});")
        lines += [
            f"if (size > p->headroom + p->payload_offset) {{ p->length = 0; {leave} }}",
            "uint8_t *at = p->data + p->payload_offset - size;",
            "p->length = p->length - p->payload_offset + size;",
            "p->headroom = p->headroom + p->payload_offset - size;",
            "p->data = at;",
            "p->payload_offset = size;",
        ]
        for name in self.model.deparser:
            lines.extend(self._emit_header(name))
        return lines

    def _emit_header(self, name: str) -> list[str]:
        place = self.layout.header(name)
        kind = place.type
        before, variable, after = split_at_variable(kind)
        lines = [f"if (phv[{place.validity}]) {{", *store_fields(kind, before, "at", place.first)]
        fixed_bytes = kind.fixed_bits // 8
        if variable is not None:
            slot = int(place.first) + kind.offsets[variable]
            limit = 64 * (kind.fields[variable].words - 1)
            lines.append(f"uint32_t variable_bits = (uint32_t)gb_min(phv[{slot}], {limit});")
            lines.append(store_variable(kind, variable, "at", str(slot + 1)))
            lines.append("at += variable_bits / 8;")
            lines.extend(store_fields(kind, after, "at", place.first))
        return [*lines, f"at += {fixed_bytes};", *self._probes.at(HeaderEmitted(name)), "}"]
