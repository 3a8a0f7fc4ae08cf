"""Random expressions of a given type."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.fuzz.programs.choices import Choices
from tests.fuzz.programs.values import (
    BOOL,
    Bits,
    Bool,
    Callee,
    Enum,
    Header,
    Parameter,
    Place,
    Scope,
    Struct,
    Type,
    mark,
)

ODD_WIDTHS = (8, 16, 32, 1, 3, 7, 9, 13, 31, 33, 48, 63, 64, 65, 100, 127, 128, 129, 130)
MAX_WIDTH = 130


def draw_width(c: Choices) -> int:
    return c.pick(ODD_WIDTHS) if c.below(4) else c.between(1, MAX_WIDTH)


def sign(kind: Bits) -> str:
    return "int" if kind.signed else "bit"


def literal(c: Choices, kind: Type) -> str:
    match kind:
        case Bool():
            return "true" if c.below(2) else "false"
        case Enum(name=name, members=members):
            return f"{name}.{c.pick(members)}"
        case Struct(name=name, fields=fields):
            return f"({name}) {{ {', '.join(f'{field} = {literal(c, of)}' for field, of in fields)} }}"
        case Bits(width=width, signed=False):
            number = c.number(width)
            return f"{width}w{number}" if c.below(2) else f"{width}w{number:#x}"
        case Bits(width=width):
            number = c.number(width)
            if number == 1 << width - 1:
                return f"(int<{width}>){width}w{number}"
            return f"{width}s{number}" if number >> width - 1 == 0 else f"(-{width}s{(1 << width) - number})"
    raise TypeError(kind)


class Expressions:
    """calls: whether functions may be called, which write to what is given as `inout` and `out`."""

    def __init__(self, c: Choices, scope: Scope, *, calls: bool = True) -> None:
        self.c = c
        self.scope = scope
        self.calls = calls

    def value(self, kind: Type, depth: int) -> str:
        with self.c.span():
            if depth <= 0:
                return self.leaf(kind)
            match kind:
                case Bool():
                    return self._bool(depth - 1)
                case Bits():
                    return self._bits(kind, depth - 1)
            return self._other(kind, depth - 1)

    # ---- Leaves ----

    def leaf(self, kind: Type) -> str:
        """A literal or a place of the type, or a part of one."""
        c = self.c
        held = [place for place in self.scope.of_type(kind) if not isinstance(kind, Header)]
        if held and c.below(5):
            return self.read(c.pick(held))
        if isinstance(kind, Bits) and self.scope.scalars() and c.below(4):
            return self._part(kind)
        return literal(c, kind)

    def read(self, place: Place) -> str:
        if place.guard is None:
            return place.text
        found, other = mark("read of a header that may be invalid"), literal(self.c, place.type)
        return f"{found}({place.guard} ? {place.text} : {other})"

    def _part(self, kind: Bits) -> str:
        """Of a place of another width: a slice or a cast."""
        place = self.c.pick(self.scope.scalars())
        assert isinstance(place.type, Bits)
        text, width = self.read(place), place.type.width
        if width > kind.width and self.c.below(2):
            low = self.c.below(width - kind.width + 1)
            return self._signed(kind, self.slice(text, low, kind.width))
        return self.cast(text, place.type, kind)

    def slice(self, text: str, low: int, width: int) -> str:
        if self.c.below(6) == 0:
            return f"{mark('slice [low+:width]')}{text}[{low}+:{width}]"
        return f"{mark('slice')}{text}[{low + width - 1}:{low}]"

    def _signed(self, kind: Bits, text: str) -> str:
        return f"(int<{kind.width}>){text}" if kind.signed else text

    @staticmethod
    def cast(text: str, given: Bits, wanted: Bits) -> str:
        if given == wanted:
            return text
        if given.width == wanted.width:
            return f"{mark('cast of sign')}({wanted}){text}"
        way = "narrowing" if given.width > wanted.width else "widening"
        found = f"{mark(f'cast, {way}, of {sign(given)}')}"
        if given.signed == wanted.signed:
            return f"{found}({wanted}){text}"
        return f"{found}({wanted})({Bits(wanted.width, given.signed)}){text}"

    # ---- bit<W> and int<W> ----

    def _bits(self, kind: Bits, depth: int) -> str:
        c = self.c
        options: list[tuple[int, Callable[[Bits, int], str]]] = [
            (2, lambda kind, depth: self.leaf(kind)),
            (6, self._binary),
            (2, self._unary),
            (2, self._shift),
            (2, self._cast),
            (2, self._ternary),
            (2, self._slice),
        ]
        if not kind.signed:
            options += [(2, self._divided), (1, self._of_enum)]
            if kind.width > 1:
                options.append((2, self._joined))
        if kind.width == 1 and not kind.signed:
            options.append((2, lambda kind, depth: f"{mark('cast of bool')}(bit<1>)({self.value(BOOL, depth)})"))
        if self.calls and self._functions(kind):
            options.append((4, self._call))
        return c.weighted(options)(kind, depth)

    def _binary(self, kind: Bits, depth: int) -> str:
        operator = self.c.pick(("+", "-", "&", "|", "^", "*", "|+|", "|-|"))
        left = self.value(kind, depth)
        if self.c.below(8) == 0 and operator not in ("|+|", "|-|"):
            most = min((1 << kind.width - kind.signed) - 1, 99)
            right = f"{mark('literal without a width')}{self.c.below(most + 1)}"
        else:
            right = self.value(kind, depth)
        return f"({left} {mark(f'{operator} of {sign(kind)}')}{operator} {right})"

    def _unary(self, kind: Bits, depth: int) -> str:
        operator = self.c.pick(("~", "-"))
        return f"({mark(f'unary {operator}')}{operator}({self.value(kind, depth)}))"

    def _shift(self, kind: Bits, depth: int) -> str:
        operator = self.c.pick((">>", "<<"))
        found = mark(f"{operator} of {sign(kind)}")
        if self.c.below(2):
            by = str(self.c.below(kind.width + 3))
        else:
            by = self.value(Bits(self.c.pick((3, 8, 4, 7, 16, 64, 70))), depth)
            found += mark("shift by a value")
        return f"({self.value(kind, depth)} {found}{operator} {by})"

    def _cast(self, kind: Bits, depth: int) -> str:
        given = Bits(draw_width(self.c), bool(self.c.below(2)))
        if given.signed and given.width < 2:
            given = Bits(2, True)
        return f"({self.cast(f'({self.value(given, depth)})', given, kind)})"

    def _ternary(self, kind: Type, depth: int) -> str:
        asked = self.value(BOOL, depth)
        return f"({asked} {mark('? :')}? {self.value(kind, depth)} : {self.value(kind, depth)})"

    def _slice(self, kind: Bits, depth: int) -> str:
        more = self.c.below(12)
        low = self.c.below(more + 1)
        whole = Bits(kind.width + more, bool(self.c.below(2)) and kind.width + more > 1)
        return self._signed(kind, self.slice(f"({self.value(whole, depth)})", low, kind.width))

    def _divided(self, kind: Bits, depth: int) -> str:
        operator = self.c.pick(("/", "%"))
        divisor = 1 << self.c.below(kind.width)
        return f"({self.value(kind, depth)} {mark(f'{operator} by a constant')}{operator} {kind.width}w{divisor})"

    def _joined(self, kind: Bits, depth: int) -> str:
        left = self.c.between(1, kind.width - 1)
        first, second = self.value(Bits(left), depth), self.value(Bits(kind.width - left), depth)
        return f"({first} {mark('++')}++ {second})"

    def _of_enum(self, kind: Bits, depth: int) -> str:
        for place in self.scope.places:
            if isinstance(place.type, Enum) and place.type.width == kind.width and place.guard is None:
                return f"{mark('cast of enum')}(bit<{kind.width}>){place.text}"
        return self.leaf(kind)

    # ---- Others ----

    def _bool(self, depth: int) -> str:
        c = self.c
        options: list[tuple[int, Callable[[int], str]]] = [
            (1, lambda depth: self.leaf(BOOL)),
            (6, self._compared),
            (2, self._junction),
            (1, lambda depth: f"({mark('!')}!({self.value(BOOL, depth)}))"),
            (1, lambda depth: f"({self.value(BOOL, depth)} {mark('== of bool')}== {self.value(BOOL, depth)})"),
            (1, lambda depth: self._ternary(BOOL, depth)),
            (1, lambda depth: f"({mark('cast to bool')}(bool)({self.value(Bits(1), depth)}))"),
            (2, self._validity),
            (1, self._compared_whole),
        ]
        if self.calls and self._functions(BOOL):
            options.append((2, lambda depth: self._call(BOOL, depth)))
        return c.weighted(options)(depth)

    def _compared(self, depth: int) -> str:
        c = self.c
        held = self.scope.scalars()
        kind = c.pick(held).type if held and c.below(3) else Bits(draw_width(c))
        assert isinstance(kind, Bits)
        operator = c.pick(("==", "<", "!=", "<=", ">", ">="))
        found = mark(f"{operator} of {sign(kind)}")
        return f"({self.value(kind, depth)} {found}{operator} {self.value(kind, depth)})"

    def _junction(self, depth: int) -> str:
        operator = self.c.pick(("&&", "||"))
        return f"({self.value(BOOL, depth)} {mark(operator)}{operator} {self.value(BOOL, depth)})"

    def _validity(self, depth: int) -> str:
        if not self.scope.headers:
            return self.leaf(BOOL)
        return f"{mark('isValid()')}{self.c.pick(self.scope.headers).text}.isValid()"

    def _compared_whole(self, depth: int) -> str:
        """Structs, headers, enums."""
        c = self.c
        operator = c.pick(("==", "!="))
        enums = [place for place in self.scope.places if isinstance(place.type, Enum) and place.guard is None]
        structs = [place for place in self.scope.places if isinstance(place.type, Struct)]
        pairs = [
            (one, two)
            for one in self.scope.headers
            for two in self.scope.headers
            if one.type == two.type and not one.type.varbit
        ]
        match c.below(3):
            case 0 if structs:
                one = c.pick(structs)
                return f"({one.text} {mark('== of structs')}{operator} {c.pick(self.scope.of_type(one.type)).text})"
            case 1 if pairs:
                first, second = c.pick(pairs)
                return f"({first.text} {mark('== of headers')}{operator} {second.text})"
        if not enums:
            return self.leaf(BOOL)
        place = c.pick(enums)
        return f"({place.text} {mark('== of enums')}{operator} {self.value(place.type, depth)})"

    def _other(self, kind: Type, depth: int) -> str:
        c = self.c
        options: list[tuple[int, Callable[[], str]]] = [(2, lambda: self.leaf(kind))]
        match kind:
            case Struct(fields=fields):
                options.append(
                    (3, lambda: f"{mark('struct expression')}({kind}) {{ {self._initializers(fields, depth)} }}")
                )
                options.append((1, lambda: self._ternary(kind, depth)))
            case Enum(width=width):
                options.append((1, lambda: self._ternary(kind, depth)))
                if width is not None:
                    of = Bits(width)
                    options.append((1, lambda: f"{mark('cast to enum')}({kind})({self.value(of, depth)})"))
        if self.calls and self._functions(kind):
            options.append((3, lambda: self._call(kind, depth)))
        return c.weighted(options)()

    def _initializers(self, fields: tuple[tuple[str, Type], ...], depth: int) -> str:
        return ", ".join(f"{name} = {self.value(of, depth)}" for name, of in fields)

    # ---- Calls ----

    def _functions(self, kind: Type) -> list[Callee]:
        return [each for each in self.scope.functions if each.result == kind and self.callable(each)]

    def callable(self, callee: Callee) -> bool:
        """There is something to hand over for each parameter."""
        return all(self._targets(each.direction, each.type) for each in callee.parameters if "out" in each.direction)

    def _call(self, kind: Type, depth: int) -> str:
        return self.call(self.c.pick(self._functions(kind)), depth, "call of a function")

    def call(self, callee: Callee, depth: int, construct: str, method: str = "") -> str:
        arguments: list[str] = []
        handed: list[tuple[str, Type]] = []
        for each in callee.parameters:
            if "out" in each.direction:
                target = self.c.pick(self._targets(each.direction, each.type))
                handed.append((target, each.type))
                arguments.append(mark(f"argument {each.direction}") + target)
            else:
                arguments.append(
                    self._changing(each, handed, depth) or self._argument(each.direction, each.type, depth)
                )
        return f"{mark(construct)}{self._written(callee, arguments, method)}"

    def _written(self, callee: Callee, arguments: list[str], method: str = "") -> str:
        """The call, with the arguments' names where they tell which function is meant, and elsewhere at times."""
        found = mark(f"overload told by {callee.overload} of arguments") if callee.overload else ""
        if callee.overload == "names" or (arguments and self.c.below(8) == 0):
            names = [each.name for each in callee.parameters]
            arguments = [f"{name} = {text}" for name, text in zip(names, arguments, strict=True)]
            found += mark("named arguments")
        return f"{found}{callee.name}{method}({', '.join(arguments)})"

    def _changing(self, parameter: Parameter, handed: Sequence[tuple[str, Type]], depth: int) -> str:
        """An argument that calls a function with what was handed over for a parameter before it, or nothing.

        What of it is copied in and out when is what P4_16, section 6.8, is about.
        """
        fitting = [
            (callee, changed.name, target)
            for callee in (self._functions(parameter.type) if self.calls and depth > 0 else ())
            for changed in callee.parameters
            for target, kind in handed
            if "out" in changed.direction and changed.type == kind
        ]
        if not fitting or not self.c.chance(50):
            return ""
        callee, name, target = self.c.pick(fitting)
        arguments = [
            mark(f"argument {each.direction}") + target
            if each.name == name
            else self._argument(each.direction, each.type, depth - 1)
            for each in callee.parameters
        ]
        return f"{mark('argument changed by a later one')}{self._written(callee, arguments)}"

    def _argument(self, direction: str, kind: Type, depth: int) -> str:
        if "out" not in direction:
            if isinstance(kind, Header):
                held = [header.text for header in self.scope.headers if header.type == kind]
                return self.c.pick(held) if held else f"({kind}) {{#}}"
            return self.value(kind, depth)
        return mark(f"argument {direction}") + self.c.pick(self._targets(direction, kind))

    def _targets(self, direction: str, kind: Type) -> list[str]:
        """What may be handed over as `out` or `inout`: `inout` reads it, so it has to be defined."""
        if isinstance(kind, Header):
            return [h.text for h in self.scope.headers if h.type == kind and h.writable and not h.fixed]
        held = [
            place for place in self.scope.places if place.writable and (place.guard is None or direction == "out")
        ]
        found = [place.text for place in held if place.type == kind]
        if isinstance(kind, Bits) and not kind.signed:
            wider = [p for p in held if isinstance(p.type, Bits) and not p.type.signed and p.type.width > kind.width]
            if wider:
                place = wider[-1]
                assert isinstance(place.type, Bits)
                low = (place.type.width - kind.width) // 2
                found.append(f"{mark('slice as an argument')}{place.text}[{low + kind.width - 1}:{low}]")
        return found
