"""Expressions as C text with the exact results of the unbounded integers of BMv2.

A value is emitted in a number of words: 1 (uint64_t), 2 (gb_u128) or more (a pointer to words), always modulo
2^(64 * words). Sums, products and bitwise operations agree with the unbounded ones modulo any power of two, so
they are computed in as many words as their user needs; comparisons, right shifts, divisions and saturation need
their operands whole, in as many words as the ranges of the operands require.
"""

from __future__ import annotations

from dataclasses import dataclass

from gradbed.switch.bmv2_json import expressions as ex
from gradbed.switch.bmv2_json.model import ActionParameter, FieldType, ProgramModel, words_of
from gradbed.switch.bmv2_json.reader import MalformedProgram
from gradbed.switch.codegen.emit.headers_c import load_number
from gradbed.switch.codegen.emit.ranges import LIMIT_BITS, Range, Ranges, signed_range, unsigned_range
from gradbed.switch.codegen.layout import HeaderLayout, Layout, StackLayout


def quoted(text: str) -> str:
    """Return a C string literal."""
    parts = []
    for byte in text.encode("utf-8", "replace"):
        char = chr(byte)
        parts.append(char if char.isascii() and char.isprintable() and char not in '"\\?' else f"\\{byte:03o}")
    return '"' + "".join(parts) + '"'


_MAX_WORDS = LIMIT_BITS // 64
_MODULAR_OPERATORS = {"+": "add", "-": "sub", "*": "mul", "&": "and", "|": "or", "^": "xor"}


@dataclass(frozen=True)
class Natural:
    """The least number of words that holds a value, and whether extending them repeats the sign."""

    words: int
    signed: bool


def natural(bounds: Range) -> Natural:
    """Return the natural words of a range."""
    low, high = bounds
    if low >= 0:
        return Natural(max(1, words_of(high.bit_length())), False)
    return Natural(words_of(max((~low).bit_length(), high.bit_length() if high > 0 else 0) + 1), True)


def constant(value: int) -> str:
    """Return a word as a C literal."""
    return f"{value & 0xFFFFFFFFFFFFFFFF:#x}ULL" if value > 9 or value < 0 else f"{value}ULL"


def register_cell_bits(width: int) -> int:
    """Return 8, 16, 32 or 64 for registers with a fast path; 0 for wider ones."""
    return next((bits for bits in (8, 16, 32, 64) if width <= bits), 0)


class Values:
    """Emits the expressions of one statement. `lines` receives the declarations that must come before it."""

    def __init__(
        self,
        model: ProgramModel,
        layout: Layout,
        parameters: tuple[ActionParameter, ...] = (),
        lookahead: str | None = None,
    ) -> None:
        """Emit for a model and a layout.

        Args:
            model: The program.
            layout: Where fields are.
            parameters: Parameters of the action at hand.
            lookahead: C for the position of the parser, in a parser.
        """
        self.model = model
        self.layout = layout
        self.parameters = parameters
        self.lookahead = lookahead
        self.lines: list[str] = []
        self.lookahead_bits = 0
        self._temporaries = 0
        self._ranges = Ranges(self._leaf_range)
        self._register_index = {name: i for i, name in enumerate(model.registers)}
        self._argument_first = [0]
        for parameter in parameters:
            self._argument_first.append(self._argument_first[-1] + words_of(parameter.width))

    # ---- Fields and what they are in C ----

    def field_type(self, value: ex.FieldReference) -> FieldType:
        return self.header_layout(value.header).type.fields[value.index]

    def header_layout(self, reference: ex.HeaderReference) -> HeaderLayout:
        if isinstance(reference, ex.NamedHeader):
            return self.layout.header(reference.name)
        if isinstance(reference, ex.StackElement):
            return self._element_layout(
                reference.stack, self.model.stacks[reference.stack].elements[0], reference.index
            )
        if isinstance(reference.union, ex.NamedUnion):
            return self.layout.header(self.model.unions[reference.union.name].members[reference.member])
        first_union = self.model.unions[self.model.union_stacks[reference.union.stack].elements[0]]
        return self._element_layout(
            reference.union.stack, first_union.members[reference.member], reference.union.index
        )

    def stack_index(self, stack: StackLayout, index: ex.Data | None) -> str:
        """Return the number of the element, at most that of the spare element after the last."""
        if index is None:
            return f"gb_min(phv[{stack.counter}] - 1, {stack.elements})"
        return f"gb_min({self.index(index)}, {stack.elements})"

    def _element_layout(self, stack_name: str, first_header: str, index: ex.Data | None) -> HeaderLayout:
        stack = self.layout.stacks[stack_name]
        place = self.layout.header(first_header)
        if isinstance(index, ex.Constant) and 0 <= index.value < stack.elements:
            validity = int(place.validity) + stack.validity_stride * index.value
            return HeaderLayout(place.type, str(validity), str(int(place.first) + stack.stride * index.value))
        element = self.stack_index(stack, index)
        return HeaderLayout(
            place.type,
            f"{place.validity} + {stack.validity_stride} * {element}",
            f"{place.first} + {stack.stride} * {element}",
        )

    def union_members(self, reference: ex.UnionReference) -> list[ex.UnionMember]:
        if isinstance(reference, ex.NamedUnion):
            count = len(self.model.unions[reference.name].members)
        else:
            first = self.model.union_stacks[reference.stack].elements[0]
            count = len(self.model.unions[first].members)
        return [ex.UnionMember(reference, i) for i in range(count)]

    def slot(self, value: ex.FieldReference) -> str:
        """Return the PHV index of the first word of a field."""
        place = self.header_layout(value.header)
        offset = place.type.offsets[value.index]
        return str(int(place.first) + offset) if place.first.isdigit() else f"{place.first} + {offset}"

    def is_metadata(self, reference: ex.HeaderReference) -> bool:
        return isinstance(reference, ex.NamedHeader) and self.layout.is_metadata(reference.name)

    def validity(self, reference: ex.HeaderReference) -> str:
        return "1" if self.is_metadata(reference) else f"phv[{self.header_layout(reference).validity}]"

    # ---- Ranges ----

    def range(self, value: ex.Data) -> Range:
        return self._ranges.of(value)

    def _leaf_range(self, value: ex.Data) -> Range:
        if isinstance(value, ex.FieldReference):
            kind = self.field_type(value)
            if kind.variable:
                raise MalformedProgram(f"BMv2 JSON: the variable-length field '{kind.name}' is used as a number")
            return signed_range(kind.width) if kind.signed else unsigned_range(kind.width)
        if isinstance(value, ex.RuntimeArgument):
            if value.index >= len(self.parameters):
                raise MalformedProgram(f"BMv2 JSON: an action refers to its parameter {value.index}, which it lacks")
            return unsigned_range(self.parameters[value.index].width)
        if isinstance(value, ex.RegisterCell):
            return unsigned_range(self.model.registers[value.register].width)
        if isinstance(value, ex.Lookahead):
            return unsigned_range(value.width)
        assert isinstance(value, ex.StackCount)
        return 0, self.layout.stacks[value.stack].elements

    # ---- Numbers ----

    def emit(self, value: ex.Data, words: int) -> str:
        """Return C for `value` modulo 2^(64 * words)."""
        own = self._natural(value)
        if own.words < words:
            return self._resize(self._emit(value, own.words), own.words, own.signed, words)
        return self._emit(value, words)

    def exact(self, value: ex.Data) -> tuple[str, Natural]:
        """Return C for the whole of `value`."""
        own = self._natural(value, limited=True)
        return self._emit(value, own.words), own

    def index(self, value: ex.Data) -> str:
        """Return C of type uint64_t for an index, amount or length: UINT64_MAX if it does not fit or is negative."""
        text, own = self.exact(value)
        if own.words == 1:
            return text
        return f"gb_narrow128({text})" if own.words == 2 else f"gb_wide_narrow({text}, {own.words})"

    def _natural(self, value: ex.Data, limited: bool = False) -> Natural:
        own = natural(self.range(value))
        if limited and own.words > _MAX_WORDS:
            raise MalformedProgram(f"BMv2 JSON: an expression needs more than {LIMIT_BITS} bits")
        return own

    def temporary(self, words: int) -> str:
        name = f"t{self._temporaries}"
        self._temporaries += 1
        self.lines.append(f"uint64_t {name}[{words}];")
        return name

    def _resize(self, text: str, words: int, signed: bool, to: int) -> str:
        if words == to:
            return text
        if to == 1:
            return f"(uint64_t)({text})" if words == 2 else f"({text})[0]"
        if to == 2:
            if words > 2:
                return f"gb_load128({text})"
            return f"gb_from64s({text})" if signed else f"gb_from64({text})"
        if words > to:
            return text
        name, sign = self.temporary(to), "true" if signed else "false"
        if words > 2:
            self.lines.append(f"gb_wide_extend({name}, {to}, {text}, {words}, {sign});")
        else:
            self.lines.append(f"gb_wide_from{64 * words}({name}, {to}, {text}, {sign});")
        return name

    def _emit(self, value: ex.Data, words: int) -> str:
        if isinstance(value, ex.Constant):
            return self._constant(value.value, words)
        if isinstance(value, ex.Arithmetic):
            return self._arithmetic(value, words)
        if isinstance(value, ex.Complement):
            operand = self.emit(value.operand, words)
            if words <= 2:
                return f"(~{operand})"
            name = self.temporary(words)
            self.lines.append(f"gb_wide_not({name}, {operand}, {words});")
            return name
        if isinstance(value, ex.CastOperation):
            return self._twos_complement(value, words) if value.op == "two_comp_mod" else self._saturate(value, words)
        if isinstance(value, ex.Choice):
            condition = self.boolean(value.condition)
            if_true, if_false = self.emit(value.if_true, words), self.emit(value.if_false, words)
            if words <= 2:
                return f"({condition} ? {if_true} : {if_false})"
            name = f"t{self._temporaries}"
            self._temporaries += 1
            self.lines.append(f"const uint64_t *{name} = {condition} ? {if_true} : {if_false};")
            return name
        if isinstance(value, ex.FromBoolean):
            return self._resize(f"(uint64_t){self.boolean(value.operand)}", 1, False, words)
        return self._leaf(value, words)

    def _constant(self, value: int, words: int) -> str:
        parts = [constant(value >> (64 * i)) for i in range(words)]
        if words == 1:
            return parts[0]
        if words == 2:
            return f"GB_U128({parts[1]}, {parts[0]})"
        return f"(const uint64_t[]){{{', '.join(parts)}}}"

    def _leaf(self, value: ex.Data, words: int) -> str:
        if isinstance(value, ex.FieldReference):
            return self._field(value, words)
        if isinstance(value, ex.StackCount):
            return self._resize(f"phv[{self.layout.stacks[value.stack].counter}]", 1, False, words)
        if isinstance(value, ex.RuntimeArgument):
            own = words_of(self.parameters[value.index].width)
            return self._words(f"data[{self._argument_first[value.index]}]", own, words)
        if isinstance(value, ex.Lookahead):
            return self._lookahead(value, words)
        assert isinstance(value, ex.RegisterCell)
        register = f"&sw->registers[{self._register_index[value.register]}]"
        width, index = self.model.registers[value.register].width, self.index(value.index)
        bits = register_cell_bits(width)
        if bits:
            return self._resize(f"gb_register_read{bits}({register}, {index})", 1, False, words)
        name = self.temporary(words_of(width))
        self.lines.append(f"gb_register_read_wide({name}, {register}, {index});")
        return self._resize(name if words_of(width) > 2 else f"gb_load128({name})", words_of(width), False, words)

    def _words(self, first: str, own: int, words: int) -> str:
        """Return a run of `own` words that begins with the lvalue `first`, without sign."""
        text = first if own == 1 else f"gb_load128(&{first})" if own == 2 else f"(&{first})"
        return self._resize(text, own, False, words)

    def _field(self, value: ex.FieldReference, words: int) -> str:
        kind = self.field_type(value)
        standard = self.layout.standard(value)
        own = kind.words
        first = f"p->pass->std.{standard}" if standard else f"phv[{self.slot(value)}]"
        if not kind.signed or kind.width == 0:
            return self._words(first, own, words)
        if own == 1:
            return self._resize(f"gb_sign_extend({first}, {kind.width})", 1, True, words)
        if own == 2:
            return self._resize(f"gb_sign_extend128(gb_load128(&{first}), {kind.width})", 2, True, words)
        name = self.temporary(own)
        self.lines.append(f"gb_wide_sign_extend({name}, &{first}, {own}, {kind.width});")
        return self._resize(name, own, True, words)

    def _lookahead(self, value: ex.Lookahead, words: int) -> str:
        if self.lookahead is None:
            raise MalformedProgram("BMv2 JSON: lookahead outside a parser")
        self.lookahead_bits = max(self.lookahead_bits, value.offset + value.width)
        own = words_of(value.width)
        if own == 1:
            number = load_number(self.lookahead, value.offset, value.width) if value.width else "0"
            return self._resize(f"({number})", 1, False, words)
        name = self.temporary(own)
        # Read only after the parser has seen that the frame is long enough (lookahead_bits).
        self.lines.append(f"gb_load_field({name}, {self.lookahead}, {value.offset}, {value.width});")
        return self._resize(name if own > 2 else f"gb_load128({name})", own, False, words)

    def _arithmetic(self, value: ex.Arithmetic, words: int) -> str:
        op = value.op
        if op in _MODULAR_OPERATORS:
            left, right = self.emit(value.left, words), self.emit(value.right, words)
            if words <= 2:
                return f"({left} {op} {right})"
            name = self.temporary(words)
            self.lines.append(f"gb_wide_{_MODULAR_OPERATORS[op]}({name}, {left}, {right}, {words});")
            return name
        if op == "<<":
            left, amount = self.emit(value.left, words), self.index(value.right)
            if words <= 2:
                return f"gb_shl{64 * words}({left}, {amount})"
            name = self.temporary(words)
            self.lines.append(f"gb_wide_shl({name}, {left}, {words}, {amount});")
            return name
        if op == ">>":
            return self._shift_right(value, words)
        return self._divide(value, words)

    def _shift_right(self, value: ex.Arithmetic, words: int) -> str:
        left, own = self.exact(value.left)
        amount = self.index(value.right)
        if own.words <= 2:
            shifted = f"gb_s{'a' if own.signed else 'h'}r{64 * own.words}({left}, {amount})"
        else:
            shifted = self.temporary(own.words)
            sign = "true" if own.signed else "false"
            self.lines.append(f"gb_wide_shr({shifted}, {left}, {own.words}, {amount}, {sign});")
        return self._resize(shifted, own.words, own.signed, words)

    def _common(self, left: ex.Data, right: ex.Data) -> tuple[str, str, Natural]:
        """Return both values whole, in the same number of words, and with a sign if either needs one."""
        bounds = self.range(left), self.range(right)
        both = natural((min(b[0] for b in bounds), max(b[1] for b in bounds)))
        if both.words > _MAX_WORDS:
            raise MalformedProgram(f"BMv2 JSON: an expression needs more than {LIMIT_BITS} bits")
        return self.emit(left, both.words), self.emit(right, both.words), both

    def _divide(self, value: ex.Arithmetic, words: int) -> str:
        left, right, both = self._common(value.left, value.right)
        if both.words <= 2:
            name = ("div" if value.op == "/" else "mod") + str(64 * both.words)
            result = f"gb_{'s' if both.signed else ''}{name}({left}, {right})"
        else:
            result = self.temporary(both.words)
            sign, remainder = "true" if both.signed else "false", "true" if value.op == "%" else "false"
            self.lines.append(f"gb_wide_divide({result}, {left}, {right}, {both.words}, {sign}, {remainder});")
        return self._resize(result, both.words, both.signed, words)

    def _twos_complement(self, value: ex.CastOperation, words: int) -> str:
        low, high = self.range(value.operand)
        least, most = signed_range(value.width)
        if least <= low and high <= most:
            return self.emit(value.operand, words)
        own = words_of(value.width)
        operand = self.emit(value.operand, own)
        if own == 1:
            return self._resize(f"gb_sign_extend({operand}, {value.width})", 1, True, words)
        if own == 2:
            return self._resize(f"gb_sign_extend128({operand}, {value.width})", 2, True, words)
        name = self.temporary(own)
        self.lines.append(f"gb_wide_sign_extend({name}, {operand}, {own}, {value.width});")
        return self._resize(name, own, True, words)

    def _saturate(self, value: ex.CastOperation, words: int) -> str:
        bounds = self.range(value.operand)
        least, most = unsigned_range(value.width) if value.op == "usat_cast" else signed_range(value.width)
        if least <= bounds[0] and bounds[1] <= most:
            return self.emit(value.operand, words)
        text, own = self.exact(value.operand)
        # The limits as far as the operand can reach them, so that they fit the operand's words.
        low, high = (max(least, bounds[0]), min(most, bounds[1])) if least <= bounds[1] else (least, least)
        if bounds[0] > most:
            low = high = most
        if low == high:
            return self._constant(low, words)
        if own.words <= 2 and not own.signed:
            limit = self._constant(high, own.words)
            result = f"gb_min({text}, {limit})" if own.words == 1 else f"gb_min128({text}, {limit})"
        elif own.words == 1:
            result = f"gb_clamp64({text}, (int64_t){constant(low)}, (int64_t){constant(high)})"
        elif own.words == 2:
            result = f"gb_clamp128({text}, {self._constant(low, 2)}, {self._constant(high, 2)})"
        else:
            result = self.temporary(own.words)
            limits = f"{self._constant(low, own.words)}, {self._constant(high, own.words)}"
            sign = "true" if own.signed else "false"
            self.lines.append(f"gb_wide_clamp({result}, {text}, {limits}, {own.words}, {sign});")
        return self._resize(result, own.words, own.signed, words)

    # ---- Booleans ----

    def boolean(self, value: ex.Boolean) -> str:
        if isinstance(value, ex.Truth):
            return "1" if value.value else "0"
        if isinstance(value, ex.Comparison):
            return self._comparison(value)
        if isinstance(value, ex.NonZero):
            if isinstance(value.operand, ex.FromBoolean):
                return self.boolean(value.operand.operand)
            text, own = self.exact(value.operand)
            return f"({text} != 0)" if own.words <= 2 else f"gb_wide_nonzero({text}, {own.words})"
        if isinstance(value, ex.Logic):
            op = {"and": "&&", "or": "||"}.get(value.op, value.op)
            return f"({self.boolean(value.left)} {op} {self.boolean(value.right)})"
        if isinstance(value, ex.Negation):
            return f"(!{self.boolean(value.operand)})"
        if isinstance(value, ex.BooleanChoice):
            parts = [self.boolean(v) for v in (value.condition, value.if_true, value.if_false)]
            return f"({parts[0]} ? {parts[1]} : {parts[2]})"
        if isinstance(value, ex.IsValid):
            return f"({self.validity(value.header)} != 0)"
        if isinstance(value, ex.IsUnionValid):
            return "(" + " || ".join(self.validity(h) for h in self.union_members(value.union)) + ")"
        if isinstance(value, ex.HeadersEqual):
            return self._headers_equal(value.left, value.right)
        if isinstance(value, ex.VariableFieldsEqual):
            return f"gb_same_variable(&phv[{self.slot(value.left)}], &phv[{self.slot(value.right)}])"
        pairs = zip(self.union_members(value.left), self.union_members(value.right), strict=True)
        return "(" + " || ".join(self._headers_equal(a, b) for a, b in pairs) + ")"

    def _comparison(self, value: ex.Comparison) -> str:
        left, right, both = self._common(value.left, value.right)
        if both.words > 2:
            sign = "true" if both.signed else "false"
            return f"(gb_wide_compare({left}, {right}, {both.words}, {sign}) {value.op} 0)"
        if both.signed and value.op not in ("==", "!="):
            kind = "int64_t" if both.words == 1 else "gb_i128"
            return f"(({kind}){left} {value.op} ({kind}){right})"
        return f"({left} {value.op} {right})"

    def _headers_equal(self, left: ex.HeaderReference, right: ex.HeaderReference) -> str:
        """Return C for: both are valid, of the same type, and equal in all fields."""
        a, b = self.header_layout(left), self.header_layout(right)
        if a.type != b.type:
            return "0"
        terms = [self.validity(left), self.validity(right)]
        run_first, run_words = 0, 0
        offsets = a.type.offsets
        for field, offset in zip(a.type.fields, offsets, strict=True):
            if not field.variable:
                run_words += field.words
                continue
            terms.append(f"gb_same_words(&phv[{a.first}], &phv[{b.first}], {run_first}, {run_words})")
            terms.append(f"gb_same_variable(&phv[{a.first} + {offset}], &phv[{b.first} + {offset}])")
            run_first, run_words = offset + field.words, 0
        terms.append(f"gb_same_words(&phv[{a.first}], &phv[{b.first}], {run_first}, {run_words})")
        return "(" + " && ".join(terms) + ")"
