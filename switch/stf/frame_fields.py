"""Which field of which header a bit of a frame belongs to, as far as the program's own parser tells."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from gradbed.switch.bmv2_json import expressions as ex
from gradbed.switch.bmv2_json import model as m

MAX_STATES = 256
MAX_NAMED = 4
_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "<<": operator.lshift,
    ">>": operator.rshift,
}


@dataclass(frozen=True)
class PlacedField:
    """A header field in a frame."""

    name: str
    first: int
    """First bit in the frame."""
    width: int


def named_differences(model: m.ProgramModel, expected: str, frame: bytes) -> str:
    """Describe each field that differs, as in "ip.csum: 0x1234 instead of 0x4321"; empty if no field can be named.

    Fields are named where both packets have the same headers, in the deparser's order.

    Args:
        model: The program.
        expected: Hex digits and *.
        frame: What came out.
    """
    wanted = "".join("****" if digit == "*" else f"{int(digit, 16):04b}" for digit in expected)
    got = "".join(f"{byte:08b}" for byte in frame)
    wanted = wanted[: len(got)]
    filled = "".join(g if w == "*" else w for w, g in zip(wanted, got)) + got[len(wanted) :]  # noqa: B905
    ours = [*_fields(model, filled)]
    places = [place for place, other in zip(_fields(model, got), ours) if place == other]  # noqa: B905
    named_bits = max((place.first + place.width for place in places), default=0)
    if _differs(wanted[named_bits:], got[named_bits:]):
        return ""
    texts = []
    for place in places:
        bits = slice(place.first, place.first + place.width)
        if _differs(wanted[bits], got[bits]):
            value = wanted[bits].ljust(place.width, "*")
            texts.append(f"{place.name}: {_text(got[bits])} instead of {_text(value)}")
    more = f", and {len(texts) - MAX_NAMED} more" if len(texts) > MAX_NAMED else ""
    return ", ".join(texts[:MAX_NAMED]) + more


def _differs(wanted: str, got: str) -> bool:
    return any(w not in ("*", g) for w, g in zip(wanted, got))  # noqa: B905


def _text(bits: str) -> str:
    """Return digits in hexadecimal where possible, else in binary; * for bits that may be anything."""
    padded = bits.rjust(-(-len(bits) // 4) * 4, bits[0] if "*" in bits else "0")
    digits = [padded[at : at + 4] for at in range(0, len(padded), 4)]
    if any("*" in digit and digit != "****" for digit in digits):
        return f"0b{bits}"
    return "0x" + "".join("*" if digit == "****" else f"{int(digit, 2):x}" for digit in digits)


def _fields(model: m.ProgramModel, bits: str) -> Iterator[PlacedField]:
    """Return the fields of the headers that the parser finds, while these come in the order of the deparser."""
    order = iter(model.deparser)
    for header, first, widths in _ParserWalk(model, bits).headers():
        if not any(name == header for name in order):
            return
        for field, width in zip(model.headers[header].type.fields, widths, strict=True):
            yield PlacedField(f"{header}.{field.name}", first, width)
            first += width


class _Unknown(Exception):
    """Raised where the parser's next step depends on more than the frame."""


class _ParserWalk:
    def __init__(self, model: m.ProgramModel, bits: str) -> None:
        self._model = model
        self._bits = bits
        self._at = 0
        self._values: dict[tuple[str, int], int] = {}
        self._extracted: dict[str, int] = {}

    def headers(self) -> Iterator[tuple[str, int, Sequence[int]]]:
        """Yield (header, its first bit, widths of its fields) of each header in turn."""
        state = self._model.parser.initial
        try:
            for _ in range(MAX_STATES):
                if state is None:
                    return
                node = self._model.parser.states[state]
                for operation in node.operations:
                    if isinstance(operation, m.Extract):
                        yield self._extract(operation)
                    else:
                        self._do(operation)
                state = self._next(node)
        except _Unknown:
            return

    def _extract(self, operation: m.Extract) -> tuple[str, int, Sequence[int]]:
        header = self._named(operation.header, following=True)
        fields = self._model.headers[header].type.fields
        variable = 0 if operation.variable_bits is None else self._value(operation.variable_bits)
        widths = [variable if field.variable else field.width for field in fields]
        first = at = self._at
        self._at += sum(widths)
        if variable < 0 or self._at > len(self._bits):
            raise _Unknown
        for index, width in enumerate(widths):
            self._values[header, index] = int(self._bits[at : at + width] or "0", 2)
            at += width
        return header, first, widths

    def _do(self, operation: m.ParserOperation) -> None:
        if isinstance(operation, m.Advance):
            self._at += self._value(operation.bits)
        elif isinstance(operation, m.Assign):
            target = operation.target
            key = self._named(target.header), target.index
            self._values.pop(key, None)
            try:
                width = self._model.headers[key[0]].type.fields[target.index].width
                self._values[key] = self._value(operation.value) & ((1 << width) - 1)
            except _Unknown:
                pass  # it may never be asked for
        elif not isinstance(operation, m.Verify):
            raise _Unknown

    def _next(self, state: m.ParseState) -> str | None:
        key = 0
        for part, width in zip(state.key, state.key_widths, strict=True):
            key = key << width | self._value(part) & ((1 << width) - 1)
        for transition in state.transitions:
            if transition.value_set is not None:
                raise _Unknown
            mask = -1 if transition.mask is None else transition.mask
            if transition.value is None or key & mask == transition.value & mask:
                return transition.next_state
        return None

    def _named(self, header: ex.HeaderReference, following: bool = False) -> str:
        """Return the header's name; of a stack without index the last element, or the one behind it."""
        if isinstance(header, ex.NamedHeader):
            return header.name
        if not isinstance(header, ex.StackElement):
            raise _Unknown
        elements = self._model.stacks[header.stack].elements
        if header.index is not None:
            index = self._value(header.index)
        else:
            index = self._extracted.get(header.stack, 0) - (not following)
            self._extracted[header.stack] = index + 1
        if not 0 <= index < len(elements):
            raise _Unknown
        return elements[index]

    def _value(self, data: ex.Data) -> int:
        if isinstance(data, ex.Constant):
            return data.value
        if isinstance(data, ex.FieldReference):
            key = self._named(data.header), data.index
            if key not in self._values:
                raise _Unknown
            return self._values[key]
        if isinstance(data, ex.Lookahead):
            first = self._at + data.offset
            if first + data.width > len(self._bits):
                raise _Unknown
            return int(self._bits[first : first + data.width], 2)
        if isinstance(data, ex.Arithmetic) and data.op in _ARITHMETIC:
            left, right = self._value(data.left), self._value(data.right)
            if data.op in ("<<", ">>") and not 0 <= right < 1 << 16:
                raise _Unknown
            return _ARITHMETIC[data.op](left, right)
        raise _Unknown
