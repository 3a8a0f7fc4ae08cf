"""A random program of v1model as a whole, with what its control plane writes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from tests.fuzz.programs.choices import Choices
from tests.fuzz.programs.expressions import draw_width, literal
from tests.fuzz.programs.statements import Lines, Names, Statements
from tests.fuzz.programs.tables import Default, Entry, OpenTable, TableWriter
from tests.fuzz.programs.values import (
    BOOL,
    VOID,
    Array,
    Bits,
    Bool,
    Callee,
    Enum,
    Header,
    HeaderPlace,
    Parameter,
    Place,
    Scope,
    Stack,
    Struct,
    TableUse,
    Type,
    Union_,
    fields_of,
    flat,
    mark,
    unmarked,
)

PORTS = 8


@dataclass(frozen=True)
class Rates:
    """Of a meter's cell, or of the meter of an entry with this name: units per microsecond, and the burst."""

    meter: str
    cell: int | str
    committed: tuple[float, int]
    peak: tuple[float, int]


@dataclass(frozen=True)
class Program:
    """constructs: by name, the lines that have them. groups: ports and instances by number. sessions: ports.

    counted: tables with direct counters. digests: by the number in the first field, the widths of all fields.
    """

    text: str
    constructs: dict[str, list[int]]
    entries: tuple[Entry, ...]
    defaults: tuple[Default, ...]
    open_tables: tuple[OpenTable, ...]
    groups: dict[int, tuple[tuple[int, int], ...]]
    sessions: dict[int, tuple[int, ...]]
    value_sets: dict[str, tuple[int, ...]]
    registers: tuple[str, ...]
    counters: tuple[str, ...]
    counted: tuple[str, ...]
    rates: tuple[Rates, ...]
    digests: tuple[tuple[int, ...], ...]
    summed: tuple[int, int, bool] | None
    """Bytes of the first header in front of its 16-bit sum and behind it, and whether a 16-bit 7 is summed, too;
    None if the header has no Internet checksum of itself."""


def draw_program(c: Choices) -> Program:
    return _Writer(c).program()


@dataclass
class _Control:
    """What a control declares."""

    lines: Lines = field(default_factory=list)
    scope: Scope = field(default_factory=Scope)


class _Writer:
    def __init__(self, c: Choices) -> None:
        self.c = c
        self.names = Names()
        self.lines: Lines = ["#include <core.p4>", "#include <v1model.p4>"]
        self.kinds: list[Type] = []
        self.functions: list[Callee] = []
        self.headers: list[HeaderPlace] = []
        self.header_types: list[Header] = []
        self.stacks: list[Stack] = []
        self.unions: list[Union_] = []
        self.varbits: list[HeaderPlace] = []
        self.entries: list[Entry] = []
        self.defaults: list[Default] = []
        self.open_tables: list[OpenTable] = []
        self.registers: list[str] = []
        self.counters: list[str] = []
        self.counted: list[str] = []
        self.rates: list[Rates] = []
        self.digests: list[Struct] = []
        self.value_sets: dict[str, tuple[int, ...]] = {}
        self.parsers: list[tuple[str, Header, Bits]] = []
        self.replicates = bool(c.below(2))

    def program(self) -> Program:
        self._types()
        self._metadata()
        for _ in range(self.c.below(5)):
            with self.c.span():
                self._function()
        controls = []
        for _ in range(self.c.below(3)):
            with self.c.span():
                controls.append(self._sub_control())
        if self.c.below(2):
            self._sub_parser()
        self._parser()
        self._verify()
        self._pipeline("I", "ingress", controls)
        self._pipeline("E", "egress", controls)
        self._compute()
        self._deparser()
        self.lines.append("V1Switch(P(), V(), I(), E(), C(), D()) main;")
        text, constructs = unmarked("\n".join(_indented(self.lines)) + "\n")
        c = self.c
        groups = {
            number: tuple((c.below(PORTS), instance) for instance in range(c.between(1, 3))) for number in (1, 2)
        }
        return Program(
            text,
            constructs,
            tuple(self.entries),
            tuple(self.defaults),
            tuple(self.open_tables),
            groups,
            {number: (c.below(PORTS),) for number in (1, 2)},
            self.value_sets,
            tuple(self.registers),
            tuple(self.counters),
            tuple(self.counted),
            tuple(self.rates),
            tuple(_widths(kind) for kind in self.digests),
            (1, sum(kind.width for _, kind in self.headers[0].type.fields) // 8 - 3, "16w7" in self.data)
            if self.algorithm == "csum16" and not self.payload
            else None,
        )

    # ---- Types ----

    def _fields(self, count: int) -> tuple[tuple[str, Bits], ...]:
        """Whole bytes in all."""
        fields = []
        for number in range(count):
            width = draw_width(self.c)
            fields.append((f"f{number}", Bits(width, width > 1 and self.c.below(4) == 0)))
        rest = -sum(kind.width for _, kind in fields) % 8
        return (*fields, ("pad", Bits(rest))) if rest else tuple(fields)

    def _declare_header(self, kind: Header) -> None:
        fields = " ".join(f"{of} {name};" for name, of in kind.fields)
        varbit = f"{mark('varbit')}varbit<{kind.varbit}> body;" if kind.varbit else ""
        self.lines.append(f"header {kind} {{ {fields} {varbit} }}")

    def _types(self) -> None:
        c = self.c
        if c.below(2):
            enum = Enum("plain_t", ("A", "B", "C")[: c.between(2, 3)])
            self.lines.append(f"{mark('enum')}enum {enum} {{ {', '.join(enum.members)} }}")
            self.kinds.append(enum)
        if c.below(2):
            width = c.pick((8, 4, 16))
            enum = Enum("coded_t", ("X", "Y", "Z"), width)
            values = ", ".join(f"{name} = {number}" for name, number in zip(enum.members, (0, 1, 7), strict=True))
            self.lines.append(f"{mark('serializable enum')}enum bit<{width}> {enum} {{ {values} }}")
            self.kinds.append(enum)
        for number in range(c.below(3)):
            fields: list[tuple[str, Type]] = []
            for each in range(c.between(1, 3)):
                width = draw_width(c)
                of: Type = c.pick([Bits(width), Bits(width + 1, True), BOOL, *self.kinds])
                fields.append((f"s{each}", of))
            struct = Struct(f"struct{number}_t", tuple(fields))
            inner = " ".join(f"{of} {name};" for name, of in struct.fields)
            nested = any(isinstance(of, Struct) for _, of in fields)
            self.lines.append(f"{mark('struct in a struct' if nested else 'struct')}struct {struct} {{ {inner} }}")
            self.kinds.append(struct)
        for number in range(c.below(3)):
            # Enums without a number for each member are nothing that P4Runtime sends.
            sent = [kind for kind in self.kinds if _widths(kind)]
            offered: list[Type] = [BOOL, Bits(draw_width(c)), Bits(draw_width(c) + 1, True), *sent]
            fields = [("which", Bits(8)), *((f"d{each}", c.pick(offered)) for each in range(c.between(1, 4)))]
            digest = Struct(f"digest{number}_t", tuple(fields))
            inner = " ".join(f"{of} {name};" for name, of in digest.fields)
            self.lines.append(f"struct {digest} {{ {inner} }}")
            self.digests.append(digest)
        first = Header("first_t", (("way", Bits(8)), ("sum", Bits(16)), *self._fields(c.between(1, 4))))
        self._declare_header(first)
        self.headers.append(HeaderPlace("h.first", first, fixed=True))
        for number in range(c.between(1, 3)):
            kind = Header(f"h{number}_t", self._fields(c.between(1, 4)))
            self._declare_header(kind)
            self.header_types.append(kind)
        for number in range(c.between(1, 3)):
            self.headers.append(HeaderPlace(f"h.one{number}", c.pick(self.header_types)))
        if c.below(2):
            self.stacks.append(Stack("h.stack", c.pick(self.header_types), c.pick((2, 3, 4))))
        if c.below(2):
            members = [("a", c.pick(self.header_types)), ("b", c.pick(self.header_types))]
            self.unions.append(Union_("h.union", tuple(members)))
            self.lines.append(
                f"{mark('header union')}header_union union_t {{ {members[0][1]} a; {members[1][1]} b; }}"
            )
        if c.below(3) == 0:
            kind = Header("var_t", (("kind", Bits(8)),), varbit=c.pick((64, 128, 24)))
            self._declare_header(kind)
            self.varbits.append(HeaderPlace("h.var", kind))

    def _metadata(self) -> None:
        c = self.c
        self.meta = [Place("meta.m0", Bits(draw_width(c))), Place("meta.m1", Bits(32))]
        for number in range(2, c.between(3, 6)):
            kind: Type = c.pick([Bits(draw_width(c)), Bits(draw_width(c) + 1, True), BOOL, *self.kinds])
            self.meta.append(Place(f"meta.m{number}", kind))
        self.kept = Place("meta.kept", Bits(draw_width(c)))
        declared = " ".join(f"{place.type} {place.text[5:]};" for place in self.meta)
        self.lines.append(
            f"struct meta_t {{ {declared} @field_list(1) {self.kept.type} kept; @field_list(1) bit<8> rounds; }}"
        )
        dumped = [(f"d{number}", place) for number, place in enumerate(self._observed())]
        fields = []
        for name, place in dumped:
            fields.append((name, _dumped_as(place.type)))
        rest = -sum(kind.width for _, kind in fields) % 8
        self.dumped = dumped
        self.dump = Header("dump_t", (*fields, ("pad", Bits(rest))) if rest else tuple(fields))
        self._declare_header(self.dump)
        members = [*self.headers, *self.varbits]
        self.lines.append("struct headers_t {")
        self.lines += [f"{header.type} {header.text[2:]};" for header in members]
        self.lines += [f"{mark('header stack')}{stack.type}[{stack.size}] {stack.text[2:]};" for stack in self.stacks]
        self.lines += [f"union_t {union.text[2:]};" for union in self.unions]
        self.lines += ["dump_t dump;", "}"]

    def _observed(self) -> list[Place]:
        """What of the metadata is written into the last header."""
        places = [part for place in self.meta for part in flat(place)]
        return [*(place for place in places if _dumped_as(place.type).width), self.kept]

    # ---- Functions and controls ----

    def _parameters(self, most: int, *, directions: tuple[str, ...], headers: bool) -> tuple[Parameter, ...]:
        drawn = []
        for _ in range(self.c.below(most + 1)):
            direction = self.c.pick(directions)
            kind: Type = Bits(self.c.pick((8, 16, 1, 7, 33, 64, 65)))
            if direction and self.c.below(2):
                offered: list[Type] = [*self.kinds, Bits(draw_width(self.c) + 1, True), BOOL]
                kind = self.c.pick([*offered, *self.header_types] if headers else offered)
            drawn.append(Parameter(direction, kind, self.names.new("p")))
        return tuple(drawn)

    def _of_type(self, kind: Type, *directions: str) -> tuple[Parameter, ...]:
        return tuple(Parameter(direction, kind, self.names.new("p")) for direction in directions)

    def _inside(self, scope: Scope, parameters: tuple[Parameter, ...]) -> Lines:
        """What of the parameters is in scope; `out` ones are written first."""
        lines = []
        for parameter in parameters:
            writable = "out" in parameter.direction
            if isinstance(parameter.type, Header):
                header = HeaderPlace(parameter.name, parameter.type, writable=writable)
                scope.headers.append(header)
                scope.places += fields_of(header)
                continue
            if parameter.direction == "out":
                lines.append(f"{mark('direction out')}{parameter.name} = {literal(self.c, parameter.type)};")
            scope.places += flat(Place(parameter.name, parameter.type, writable))
        return lines

    def _function(self) -> None:
        c = self.c
        name = self.names.new("fn")
        parameters = self._parameters(4, directions=("in", "inout", "out"), headers=True)
        offered: list[Type] = [Bits(8), Bits(draw_width(c)), BOOL, VOID, Bits(c.pick((16, 32))), *self.kinds]
        result = c.pick(offered)
        changed, told = self._of_type(Bits(c.pick((8, 16))), "inout", "in")
        nests = bool(c.below(2))
        if nests:
            # It can be an argument of itself, beside what it changes: fn(x, fn(x, y)).
            result, parameters = changed.type, (changed, told, *parameters[:2])
        scope = Scope(functions=list(self.functions), result=result)
        lines = self._inside(scope, parameters)
        writer = Statements(c, scope, self.names, self.kinds)
        lines += writer.block()
        if nests:
            operator = c.pick(("+", "-", "^"))
            lines.append(f"{changed.name} = ({changed.name} {operator} {told.name}) + {literal(c, result)};")
            lines.append(f"return {writer.value(result, 2)} ^ {changed.name};")
        elif result != VOID:
            lines.append(f"return {writer.value(result, 2)};")
        overload = ""
        if self.functions and c.below(3) == 0:
            name, overload = self._overloaded(len(parameters), name)
        given = ", ".join(map(str, parameters))
        self.lines += [f"{mark('function')}{result} {name}({given}) {{", *lines, "}"]
        self.functions.append(Callee(name, parameters, result, overload))

    def _overloaded(self, count: int, own_name: str) -> tuple[str, str]:
        """The name of another function, and what tells the two apart: no parameters have one name."""
        name = self.c.pick(self.functions).name
        same = [each for each in self.functions if each.name == name]
        alike = [each for each in same if len(each.parameters) == count]
        if alike and not count:
            return own_name, ""
        for index, each in enumerate(self.functions):
            if each in alike:
                self.functions[index] = replace(each, overload="names")
            elif each in same and not each.overload:
                self.functions[index] = replace(each, overload="number")
        return name, "names" if alike else "number"

    def _sub_control(self) -> Callee:
        c = self.c
        name = self.names.new("Sub")
        parameters = self._parameters(4, directions=("inout", "in", "out"), headers=True)
        takes_number = bool(c.below(2))
        control = _Control()
        scope = control.scope
        scope.functions = list(self.functions)
        scope.can_exit = scope.can_return = True
        first = self._inside(scope, parameters)
        if takes_number:
            scope.places.append(Place("K", Bits(8), False))
        self._state(control, "ingress" if not self.replicates else "", outermost=False)
        self._locals(control)
        self._actions(control)
        self._tables(control, outermost=False)
        body = Statements(c, scope, self.names, self.kinds).block(percent=80)
        of_constructor = "(bit<8> K)" if takes_number else ""
        found = mark("control with a constructor parameter" if takes_number else "control")
        self.lines += [f"{found}control {name}({', '.join(map(str, parameters))}){of_constructor} {{", *control.lines]
        self.lines += ["apply {", *first, *body, "}", "}"]
        return Callee(name, parameters, Bits(8) if takes_number else VOID)

    def _state(self, control: _Control, pipeline: str, *, outermost: bool) -> None:
        """Registers, counters, meters. outermost: their cells are compared; elsewhere there are several of a name."""
        c, scope = self.c, control.scope
        if self._in_order(pipeline):
            for _ in range(c.below(3)):
                kind = Bits(draw_width(c))
                if c.below(4) == 0:
                    kind = Bits(kind.width + 1, True)
                register = Array(self.names.new("reg"), kind)
                control.lines.append(f"{mark('register')}register<{kind}>({register.size}) {register.name};")
                scope.registers.append(register)
                if outermost:
                    self.registers.append(register.name)
        if c.below(3) == 0:
            counter = Array(self.names.new("cnt"))
            kind_ = c.pick(("packets", "bytes", "packets_and_bytes"))
            control.lines.append(f"counter({counter.size}, CounterType.{kind_}) {counter.name};")
            scope.counters.append(counter)
            if outermost and kind_ == "packets_and_bytes":
                self.counters.append(counter.name)
        if c.below(3) == 0:
            meter = Array(self.names.new("mtr"))
            unit = c.pick(("packets", "bytes"))
            rated = outermost and self._in_order(pipeline) and c.below(4) > 0
            found = mark("meter with rates") if rated else ""
            control.lines.append(f"{found}meter({meter.size}, MeterType.{unit}) {meter.name};")
            scope.meters.append(meter)
            if rated:
                self.rates += [self._rates(meter.name, cell, unit) for cell in range(meter.size) if c.below(4)]
        scope.can_hash = True

    def _in_order(self, pipeline: str) -> bool:
        """Whether the order in which packets come by is the program's, and not the switch's choice."""
        return pipeline == "ingress" or bool(pipeline and not self.replicates)

    def _rates(self, meter: str, cell: int | str, unit: str) -> Rates:
        """Such as are exact in binary: a packet comes each millisecond, so some are green, some yellow, some red."""
        c, size = self.c, 64 if unit == "bytes" else 1
        committed, peak = (c.pick((2, 1, 3, 0)) * size / 4096 for _ in range(2))
        bursts = [c.below(4) * size + c.below(size) for _ in range(2)]
        return Rates(meter, cell, (committed, bursts[0]), (committed + peak, bursts[0] + bursts[1]))

    def _locals(self, control: _Control) -> None:
        writer = Statements(self.c, control.scope, self.names, self.kinds)
        for _ in range(self.c.below(4)):
            kind = writer.draw_type()
            name = self.names.new("x")
            control.lines.append(f"{kind} {name} = {literal(self.c, kind)};")
            control.scope.places += flat(Place(name, kind))
        if self.c.below(4) == 0:
            header = HeaderPlace(self.names.new("x"), self.c.pick(self.header_types))
            control.lines.append(f"{mark('local header')}{header.type} {header.text};")
            control.scope.headers.append(header)
            control.scope.places += fields_of(header)

    def _actions(self, control: _Control) -> None:
        c = self.c
        for _ in range(c.below(4)):
            with c.span():
                name = self.names.new("act")
                directed = c.below(2)
                parameters = self._parameters(
                    3, directions=("inout", "in", "out") if directed else ("",), headers=False
                )
                scope = control.scope.inner()
                scope.tables, scope.controls = [], []
                scope.pipeline = ""
                scope.actions = list(control.scope.actions)
                lines = self._inside(scope, parameters)
                lines += Statements(c, scope, self.names, self.kinds, nesting=1).block()
                found = mark("action with directions" if directed else "action")
                control.lines += [f"{found}action {name}({', '.join(map(str, parameters))}) {{", *lines, "}"]
                control.scope.actions.append(Callee(name, parameters))

    def _reading(self, control: _Control, meter: str, width: int) -> Callee:
        """An action that reads a direct meter; only a hit of the meter's table may run it."""
        c, name = self.c, self.names.new("act")
        parameters = self._parameters(2, directions=("",), headers=False)
        scope = control.scope.inner()
        scope.tables, scope.controls, scope.pipeline = [], [], ""
        scope.actions = list(control.scope.actions)
        lines = self._inside(scope, parameters)
        colour, kind = self.names.new("v"), Bits(width)
        held = [place for place in scope.of_type(kind) if place.writable and place.guard is None]
        read = c.pick(held).text if held and c.below(2) else colour
        if read == colour:
            lines.append(f"{kind} {colour} = 3;")
            scope.places.append(Place(colour, kind))
        lines.append(f"{mark('direct meter read')}{meter}.read({read});")
        writer = Statements(c, scope, self.names, self.kinds, nesting=1)
        lines += writer.told(read, kind)
        lines += writer.block(most=3)
        control.lines += [f"{mark('action')}action {name}({', '.join(map(str, parameters))}) {{", *lines, "}"]
        return Callee(name, parameters)

    def _tables(self, control: _Control, *, outermost: bool, pipeline: str = "") -> None:
        c, scope = self.c, control.scope
        made: list[TableUse] = []
        for _ in range(c.below(4)):
            with c.span():
                writer = TableWriter(c, scope, self.names, self.kinds)
                writer.calls = bool(c.below(2))
                extras: Lines = []
                counter = self.names.new("dc") if c.below(3) == 0 else ""
                if counter:
                    control.lines.append(f"direct_counter(CounterType.packets_and_bytes) {counter};")
                    extras.append(f"{mark('direct counter')}counters = {counter};")
                meter = self.names.new("dm") if c.below(4) == 0 else ""
                unit, width = c.pick(("packets", "bytes")), c.pick((8, 2, 16))
                hits: tuple[Callee, ...] = ()
                if meter:
                    control.lines.append(f"direct_meter<bit<{width}>>(MeterType.{unit}) {meter};")
                    extras.append(f"{mark('direct meter')}meters = {meter};")
                    hits = (self._reading(control, meter, width),)
                offered = ("action_profile", "action_selector", "action_selector")
                profile = c.pick(offered) if outermost and c.below(4) == 0 else None
                rated = bool(meter) and outermost and self._in_order(pipeline)
                table = writer.table(outermost, scope.actions, extras, profile, hits, rated)
                of_meter = [self._rates(meter, each.name, unit) for each in table.entries if rated and c.below(4)]
                if of_meter:
                    self.rates += of_meter
                    table.lines[-1] += mark("direct meter with rates")
                control.lines += table.lines
                if counter and outermost:
                    self.counted.append(table.use.name)
                made.append(table.use)
                self.entries += table.entries
                if table.default is not None:
                    self.defaults.append(table.default)
                if table.open is not None:
                    self.open_tables.append(table.open)
        scope.tables = made

    def _pipeline(self, name: str, kind: str, controls: list[Callee]) -> None:
        c = self.c
        control = _Control()
        scope = control.scope
        scope.functions = list(self.functions)
        scope.can_exit = scope.can_return = True
        scope.pipeline = kind
        scope.digests = list(self.digests) if kind == "ingress" else []
        scope.headers = [*self.headers, *self.varbits]
        for header in self.headers:
            scope.places += fields_of(header)
        scope.stacks, scope.unions = list(self.stacks), list(self.unions)
        for stack in self.stacks:
            for index in range(stack.size):
                element = HeaderPlace(f"{stack.text}[{index}]", stack.type)
                scope.headers.append(element)
                scope.places += fields_of(element)
        for union in self.unions:
            for member, of in union.members:
                # Writing a member as a whole is a statement of its own.
                inner = HeaderPlace(f"{union.text}.{member}", of, writable=False)
                scope.headers.append(inner)
                scope.places += [replace(place, writable=True) for place in fields_of(inner)]
        for place in self.meta:
            scope.places += flat(place)
        scope.places.append(self.kept)
        std = [("ingress_port", 9), ("instance_type", 32)]
        # In egress the length may count what ingress did to headers, as in BMv2, or not.
        std += [("egress_port", 9), ("egress_rid", 16)] if kind == "egress" else [("packet_length", 32)]
        scope.places += [Place(f"std.{field}", Bits(width), False) for field, width in std]
        self._state(control, kind, outermost=True)
        for each in controls:
            for _ in range(c.below(3)):
                instance = self.names.new("sub")
                number = str(c.below(256)) if each.result != VOID else ""
                control.lines.append(f"{mark('instance of a control')}{each.name}({number}) {instance};")
                scope.controls.append(Callee(instance, each.parameters))
        self._locals(control)
        self._actions(control)
        self._tables(control, outermost=True, pipeline=kind)
        writer = Statements(c, scope, self.names, self.kinds)
        body = []
        for _ in range(c.between(2, 10)):
            with c.span():
                body += writer.statement()
        # What the statements declare between themselves is no action's or table's to see: they come before.
        self.lines += [f"control {name}(inout headers_t h, inout meta_t meta, inout standard_metadata_t std) {{"]
        self.lines += [*control.lines, "apply {", "if (!h.first.isValid()) {", "mark_to_drop(std);", "exit;", "}"]
        if kind == "ingress":
            self.lines += self._begin_ingress(writer)
        else:
            self.lines += ["if (std.instance_type == 1 || std.instance_type == 2) {", *self._reset(), "}"]
        self.lines += body
        if kind == "egress":
            if c.below(4) == 0:
                self.lines.append(f"{mark('truncate')}truncate((bit<32>)({writer.value(Bits(7), 2)}) + 3);")
            self.lines += self._write_dump()
        self.lines += ["}", "}"]

    def _begin_ingress(self, writer: Statements) -> Lines:
        lines = ["if (std.instance_type == 0) {", f"{self.kept.text} = {literal(self.c, self.kept.type)};"]
        lines += ["meta.rounds = 0;", "}"]
        lines.append(f"std.egress_spec = {self.c.below(PORTS)};")
        if self.c.below(2):
            lines.append(f"{mark('checksum_error')}meta.m1 = meta.m1 + (bit<32>)std.checksum_error;")
        errors = (
            "PacketTooShort",
            "NoMatch",
            "StackOutOfBounds",
            "ParserInvalidArgument",
            "NoError",
            "HeaderTooShort",
        )
        if self.c.below(2):
            for number, each in enumerate(errors, 1):
                lines += [
                    f"if (std.parser_error == error.{each})",
                    "{",
                    f"{mark('parser_error')}meta.m1 = meta.m1 ^ {number << 8};",
                    "}",
                ]
        return lines

    def _reset(self) -> Lines:
        """A clone keeps of the metadata what the field list names; the rest is undefined."""
        return [f"{place.text} = {literal(self.c, place.type)};" for place in self.meta]

    def _write_dump(self) -> Lines:
        lines = ["h.dump.setValid();"]
        for name, place in self.dumped:
            lines.append(f"h.dump.{name} = {_as_bits(place)};")
        if self.dump.fields[-1][0] == "pad":
            lines.append("h.dump.pad = 0;")
        return lines

    # ---- Parser ----

    def _sub_parser(self) -> None:
        """It extracts one header, and then writes to what it was given."""
        c = self.c
        name, header = self.names.new("Part"), c.pick(self.header_types)
        kind = Bits(draw_width(c))
        scope = Scope(functions=list(self.functions))
        place = HeaderPlace("one", header, fixed=True)
        scope.places += [*fields_of(place), Place("note", kind)]
        writer = Statements(c, scope.inner(), self.names, self.kinds, nesting=3)
        numbers = [c.number(3) for _ in range(2)]
        self.lines += [
            f"{mark('sub-parser')}parser {name}(packet_in packet, out {header} one, inout {kind} note) {{",
            "state start {",
            "packet.extract(one);",
            *writer.block(),
            f"transition select({writer.value(Bits(3), 2)}) {{",
            f"{numbers[0]} : more;",
            "default : accept;",
            "}",
            "}",
            "state more {",
            *Statements(c, scope.inner(), self.names, self.kinds, nesting=3).block(),
            "transition accept;",
            "}",
            "}",
        ]
        self.parsers.append((name, header, kind))

    def _parser(self) -> None:
        c = self.c
        scope = Scope(functions=list(self.functions))
        scope.places += fields_of(self.headers[0])
        for place in self.meta:
            scope.places += flat(place)
        declared: Lines = []
        for _ in range(c.below(3)):
            kind = Statements(c, scope, self.names, self.kinds).draw_type()
            name = self.names.new("x")
            declared.append(f"{kind} {name} = {literal(c, kind)};")
            scope.places += flat(Place(name, kind))
        sets: list[tuple[str, int]] = []
        if c.below(3) == 0:
            name, width = self.names.new("vs"), c.pick((8, 3, 16))
            declared.append(f"{mark('value set')}value_set<bit<{width}>>(4) {name};")
            sets.append((name, width))
            self.value_sets[name] = tuple(dict.fromkeys(c.number(width) for _ in range(c.below(4))))
        steps: list[HeaderPlace | Stack | Union_] = [*self.headers[1:], *self.varbits, *self.stacks, *self.unions]
        parts = []
        for part, _header, _kind in self.parsers:
            instance = self.names.new("part")
            declared.append(f"{part}() {instance};")
            parts.append(instance)
        self.lines += [
            "parser P(packet_in packet, out headers_t h, inout meta_t meta, inout standard_metadata_t std) {",
            *declared,
            "state start {",
            *self._reset(),
            "packet.extract(h.first);",
        ]
        states = [f"step{number}" for number in range(len(steps))]
        order = list(range(len(steps)))
        writer = Statements(c, scope.inner(), self.names, self.kinds, nesting=3)
        with c.span():
            self.lines += writer.block(most=3)
            self.lines += self._transition(writer, states, sets)
        for number in order:
            with c.span():
                # What a state declares is no other state's.
                writer = Statements(c, scope.inner(), self.names, self.kinds, nesting=3)
                step = steps[number]
                later = states[number + 1 :]
                self.lines.append(f"state {states[number]} {{")
                self._step(writer, step, parts)
                if isinstance(step, HeaderPlace):
                    scope.headers.append(step)
                    scope.places += fields_of(step)
                # Round again until the stack is full, or the packet ends.
                back: dict[str, str] = {}
                if isinstance(step, Stack):
                    back[states[number]] = "parser loop over a stack"
                    if c.below(2):
                        back[f"{states[number]}_more"] = "parser loop over two states"
                elif isinstance(step, HeaderPlace) and not step.type.varbit and c.below(4) == 0:
                    back[states[number]] = "parser loop over a header"
                self.lines += writer.block(most=3)
                self.lines += self._transition(writer, later, sets, back)
                if len(back) == 2:
                    writer = Statements(c, scope.inner(), self.names, self.kinds, nesting=3)
                    self.lines.append(f"state {states[number]}_more {{")
                    if c.below(2):
                        self.lines.append(f"{mark('advance')}packet.advance({8 * c.between(1, 2)});")
                    self.lines += writer.block(most=3)
                    self.lines += self._transition(
                        writer, later, sets, {states[number]: "parser loop over two states"}
                    )
        self.lines.append("}")

    def _step(self, writer: Statements, step: HeaderPlace | Stack | Union_, parts: list[str]) -> None:
        c, scope = self.c, writer.scope
        if c.below(5) == 0:
            bits = 8 * c.between(1, 3)
            if c.below(2):
                self.lines.append(f"{mark('advance')}packet.advance({bits});")
            else:
                self.lines.append(
                    f"{mark('advance by a value')}packet.advance((bit<32>)({writer.value(Bits(2), 2)}) << 3);"
                )
        if c.below(5) == 0:
            name, kind = self.names.new("ahead"), Bits(8 * c.between(1, 4))
            self.lines.append(f"{mark('lookahead')}{kind} {name} = packet.lookahead<{kind}>();")
            target = [place for place in scope.scalars() if place.writable and place.guard is None]
            if target:
                place = c.pick(target)
                assert isinstance(place.type, Bits)
                self.lines.append(f"{place.text} = {writer.cast(name, kind, place.type)};")
        if c.below(5) == 0:
            error = c.pick(("NoMatch", "HeaderTooShort", "StackOutOfBounds"))
            self.lines.append(f"{mark('verify')}verify({writer.value(BOOL, 2)}, error.{error});")
        match step:
            case HeaderPlace() if step.type.varbit:
                self.lines.append(
                    f"{mark('extract of a varbit')}{mark('overload of an extern method')}packet.extract({step.text}, "
                    f"(bit<32>)({writer.value(Bits(4), 1)}) << 3);"
                )
            case HeaderPlace():
                notes = [
                    (instance, scope.of_type(kind))
                    for instance, (_, header, kind) in zip(parts, self.parsers, strict=True)
                    if header == step.type
                ]
                for instance, places in notes:
                    held = [place for place in places if place.writable and place.guard is None]
                    if held:
                        given = f"packet, {step.text}, {c.pick(held).text}"
                        self.lines.append(f"{mark('apply of a sub-parser')}{instance}.apply({given});")
                        break
                else:
                    self.lines.append(f"{mark('extract')}packet.extract({step.text});")
                scope.headers.append(step)
                scope.places += fields_of(step)
            case Stack():
                self.lines.append(f"{mark('extract of next')}packet.extract({step.text}.next);")
                if c.below(2):
                    target = [place for place in scope.scalars() if place.writable and place.guard is None]
                    field, kind = step.type.fields[0]
                    if target:
                        place = c.pick(target)
                        assert isinstance(place.type, Bits)
                        text = writer.cast(f"{step.text}.last.{field}", kind, place.type)
                        self.lines.append(f"{mark('last')}{place.text} = {text};")
                if c.below(3) == 0:
                    self.lines.append(f"{mark('lastIndex')}meta.m1 = meta.m1 + {step.text}.lastIndex;")
            case Union_():
                member = c.pick(step.members)[0]
                self.lines.append(f"{mark('extract of a union member')}packet.extract({step.text}.{member});")

    def _transition(
        self,
        writer: Statements,
        onward: list[str],
        sets: list[tuple[str, int]],
        back: Mapping[str, str] = MappingProxyType({}),
    ) -> Lines:
        """back: states that the parser has been in, with the loops that they make."""
        c = self.c
        later = [*onward, *back]
        if c.below(5) == 0 or not later:
            return [f"{mark('transition')}transition {onward[0] if onward else 'accept'};", "}"]
        widths = [c.pick((8, 2, 3, 1, 16, 33)) for _ in range(c.between(1, 2))]
        named = [each for each in sets if c.below(2)]
        if named:
            widths = [named[0][1]]
        keys = []
        for width in widths:
            if width % 8 == 0 and c.below(4) == 0:
                keys.append(f"{mark('select on lookahead')}packet.lookahead<bit<{width}>>()")
            elif width <= 8 and c.below(2):
                keys.append(f"h.first.way[{width - 1}:0]")
            else:
                keys.append(writer.value(Bits(width), 2))
        lines = [
            f"{mark('select' if len(keys) == 1 else 'select over a tuple')}transition select({', '.join(keys)}) {{"
        ]
        if named:
            target = c.pick(later)
            loop = mark(back[target]) if target in back else ""
            lines.append(f"{mark('value set in select')}{loop}{named[0][0]} : {target};")
        for _ in range(c.between(1, 4)):
            cases = [self._case(width) for width in widths]
            target = c.pick([*later, *later, "accept", "reject"])
            text = f"({', '.join(cases)})" if len(cases) > 1 else cases[0]
            if all(case == "_" for case in cases):
                continue
            found = (
                mark("transition to reject") if target == "reject" else mark(back[target]) if target in back else ""
            )
            lines.append(f"{found}{text} : {target};")
        if c.below(5):
            # Somewhere else than back: a parser has to have an end.
            lines.append(f"default : {c.pick([*onward, 'accept'])};")
        else:
            # Without a default, where nothing fits is a way out.
            lines.append(mark("select without a default"))
        return [*lines, "}", "}"]

    def _case(self, width: int) -> str:
        c = self.c
        value = c.number(width)
        match c.below(5):
            case 0:
                return f"{mark('mask in select')}{value:#x} &&& {c.number(width):#x}"
            case 1:
                low, high = sorted((value, c.number(width)))
                return f"{mark('range in select')}{low} .. {high}"
            case 2:
                return "_"
        return str(value)

    # ---- Checksums, deparser ----

    def _summed(self) -> str:
        """Fields of the first header but its sum, in whole bytes, and a number."""
        fields = [(name, kind) for name, kind in self.headers[0].type.fields if name != "sum"]
        return ", ".join([*(f"h.first.{name}" for name, _ in fields), *(["16w7"] if self.c.below(2) else [])])

    def _verify(self) -> None:
        c = self.c
        self.data = self._summed()
        self.algorithm = c.pick(("csum16", "crc16", "xor16"))
        self.payload = "_with_payload" if c.below(3) == 0 else ""
        self.checks = c.below(3)
        self.lines.append("control V(inout headers_t h, inout meta_t meta) { apply {")
        if self.checks:
            name = f"verify_checksum{self.payload}"
            given = f"h.first.isValid(), {{ {self.data} }}, h.first.sum, HashAlgorithm.{self.algorithm}"
            self.lines.append(f"{mark(name)}{name}({given});")
        self.lines.append("} }")

    def _compute(self) -> None:
        c = self.c
        self.lines.append("control C(inout headers_t h, inout meta_t meta) { apply {")
        if self.checks == 2 or c.below(3) == 0:
            size = sum(kind.width for name, kind in self.headers[0].type.fields if name != "sum")
            odd = "odd" if size % 16 else "even"
            asked = "h.first.isValid()" if c.below(2) else "h.first.isValid() && h.first.way > 3"
            found = mark(f"checksum of an {odd} number of bytes")
            name = f"update_checksum{self.payload}"
            given = f"{asked}, {{ {self.data} }}, h.first.sum, HashAlgorithm.{self.algorithm}"
            self.lines.append(f"{found}{mark(name)}{name}({given});")
        self.lines.append("} }")

    def _deparser(self) -> None:
        self.lines.append("control D(packet_out packet, in headers_t h) { apply {")
        if self.c.below(4) == 0:
            self.lines.append(f"{mark('emit of a struct')}packet.emit(h);")
        else:
            places = [header.text for header in (*self.headers, *self.varbits)]
            places += [stack.text for stack in self.stacks]
            places += [union.text for union in self.unions] + ["h.dump"]
            self.lines += [f"{mark('emit')}packet.emit({place});" for place in places]
        self.lines.append("} }")


def _dumped_as(kind: Type) -> Bits:
    """Width 0: not as a whole."""
    match kind:
        case Bits():
            return Bits(kind.width)
        case Enum(width=int(width)):
            return Bits(width)
        case Struct():
            return Bits(0)
    return Bits(1)


def _widths(kind: Type) -> tuple[int, ...]:
    """Of what is in a value; none where something in it has no width."""
    match kind:
        case Bits(width=width) | Enum(width=int(width)):
            return (width,)
        case Struct(fields=fields):
            parts = [_widths(of) for _, of in fields]
            return tuple(width for part in parts for width in part) if all(parts) else ()
        case Bool():
            return (1,)
    return ()


def _as_bits(place: Place) -> str:
    match place.type:
        case Bits(signed=False):
            return place.text
        case Bits(width=width) | Enum(width=int(width)):
            return f"(bit<{width}>){place.text}"
        case Enum(name=name, members=members):
            return f"(bit<1>)({place.text} == {name}.{members[0]})"
    return f"(bit<1>){place.text}"


def _indented(lines: Lines) -> Lines:
    depth, indented = 0, []
    for line in lines:
        opened, closed = line.count("{"), line.count("}")
        starts = line.startswith("}")
        indented.append("    " * max(0, depth - starts) + line)
        depth += opened - closed
    return indented
