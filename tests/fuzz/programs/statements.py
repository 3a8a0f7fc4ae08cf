"""Random statements of functions, actions, controls and parser states."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

from tests.fuzz.programs.choices import Choices
from tests.fuzz.programs.expressions import Expressions, draw_width, literal, sign
from tests.fuzz.programs.values import (
    BOOL,
    VOID,
    Bits,
    Bool,
    Enum,
    HeaderPlace,
    Place,
    Scope,
    Stack,
    Struct,
    TableUse,
    Type,
    fields_of,
    flat,
    mark,
)

DEPTH = 3
MAX_NESTING = 3
Lines = list[str]
Maker = Callable[[], Lines]

HASHES = ("crc16", "crc32", "csum16", "xor16", "identity")


class Names:
    """Each name of a program once."""

    def __init__(self) -> None:
        self._numbers = itertools.count()

    def new(self, prefix: str) -> str:
        return f"{prefix}{next(self._numbers)}"


class Statements(Expressions):
    """Of one block. nesting: how many blocks are around it."""

    def __init__(self, c: Choices, scope: Scope, names: Names, kinds: list[Type], nesting: int = 0) -> None:
        super().__init__(c, scope)
        self.names = names
        self.kinds = kinds
        self.nesting = nesting

    def block(self, percent: int = 75, most: int = 6) -> Lines:
        """Statements; what they declare is in scope to the end of the block."""
        lines: Lines = []
        for _ in range(most):
            with self.c.span():
                if not self.c.chance(percent):
                    break
                lines += self.statement()
        return lines

    def _inner(self) -> Statements:
        return Statements(self.c, self.scope.inner(), self.names, self.kinds, self.nesting + 1)

    def inner_block(self, *, loop: bool = False, places: tuple[Place, ...] = ()) -> Lines:
        inner = self._inner()
        inner.scope.loops += loop
        inner.scope.places += places
        return ["{", *inner.block(percent=65, most=4), "}"]

    def statement(self) -> Lines:  # noqa: C901 (one case for each kind)
        scope = self.scope
        options: list[tuple[int, Maker]] = [(2, self._declare)]
        if any(place.writable for place in scope.places):
            options += [(9, self._assign), (2, self._compound), (2, self._assign_slice)]
        if any(isinstance(place.type, Struct) and place.writable for place in scope.places):
            options.append((2, self._assign_struct))
        if self.nesting < MAX_NESTING:
            options += [(4, self._if), (2, self._switch), (1, lambda: [mark("block"), *self.inner_block()])]
            if scope.loops < 2:
                options.append((2, self._for))
        if any(not header.fixed and header.writable for header in scope.headers):
            options.append((3, self._header))
        if scope.stacks:
            options.append((3, self._stack))
        if scope.unions:
            options.append((2, self._union))
        for callees, construct, method, weight in (
            (scope.functions, "call of a function as a statement", "", 1),
            (scope.actions, "call of an action", "", 4),
            (scope.controls, "apply of a control", ".apply", 3),
        ):
            fitting = [each for each in callees if self.callable(each)]
            if fitting:
                options.append((weight, lambda f=fitting, k=construct, m=method: self._call_one(f, k, m)))  # type: ignore[misc]
        if scope.tables:
            options.append((6, self._table))
        if scope.registers:
            options.append((3, self._register))
        if scope.counters:
            options.append((1, self._counter))
        if scope.meters:
            options.append((1, self._meter))
        if scope.can_hash:
            options.append((2, self._hash))
        if scope.digests:
            options.append((2, self._digest))
        if scope.pipeline:
            options.append((2, self._standard))
        if self.nesting or scope.result is not None:
            if scope.loops:
                options.append((1, lambda: [self._under_condition(self.c.pick(("break", "continue")))]))
            if scope.can_exit:
                options.append((1, lambda: [self._under_condition("exit")]))
            if scope.can_return or scope.result is not None:
                options.append((1, self._return))
        return self.c.weighted(options)()

    def _under_condition(self, what: str) -> str:
        return f"if ({self.value(BOOL, 2)}) {{ {mark(what)}{what}; }}"

    def _return(self) -> Lines:
        if self.scope.result in (None, VOID):
            return [self._under_condition("return")]
        assert self.scope.result is not None
        value = self.value(self.scope.result, DEPTH)
        return [f"if ({self.value(BOOL, 2)}) {{ {mark('return of a value')}return {value}; }}"]

    # ---- Assignments ----

    def _declare(self) -> Lines:
        c = self.c
        name = self.names.new("v")
        if c.below(6) == 0:
            first, second = Bits(draw_width(c)), Bits(draw_width(c))
            line = (
                f"{mark('tuple')}tuple<{first}, {second}> {name} = "
                f"{{ {self.value(first, 2)}, {self.value(second, 2)} }};"
            )
            self.scope.places += [Place(f"{name}[0]", first, False), Place(f"{name}[1]", second, False)]
            return [line]
        kind = self.draw_type()
        if c.below(6) == 0 and isinstance(kind, Bits | Bool):
            line = f"{mark('const')}const {kind} {name} = {literal(c, kind)};"
            self.scope.places.append(Place(name, kind, False))
        else:
            line = f"{mark('variable')}{kind} {name} = {self.value(kind, DEPTH)};"
            self.scope.places += flat(Place(name, kind))
        return [line]

    def draw_type(self) -> Type:
        if self.kinds and self.c.below(3) == 0:
            return self.c.pick(self.kinds)
        if self.c.below(8) == 0:
            return BOOL
        width = draw_width(self.c)
        return Bits(width, width > 1 and self.c.below(3) == 0)

    def _target(self) -> Place:
        return self.c.pick([place for place in self.scope.places if place.writable])

    def _assign(self) -> Lines:
        target = self._target()
        found = mark("assignment" if target.guard is None else "assignment to a header that may be invalid")
        return [f"{found}{target.text} = {self.value(target.type, DEPTH)};"]

    def _scalar_target(self) -> Place | None:
        held = [place for place in self.scope.scalars() if place.writable]
        return self.c.pick(held) if held else None

    def _compound(self) -> Lines:
        target = self._scalar_target()
        if target is None:
            return self._assign()
        kind = target.type
        assert isinstance(kind, Bits)
        operator = self.c.pick(("+", "-", "&", "|", "^", "*", "|+|", "|-|", "<<", ">>"))
        by = Bits(4) if operator in ("<<", ">>") else kind
        return [f"{mark(f'{operator}= of {sign(kind)}')}{target.text} {operator}= {self.value(by, DEPTH)};"]

    def _assign_slice(self) -> Lines:
        target = self._scalar_target()
        if target is None:
            return self._assign()
        kind = target.type
        assert isinstance(kind, Bits)
        if kind.signed:
            return self._assign()
        width = self.c.between(1, kind.width)
        low = self.c.below(kind.width - width + 1)
        place = self.slice(target.text, low, width)
        return [f"{mark('assignment to a slice')}{place} = {self.value(Bits(width), DEPTH)};"]

    def _assign_struct(self) -> Lines:
        target = self.c.pick([p for p in self.scope.places if p.writable and isinstance(p.type, Struct)])
        assert isinstance(target.type, Struct)
        fields = target.type.fields
        if self.c.below(2):
            values = [f"{name} = {self.value(kind, 2)}" for name, kind in fields]
        else:
            values = [self.value(kind, 2) for _, kind in fields]
        return [f"{mark('assignment of a list to a struct')}{target.text} = {{ {', '.join(values)} }};"]

    # ---- Control flow ----

    def _if(self) -> Lines:
        lines = [f"{mark('if')}if ({self.value(BOOL, DEPTH)})", *self.inner_block()]
        while self.c.below(4) == 0:
            lines += [f"{mark('else if')}else if ({self.value(BOOL, 2)})", *self.inner_block()]
        if self.c.below(2):
            lines += [mark("else") + "else", *self.inner_block()]
        return lines

    def _switch(self) -> Lines:
        c = self.c
        enums = [p.type for p in self.scope.places if isinstance(p.type, Enum)]
        if enums and c.below(3) == 0:
            kind: Type = c.pick(enums)
            assert isinstance(kind, Enum)
            labels = [f"{kind.name}.{member}" for member in kind.members]
            found = mark("switch over an enum")
            asked = self.value(kind, 2)
        else:
            width = c.pick((2, 3, 1, 8, 16, 65))
            numbers = dict.fromkeys(c.number(width) for _ in range(c.between(1, 4)))
            labels = [str(number) for number in numbers]
            found, asked = mark("switch over a value"), self.value(Bits(width), DEPTH)
        lines = [f"{found}switch ({asked}) {{"]
        return [*lines, *self._cases(labels), "}"]

    def _cases(self, labels: list[str]) -> Lines:
        lines: Lines = []
        for number, label in enumerate(labels):
            if number + 1 < len(labels) and self.c.below(5) == 0:
                lines.append(f"{mark('case that falls through')}{label}:")
            else:
                lines += [f"{label}:", *self.inner_block()]
        if self.c.below(2):
            lines += [mark("default case") + "default:", *self.inner_block()]
        return lines

    def _for(self) -> Lines:
        c = self.c
        name = self.names.new("i")
        match c.below(3):
            case 0:
                kind = Bits(c.pick((8, 3, 16)))
                counter = Place(name, kind, writable=False)
                most = str(c.below(4)) if c.below(2) else f"({self.value(Bits(kind.width), 1)} & 3)"
                head = f"{mark('for (;;)')}for ({kind} {name} = 0; {name} < {most}; {name} = {name} + 1)"
            case 1:
                kind = Bits(c.pick((8, 4)))
                counter = Place(name, kind, writable=False)
                low = c.below(4)
                head = f"{mark('for in a range')}for ({kind} {name} in {low} .. {low + c.below(4)})"
            case _:
                kind = Bits(draw_width(c))
                counter = Place(name, kind, writable=False)
                values = ", ".join(self.value(kind, 1) for _ in range(c.between(1, 3)))
                head = f"{mark('for in a list')}for ({kind} {name} in (list<{kind}>) {{ {values} }})"
        return [head, *self.inner_block(loop=True, places=(counter,))]

    # ---- Headers, stacks, unions ----

    def fill(self, header: HeaderPlace, *, construct: str = "setValid()") -> Lines:
        """Make it valid and give all fields a value."""
        if self.c.below(3) == 0 and not header.type.varbit:
            values = ", ".join(f"{name} = {self.value(kind, 2)}" for name, kind in header.type.fields)
            return [f"{mark('header expression')}{header.text} = ({header.type}) {{ {values} }};"]
        lines = [f"{mark(construct)}{header.text}.setValid();"]
        # Until it is written a field is undefined, also for what is written into the next one.
        for place in fields_of(header):
            lines.append(f"{place.text} = {literal(self.c, place.type)};")
        return lines

    def _header(self) -> Lines:
        c = self.c
        header = c.pick([each for each in self.scope.headers if not each.fixed and each.writable])
        match c.below(4):
            case 0:
                return [f"{mark('setInvalid()')}{header.text}.setInvalid();"]
            case 1:
                same = [each for each in self.scope.headers if each.type == header.type]
                return [f"{mark('assignment of a header')}{header.text} = {c.pick(same).text};"]
            case 2 if c.below(3) == 0:
                return [f"{mark('invalid header expression')}{header.text} = ({header.type}) {{#}};"]
        return self.fill(header) if not header.type.varbit else [f"{mark('setInvalid()')}{header.text}.setInvalid();"]

    def elements(self, stack: Stack) -> Iterator[HeaderPlace]:
        for index in range(stack.size):
            yield HeaderPlace(f"{stack.text}[{index}]", stack.type)

    def _stack(self) -> Lines:
        c = self.c
        stack = c.pick(self.scope.stacks)
        match c.below(5):
            case 0:
                return [f"{mark('push_front')}{stack.text}.push_front({c.between(1, stack.size)});"]
            case 1:
                return [f"{mark('pop_front')}{stack.text}.pop_front({c.between(1, stack.size)});"]
            case 2:
                return self.fill(c.pick(list(self.elements(stack))), construct="setValid() of an element")
            case 3 if stack.size & (stack.size - 1) == 0:
                return self._at_an_index(stack)
        one, two = c.pick(list(self.elements(stack))), c.pick(list(self.elements(stack)))
        return [f"{mark('assignment of an element')}{one.text} = {two.text};"]

    def _at_an_index(self, stack: Stack) -> Lines:
        """That the packet tells. The index is in a variable: it is asked for several times."""
        name = self.names.new("n")
        bits = stack.size.bit_length() - 1
        index = Bits(bits)
        lines = [f"{mark('index of a stack')}{index} {name} = {self.value(index, 2)};"]
        element = HeaderPlace(f"{stack.text}[{name}]", stack.type)
        self.scope.places += fields_of(element)
        self.scope.places.append(Place(name, index, writable=False))
        field = self.c.pick(list(fields_of(element)))
        if self.c.below(2):
            return [*lines, f"{mark('assignment at an index')}{field.text} = {self.value(field.type, 2)};"]
        return [*lines, *self.fill(element, construct="setValid() at an index")]

    def _union(self) -> Lines:
        c = self.c
        union = c.pick(self.scope.unions)
        name, kind = c.pick(union.members)
        member = HeaderPlace(f"{union.text}.{name}", kind)
        match c.below(4):
            case 0:
                return [f"{mark('setInvalid() of a union member')}{member.text}.setInvalid();"]
            case 1:
                others = [each for each in self.scope.headers if each.type == kind]
                if others:
                    return [f"{mark('assignment to a union member')}{member.text} = {c.pick(others).text};"]
        return self.fill(member, construct="setValid() of a union member")

    # ---- Calls ----

    def _call_one(self, fitting: list[object], construct: str, method: str) -> Lines:
        return [self.call(self.c.pick(fitting), DEPTH, construct, method) + ";"]  # type: ignore[arg-type]

    def _table(self) -> Lines:
        c = self.c
        table = c.pick(self.scope.tables)
        if self.nesting >= MAX_NESTING:
            return [f"{mark('apply of a table')}{table.name}.apply();"]
        match c.pick((0, 1, 4, 2)):
            case 0:
                way = c.pick(("hit", "miss"))
                found = mark(f"apply().{way}") + self._asked(table, "hit")
                lines = [f"{found}if ({table.name}.apply().{way})", *self.inner_block()]
                return [*lines, "else", *self.inner_block()] if c.below(2) else lines
            case 1:
                cases = self._cases([each for each in table.actions if c.below(4)])
                if cases:
                    found = mark("switch over action_run") + self._asked(table, "action_run")
                    return [f"{found}switch ({table.name}.apply().action_run) {{", *cases, "}"]
            case 2:
                held = [place for place in self.scope.of_type(BOOL) if place.writable and place.guard is None]
                if held:
                    found = mark("apply().hit as a value") + self._asked(table, "hit")
                    return [f"{found}{c.pick(held).text} = {table.name}.apply().hit;"]
        return [f"{mark('apply of a table')}{table.name}.apply();"]

    @staticmethod
    def _asked(table: TableUse, what: str) -> str:
        table.asked.add(what)
        return mark("table asked for hit and for action_run") if len(table.asked) == 2 else ""

    # ---- Externs ----

    def _index(self) -> str:
        return f"(bit<32>)({self.value(Bits(2), 2)})"

    def _register(self) -> Lines:
        register = self.c.pick(self.scope.registers)
        if self.c.below(2):
            return [
                f"{mark('register write')}{register.name}.write({self._index()}, {self.value(register.type, DEPTH)});"
            ]
        name = self.names.new("v")
        self.scope.places.append(Place(name, register.type))
        return [
            f"{register.type} {name} = {literal(self.c, register.type)};",
            f"{mark('register read')}{register.name}.read({name}, {self._index()});",
        ]

    def _counter(self) -> Lines:
        return [f"{mark('counter')}{self.c.pick(self.scope.counters).name}.count({self._index()});"]

    def _meter(self) -> Lines:
        name = self.names.new("v")
        self.scope.places.append(Place(name, Bits(8)))
        meter = self.c.pick(self.scope.meters).name
        lines = [f"bit<8> {name} = 7;", f"{mark('meter')}{meter}.execute_meter({self._index()}, {name});"]
        return [*lines, *self.told(name, Bits(8))]

    def told(self, value: str, kind: Bits) -> Lines:
        """What a later frame or its metadata shows of the value: else a wrong one mostly goes unseen."""
        held = [place for place in self.scope.scalars() if place.writable and place.guard is None]
        # What is declared elsewhere, such as metadata, lives longer than what was declared just now.
        held = [place for place in held if place.text.startswith("meta.")] or held
        if not held:
            return []
        target = self.c.pick(held)
        assert isinstance(target.type, Bits)
        return [f"{target.text} = {target.text} ^ {self.cast(value, kind, target.type)};"]

    def _digest(self) -> Lines:
        """The first field tells which digest it is."""
        number = self.c.below(len(self.scope.digests))
        kind = self.scope.digests[number]
        values = [f"8w{number}", *(self.value(of, self.c.below(3)) for _, of in kind.fields[1:])]
        # The values are those of the call, also if they change before ingress ends and the message leaves.
        changed: Lines = []
        places = [place for place in self.scope.places if place.writable and place.guard is None]
        same = [(at, place) for at, (_, of) in enumerate(kind.fields) for place in places if at and place.type == of]
        if same and self.c.below(3):
            at, place = self.c.pick(same)
            values[at] = place.text
            changed.append(f"{place.text} = {self.value(place.type, 2)};")
        if self.c.below(2):
            data = f"{{ {', '.join(values)} }}"
        else:
            names = [name for name, _ in kind.fields]
            data = f"({kind}) {{ {', '.join(f'{n} = {v}' for n, v in zip(names, values, strict=True))} }}"
        found = mark("digest" if self.scope.pipeline else "digest in an action")
        return [f"{found}digest<{kind}>({self.c.between(1, 9)}, {data});", *changed]

    def _hash(self) -> Lines:
        c = self.c
        algorithm = c.pick(HASHES)
        name, kind = self.names.new("v"), Bits(c.pick((32, 16, 8, 13)))
        widths = [c.pick((8, 16, 32, 48, 24)) for _ in range(1 if algorithm == "identity" else c.between(1, 4))]
        data = ", ".join(self.value(Bits(width), 2) for width in widths)
        if sum(widths) % 16:
            found = mark("hash of an odd number of bytes")
        else:
            found = mark("hash of an even number of bytes")
        base, most = f"{kind.width}w{c.below(20)}", c.pick((1 << 16, 1 << 31, 10, 7, 1))
        self.scope.places.append(Place(name, kind))
        return [
            f"{kind} {name} = 0;",
            f"{found}{mark(f'hash {algorithm}')}"
            f"hash({name}, HashAlgorithm.{algorithm}, {base}, {{ {data} }}, 64w{most});",
        ]

    # ---- The architecture ----

    def _log(self) -> Lines:
        if self.c.below(3) == 0:
            return [f'{mark("overload of an extern function")}log_msg("here");']
        return [f'{mark("log_msg")}log_msg("{{}}", {{ {self.leaf(Bits(8))} }});']

    def _standard(self) -> Lines:
        c = self.c
        ingress = self.scope.pipeline == "ingress"
        # A packet goes round twice at most. Of copies none does: their order would be the switch's choice.
        first = "meta.rounds < 2" if ingress else "meta.rounds < 2 && std.instance_type == 0"
        count = "meta.rounds = meta.rounds + 1;"
        options: list[tuple[int, Maker]] = [
            (1, self._log),
            (1, lambda: [f"{mark('assert, assume')}{c.pick(('assert', 'assume'))}(true);"]),
            (1, lambda: [f"if ({self.value(BOOL, 2)}) {{ {mark('mark_to_drop')}mark_to_drop(std); }}"]),
        ]
        session = c.between(1, 3)
        kind = "I2E" if ingress else "E2E"

        def again(construct: str, call: str) -> Lines:
            return [f"if ({first} && {self.value(BOOL, 2)}) {{ {count} {mark(construct)}{call}; }}"]

        clone = f"clone_preserving_field_list(CloneType.{kind}, {session}, 1)"
        options.append((2, lambda: again(f"clone {kind}", clone)))
        whole = "resubmit" if ingress else "recirculate"
        options.append((1, lambda: again(whole, f"{whole}_preserving_field_list(1)")))
        if ingress:
            options += [
                (4, lambda: [f"{mark('egress_spec')}std.egress_spec = (bit<9>)({self.value(Bits(3), 2)});"]),
                (2, lambda: [f"{mark('multicast')}std.mcast_grp = (bit<16>)({self.value(Bits(2), 2)});"]),
            ]
        return c.weighted(options)()
