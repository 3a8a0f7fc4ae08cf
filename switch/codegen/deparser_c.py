"""Deparser, checksums and calculations as C."""

from __future__ import annotations

import functools

from switch.codegen import expressions as ex
from switch.codegen import model as m
from switch.codegen.headers_c import bits_before, split_at_variable, store_fields
from switch.codegen.layout import Layout, field_offsets, field_words
from switch.codegen.probes import NO_PROBES, ChecksumDone, HeaderEmitted, Probes
from switch.codegen.reader import MalformedProgram
from switch.codegen.statements import Statements
from switch.codegen.values import Values

_ALGORITHMS = {
    "csum16": "gb_csum16",
    "cksum16": "gb_csum16",
    "crc16": "gb_crc16",
    "crc16_custom": "gb_crc16",
    "crc32": "gb_crc32",
    "crc32_custom": "gb_crc32",
    "crcCCITT": "gb_crcCCITT",
    "crc8_custom": "gb_crc8_custom",
    "crc64_custom": "gb_crc64_custom",
    "xor16": "gb_xor16",
    "xor32": "gb_xor32",
    "identity": "gb_identity",
    "xxh64": "gb_xxh64",
    "random": "gb_xxh64",
    "round_robin": "gb_round_robin",
    "round_robin_consistent": "gb_xxh64",
}


def calculation_function(
    name: str, calculation: m.CalculationDefinition, model: m.ProgramModel, layout: Layout
) -> list[str]:
    """The lines of a C function `name` that hashes what the calculation names; invalid headers are left out."""
    algorithm = _ALGORITHMS.get(calculation.algorithm)
    if algorithm is None:
        raise MalformedProgram(f"BMv2 JSON: hash algorithm '{calculation.algorithm[:40]}' is not supported")
    values = Values(model, layout)
    lines: list[str] = []
    bits = 0
    for piece in calculation.inputs:
        piece_bits, text = _input(piece, values)
        bits += piece_bits
        lines.extend(text)
    payload = "p->data + p->payload_offset, p->length - p->payload_offset" if calculation.with_payload else "NULL, 0"
    return [
        f"static uint64_t {name}(struct gb_switch *sw, struct gb_packet *p) {{",
        "uint64_t *phv = p->phv;",
        f"uint8_t buffer[{bits // 8 + 1}];",
        f"struct gb_bytes bytes = {{buffer, 0, {payload}}};",
        *lines,
        f"return {algorithm}(&bytes);",
        "}",
    ]


def _input(piece: m.CalculationInput, values: Values) -> tuple[int, list[str]]:
    """The most bits that an input can have, and the statements that append it."""
    if piece.field is not None:
        kind = values.field_type(piece.field)
        guard = _guard(values.validity(piece.field.header))
        standard = values.layout.standard(piece.field)
        first = f"&p->std.{standard}" if standard else f"&phv[{values.slot(piece.field)}]"
        if kind.variable:
            return kind.width, [f"{guard}gb_bytes_append_raw(&bytes, (uint8_t *)({first} + 1), (uint32_t)*{first});"]
        return kind.width, [f"{guard}gb_bytes_append(&bytes, {first}, {kind.width});"] if kind.width else []
    if piece.header is not None:
        header = ex.NamedHeader(piece.header)
        header_type = values.header_place(header).type
        total, lines = 0, []
        for index in range(len(header_type.fields)):
            bits, text = _input(m.CalculationInput(field=ex.Field(header, index)), values)
            total += bits
            lines.extend(text)
        return total, lines
    words = ", ".join(f"{piece.constant >> 64 * i & (1 << 64) - 1:#x}ULL" for i in range((piece.width + 63) // 64))
    return piece.width, [f"gb_bytes_append(&bytes, (const uint64_t[]){{{words}}}, {piece.width});"]


def _guard(validity: str) -> str:
    return "" if validity == "1" else f"if ({validity}) "


class DeparserWriter:
    """Emits checksums and the deparser."""

    def __init__(self, model: m.ProgramModel, layout: Layout, probes: Probes = NO_PROBES) -> None:
        self.model = model
        self.layout = layout
        self._probes = probes
        self.statements = Statements(model, layout, now="p->std.egress_global_timestamp")
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
            return f"if ({valid} && {condition} && {computed} != {stored}) p->std.checksum_error = 1;"

        return statements.statement(emit)

    def _applies(self, checksum: m.Checksum) -> tuple[str, str]:
        """C for the validity of the field that holds the checksum, and for the checksum's own condition."""
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
        """Statements that measure the valid headers, and write them in front of the payload."""
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
            slot = int(place.first) + field_offsets(kind)[variable]
            limit = 64 * (field_words(kind.fields[variable]) - 1)
            lines.append(f"uint32_t variable_bits = (uint32_t)gb_min(phv[{slot}], {limit});")
            lines.append(
                f"gb_copy_bits(at, {bits_before(kind, variable)}, (uint8_t *)&phv[{slot + 1}], 0, variable_bits);"
            )
            lines.append("at += variable_bits / 8;")
            lines.extend(store_fields(kind, after, "at", place.first))
        return [*lines, f"at += {fixed_bytes};", *self._probes.at(HeaderEmitted(name)), "}"]
