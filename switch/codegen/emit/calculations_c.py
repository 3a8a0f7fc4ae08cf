"""Checksums and hashes as C functions over the bits of fields."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from gradbed.switch.bmv2_json import expressions as ex
from gradbed.switch.bmv2_json import model as m
from gradbed.switch.bmv2_json.model import words_of
from gradbed.switch.bmv2_json.reader import MalformedProgram
from gradbed.switch.codegen.emit.values import Values
from gradbed.switch.codegen.layout import Layout

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

_RUNNING = ("gb_csum16", "gb_crc16", "gb_crc32")
"""Algorithms that can take whole bytes one after the other."""

_WORD_BITS = 64


@dataclass(frozen=True)
class _Piece:
    """Bits that enter a calculation together."""

    guard: str
    """C condition under which they do."""
    width: int
    """Number of bits; the most, for a variable-length field."""
    words: tuple[str, ...] = ()
    """C of each word, least significant first, without bits above `width`."""
    variable: str | None = None
    """C for the first word of a variable-length field, which has no `words`."""


def calculation_function(
    name: str, calculation: m.CalculationDefinition, model: m.ProgramModel, layout: Layout
) -> list[str]:
    """Return the lines of a C function `name` for a calculation; invalid headers are left out."""
    algorithm = _ALGORITHMS.get(calculation.algorithm)
    if algorithm is None:
        raise MalformedProgram(f"BMv2 JSON: hash algorithm '{calculation.algorithm[:40]}' is not supported")
    values = Values(model, layout)
    pieces = [piece for given in calculation.inputs for piece in _pieces(given, values)]
    joined = list(_joined(pieces))
    whole_bytes = all(piece.width % 8 == 0 for piece in joined)
    body = _incremental if whole_bytes and algorithm in _RUNNING else _buffered
    return [
        f"static uint64_t {name}(struct gb_switch *sw, struct gb_packet *p) {{",
        "uint64_t *phv = p->pass->phv;",
        *body(algorithm, joined, calculation.with_payload),
        "}",
    ]


def _incremental(algorithm: str, pieces: list[_Piece], with_payload: bool) -> Iterator[str]:
    """Yield statements that give the algorithm one piece after the other."""
    yield f"struct gb_running running = {algorithm}_begin();"
    for piece in pieces:
        yield _guarded(piece, _add_piece(algorithm, piece))
    if with_payload:
        yield f"{algorithm}_bytes(&running, p->data + p->payload_offset, p->length - p->payload_offset);"
    yield f"return {algorithm}_end(running);"


def _add_piece(algorithm: str, piece: _Piece) -> list[str]:
    if piece.variable is not None:
        return [f"{algorithm}_bytes(&running, (uint8_t *)(&{piece.variable} + 1), {piece.variable} / 8);"]
    odd_bytes = piece.width % _WORD_BITS // 8
    lengths = [8] * (piece.width // _WORD_BITS) + [odd_bytes] * (odd_bytes > 0)
    numbers = zip(piece.words, lengths, strict=True)
    return [f"{algorithm}_number(&running, {word}, {length});" for word, length in numbers][::-1]


def _buffered(algorithm: str, pieces: list[_Piece], with_payload: bool) -> Iterator[str]:
    """Yield statements that write all pieces to a buffer, bit by bit, and run the algorithm over it."""
    payload = "p->data + p->payload_offset, p->length - p->payload_offset" if with_payload else "NULL, 0"
    yield f"uint8_t buffer[{sum(piece.width for piece in pieces) // 8 + 1}];"
    yield f"struct gb_bytes bytes = {{buffer, 0, {payload}}};"
    for piece in pieces:
        yield _guarded(piece, [_append(piece)])
    yield f"return {algorithm}(&bytes);"


def _guarded(piece: _Piece, statements: list[str]) -> str:
    text = " ".join(statements)
    if piece.guard == "1":
        return text
    return f"if ({piece.guard}) {text}" if len(statements) == 1 else f"if ({piece.guard}) {{ {text} }}"


def _pieces(given: m.CalculationInput, values: Values) -> Iterator[_Piece]:
    if given.field is not None:
        yield _field(given.field, values)
    elif given.header is not None:
        header = ex.NamedHeader(given.header)
        for index in range(len(values.header_layout(header).type.fields)):
            yield _field(ex.FieldReference(header, index), values)
    else:
        word_mask = (1 << _WORD_BITS) - 1
        words = (f"{given.constant >> _WORD_BITS * i & word_mask:#x}ULL" for i in range(words_of(given.width)))
        yield _Piece("1", given.width, tuple(words))


def _field(field: ex.FieldReference, values: Values) -> _Piece:
    kind = values.field_type(field)
    guard = values.validity(field.header)
    standard = values.layout.standard(field)
    if standard:
        # The engine's numbers may be larger than the program's fields.
        return _Piece(guard, kind.width, (f"(p->pass->std.{standard} & {(1 << kind.width) - 1:#x}ULL)",))
    slot = values.slot(field)
    if kind.variable:
        return _Piece(guard, kind.width, variable=f"phv[{slot}]")
    return _Piece(guard, kind.width, tuple(f"phv[{slot} + {i}]" for i in range(words_of(kind.width))))


def _joined(pieces: Iterable[_Piece]) -> Iterator[_Piece]:
    """Join adjacent pieces with the same guard to one number, whose words C computes without loops."""
    for _, group in itertools.groupby(pieces, lambda piece: (piece.guard, piece.variable)):
        run = [piece for piece in group if piece.width]
        if not run or run[0].variable is not None:
            yield from run
            continue
        width = sum(piece.width for piece in run)
        terms: list[list[str]] = [[] for _ in range(words_of(width))]
        low = width
        for piece in run:
            low -= piece.width
            for i, word in enumerate(piece.words):
                at, shift = divmod(low + _WORD_BITS * i, _WORD_BITS)
                terms[at].append(f"{word} << {shift}" if shift else word)
                if shift and at + 1 < len(terms):
                    terms[at + 1].append(f"{word} >> {_WORD_BITS - shift}")
        yield _Piece(run[0].guard, width, tuple(" | ".join(word) for word in terms))


def _append(piece: _Piece) -> str:
    if piece.variable is not None:
        return f"gb_bytes_append_raw(&bytes, (uint8_t *)(&{piece.variable} + 1), (uint32_t){piece.variable});"
    return f"gb_bytes_append(&bytes, (const uint64_t[]){{{', '.join(piece.words)}}}, {piece.width});"
