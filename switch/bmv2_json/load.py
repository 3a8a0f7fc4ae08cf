"""The loader of BMv2 JSON. It raises MalformedProgram, with the path in the JSON, for anything that does not fit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from gradbed.switch.bmv2_json import expressions as ex
from gradbed.switch.bmv2_json import model as m
from gradbed.switch.bmv2_json.load_expressions import (
    NameTable,
    boolean,
    data,
    field,
    key_width,
    named,
    parameter,
    target_field,
)
from gradbed.switch.bmv2_json.load_pipelines import load_pipelines
from gradbed.switch.bmv2_json.reader import JsonNode, MalformedProgram

_CORE_ERRORS = (
    "NoError",
    "PacketTooShort",
    "NoMatch",
    "StackOutOfBounds",
    "HeaderTooShort",
    "ParserTimeout",
    "ParserInvalidArgument",
)
_MAX_FIELD_BITS = 1 << 16
_MAX_VARIABLE_BYTES = 1 << 16
_MAX_CELLS = 1 << 28
_Named = TypeVar("_Named")


def load_program(json: Mapping[str, Any]) -> m.ProgramModel:
    """Read and check a whole program."""
    try:
        return _Loader(JsonNode(dict(json))).load()
    except RecursionError:
        raise MalformedProgram("BMv2 JSON: expressions are nested too deeply") from None


def _unique(items: Iterable[tuple[JsonNode, str, _Named]], what: str) -> dict[str, _Named]:
    result: dict[str, _Named] = {}
    for node, name, value in items:
        if name in result:
            raise node.error(f"a second {what} named '{name[:80]}'")
        result[name] = value
    return result


class _Loader:
    def __init__(self, root: JsonNode) -> None:
        self.root = root
        self.names = NameTable()

    def load(self) -> m.ProgramModel:
        root, names = self.root, self.names
        if root.get("header_types") is None and root.get("pipelines") is None:
            raise MalformedProgram("no BMv2 JSON of a P4 program: it has neither header_types nor pipelines")

        def objects(key: str, what: str, read: Callable[[JsonNode], _Named]) -> dict[str, _Named]:
            return _unique(((n, n["name"].text(), read(n)) for n in root.list(key)), what)

        program = root.get("program")
        self._headers()
        names.registers = {n["name"].text() for n in root.list("register_arrays")}
        names.counters = {n["name"].text() for n in root.list("counter_arrays")}
        names.meters = {n["name"].text() for n in root.list("meter_arrays")}
        names.externs = {n["name"].text() for n in root.list("extern_instances")}
        calculations = objects("calculations", "calculation", self._calculation)
        names.calculations = set(calculations)
        value_sets = objects("parse_vsets", "value set", self._value_set)
        actions = self._actions()
        pipelines, profiles = load_pipelines(root, names, actions)
        deparser, deparser_primitives = self._deparser()
        return m.ProgramModel(
            name=program.text() if program else "program",
            headers=names.headers,
            stacks=names.stacks,
            unions=names.unions,
            union_stacks=names.union_stacks,
            aliases=self._aliases(),
            errors=self._errors(),
            parser=self._parser(value_sets),
            deparser=deparser,
            deparser_primitives=deparser_primitives,
            actions=actions,
            pipelines=pipelines,
            calculations=calculations,
            checksums=tuple(self._checksum(n) for n in root.list("checksums")),
            registers=objects("register_arrays", "register array", self._register),
            counters=objects("counter_arrays", "counter array", self._counter),
            meters=objects("meter_arrays", "meter array", self._meter),
            value_sets=value_sets,
            profiles=profiles,
            externs=objects("extern_instances", "extern instance", self._extern),
            digests={n["id"].integer(): self._digest(n) for n in root.list("learn_lists")},
            field_lists={n["id"].integer(): self._field_list(n) for n in root.list("field_lists")},
        )

    # ---- Headers ----

    def _headers(self) -> None:
        root, names = self.root, self.names
        for node in root.list("header_types"):
            names.types[node["name"].text()] = self._header_type(node)
        by_id: dict[int, str] = {}
        for node in root.list("headers"):
            header = m.HeaderInstance(
                node["name"].text(),
                node["id"].integer(),
                names.types[named(node["header_type"], "header type", names.types)],
                node["metadata"].boolean(),
            )
            if header.name in names.headers or header.id in by_id:
                raise node.error(f"a second header '{header.name[:80]}' or id {header.id}")
            if not header.metadata and header.type.fixed_bits % 8:
                raise node.error(f"header '{header.name[:80]}' is not a whole number of bytes")
            names.headers[header.name] = header
            by_id[header.id] = header.name
        placed: set[str] = set()
        for node in root.list("header_stacks"):
            elements = self._elements(node, "header_ids", by_id, placed)
            types = {names.headers[e].type for e in elements}
            if len(types) != 1 or any(names.headers[e].metadata for e in elements):
                raise node.error("a header stack is made of headers of one type")
            names.stacks[node["name"].text()] = m.StackInstance(node["name"].text(), elements)
        self._unions(by_id, placed)

    def _unions(self, by_id: dict[int, str], placed: set[str]) -> None:
        root, names = self.root, self.names
        member_names = {
            node["name"].text(): tuple(pair.pair()[0].text() for pair in node.list("headers"))
            for node in root.list("header_union_types")
        }
        union_by_id: dict[int, str] = {}
        for node in root.list("header_unions"):
            union_type = named(node["union_type"], "header union type", member_names)
            members = self._elements(node, "header_ids", by_id, placed)
            if len(members) != len(member_names[union_type]) or any(names.headers[e].metadata for e in members):
                raise node.error("the union's headers do not fit its type")
            name = node["name"].text()
            names.unions[name] = m.UnionInstance(name, members, member_names[union_type])
            union_by_id[node["id"].integer()] = name
        placed_unions: set[str] = set()
        for node in root.list("header_union_stacks"):
            unions = self._elements(node, "header_union_ids", union_by_id, placed_unions)
            shapes = {tuple(names.headers[h].type for h in names.unions[u].members) for u in unions}
            if len(shapes) != 1:
                raise node.error("a stack of header unions is made of unions of one type")
            name = node["name"].text()
            if name in names.stacks:
                raise node.error(f"a second stack named '{name[:80]}'")
            names.union_stacks[name] = m.StackInstance(name, unions)

    @staticmethod
    def _elements(node: JsonNode, key: str, by_id: dict[int, str], placed: set[str]) -> tuple[str, ...]:
        elements = []
        for item in node.list(key):
            name = by_id.get(item.integer())
            if name is None or name in placed:
                raise item.error(f"id {item.integer()} is unknown or used twice")
            placed.add(name)
            elements.append(name)
        if not elements:
            raise node.error(f"'{key}' is empty")
        return tuple(elements)

    def _header_type(self, node: JsonNode) -> m.HeaderType:
        name = node["name"].text()
        max_length = node.get("max_length")
        max_length_bytes = max_length.integer(0, _MAX_VARIABLE_BYTES) if max_length else 0
        fields: list[m.FieldType] = []
        for item in node.list("fields"):
            parts = list(item)
            if len(parts) < 2:
                raise item.error("expected [name, bits, signed]")
            # p4c writes 0 and 1 for the flags of Boolean fields.
            flags = [bool(part.value) if part.value in (0, 1, None) else part.boolean() for part in parts[2:4]]
            signed, saturating = flags[:1] == [True], flags[1:2] == [True]
            variable = parts[1].value == "*"
            width = 0 if variable else parts[1].integer(0, _MAX_FIELD_BITS)
            fields.append(m.FieldType(parts[0].text(), width, signed, saturating, variable))
        variables = [i for i, f in enumerate(fields) if f.variable]
        if len(variables) > 1 or (variables and not max_length_bytes):
            raise node.error("at most one variable-length field, with 'max_length'")
        if variables:
            fixed_bits = sum(f.width for f in fields)
            at = variables[0]
            room = max_length_bytes * 8 - fixed_bits
            if room < 0 or room % 8:
                raise node.error("'max_length' does not fit the fixed fields")
            fields[at] = m.FieldType(fields[at].name, room, variable=True)
        return m.HeaderType(name, tuple(fields), max_length_bytes)

    def _aliases(self) -> dict[str, ex.FieldReference]:
        aliases: dict[str, ex.FieldReference] = {}
        for node in self.root.list("field_aliases"):
            alias, target = node.pair()
            aliases[alias.text()] = target_field(self.names, target)
        return aliases

    def _errors(self) -> dict[str, int]:
        errors = {}
        for node in self.root.list("errors"):
            name, value = node.pair()
            errors[name.text()] = value.integer()
        for core in _CORE_ERRORS:
            if core not in errors:
                errors[core] = max(errors.values(), default=-1) + 1
        return errors

    # ---- Parser ----

    def _parser(self, value_sets: Mapping[str, m.ValueSet]) -> m.Parser:
        parsers = self.root.list("parsers")
        if not parsers:
            return m.Parser(None, {})
        node = next((p for p in parsers if p["name"].text() == "parser"), parsers[0])
        names = {s["name"].text() for s in node.list("parse_states")}
        states = {s["name"].text(): self._state(s, names, value_sets) for s in node.list("parse_states")}
        initial = node.get("init_state")
        return m.Parser(named(initial, "parser state", names) if initial else None, states)

    def _state(self, node: JsonNode, states: set[str], value_sets: Mapping[str, m.ValueSet]) -> m.ParseState:
        key: list[ex.Data] = []
        widths: list[int] = []
        for item in node.list("transition_key"):
            value = data(self.names, item)
            key.append(value)
            widths.append(key_width(self.names, item, value))
        transitions = []
        for item in node.list("transitions"):
            target = item.get("next_state")
            next_state = named(target, "parser state", states) if target else None
            transition = self._transition(item, next_state, widths, value_sets)
            if transition is not None:
                transitions.append(transition)
        operations = node.list("parser_ops")
        return m.ParseState(
            node["name"].text(),
            tuple(self._operation(item) for item in operations),
            tuple(key),
            tuple(widths),
            tuple(transitions),
            tuple(_operation_source(item) for item in operations),
            node.source(),
        )

    def _transition(
        self, node: JsonNode, next_state: str | None, widths: list[int], value_sets: Mapping[str, m.ValueSet]
    ) -> m.StateTransition | None:
        kind_node = node.get("type")
        value_node, mask_node = node.get("value"), node.get("mask")
        kind = kind_node.text() if kind_node else ("default" if value_node is None else "hexstr")
        if kind == "default":
            return m.StateTransition(next_state, source=node.source())
        if kind not in ("hexstr", "parse_vset"):
            raise node.error(f"transition type '{kind[:40]}' is not supported")
        padded_bits = sum((w + 7) // 8 * 8 for w in widths)
        padded_mask = mask_node.hexadecimal() if mask_node else (1 << padded_bits) - 1
        mask, _ = _without_padding(padded_mask, widths)
        if kind == "parse_vset":
            name = named(node["value"], "value set", value_sets)
            if value_sets[name].width != sum(widths):
                raise node.error(f"value set '{name}' is not as wide as the transition key")
            return m.StateTransition(next_state, None, mask if mask_node else None, name, node.source())
        value, fits = _without_padding(node["value"].hexadecimal() & padded_mask, widths)
        # A value with bits that no field has can never be met.
        return m.StateTransition(next_state, value & mask, mask, source=node.source()) if fits else None

    def _operation(self, node: JsonNode) -> m.ParserOperation:
        op = node["op"].text()
        parameters = node.list("parameters")
        wanted = {"extract": 1, "extract_VL": 2, "set": 2, "verify": 2, "shift": 1, "advance": 1, "primitive": 1}
        if op not in wanted:
            raise node.error(f"parser operation '{op[:40]}' is not supported")
        if len(parameters) != wanted[op]:
            raise node.error(f"'{op}' takes {wanted[op]} parameters, got {len(parameters)}")
        if op == "extract":
            return m.Extract(self._extracted(parameters[0]))
        if op == "extract_VL":
            header = self._extracted(parameters[0])
            if self.names.header_type(header).variable_field is None:
                raise node.error("extract_VL into a header without a variable-length field")
            return m.Extract(header, data(self.names, parameters[1]))
        if op == "set":
            target = data(self.names, parameters[0])
            if not isinstance(target, ex.FieldReference):
                raise parameters[0].error("this field cannot be written")
            return m.Assign(target, data(self.names, parameters[1]))
        if op == "verify":
            return m.Verify(boolean(self.names, parameters[0]), data(self.names, parameters[1]))
        if op == "shift":
            shifted = parameters[0]
            amount = shifted["value"] if isinstance(shifted.value, dict) else shifted
            return m.Advance(ex.Constant(8 * amount.integer()))
        if op == "advance":
            return m.Advance(data(self.names, parameters[0]))
        return self._primitive(parameters[0])

    def _extracted(self, node: JsonNode) -> ex.HeaderReference:
        kind, value = node["type"].text(), node["value"]
        if kind == "regular":
            name = named(value, "header", self.names.headers)
            if self.names.headers[name].metadata:
                raise value.error("metadata cannot be extracted")
            return ex.NamedHeader(name)
        if kind == "stack":
            return ex.StackElement(named(value, "header stack", self.names.stacks), None)
        if kind == "union_stack":
            stack, member = value.pair()
            union = ex.UnionStackElement(named(stack, "header union stack", self.names.union_stacks), None)
            members = self.names.union(union).member_names
            if member.text() not in members:
                raise member.error(f"no member '{member.text()[:80]}' in the union")
            return ex.UnionMember(union, members.index(member.text()))
        raise node.error(f"cannot extract into '{kind[:40]}'")

    def _deparser(self) -> tuple[tuple[str, ...], tuple[m.Primitive, ...]]:
        deparsers = self.root.list("deparsers")
        if not deparsers:
            return (), ()
        node = next((d for d in deparsers if d["name"].text() == "deparser"), deparsers[0])
        order = tuple(named(item, "header", self.names.headers) for item in node.list("order"))
        if any(self.names.headers[name].metadata for name in order):
            raise node.error("metadata cannot be deparsed")
        return order, tuple(self._primitive(item) for item in node.list("primitives"))

    # ---- Actions and calculations ----

    def _actions(self) -> dict[int, m.Action]:
        actions: dict[int, m.Action] = {}
        for node in self.root.list("actions"):
            identifier = node["id"].integer()
            if identifier in actions:
                raise node.error(f"a second action with id {identifier}")
            parameters = tuple(
                m.ActionParameter(p["name"].text(), p["bitwidth"].integer(1, _MAX_FIELD_BITS))
                for p in node.list("runtime_data")
            )
            primitives = tuple(self._primitive(p) for p in node.list("primitives"))
            actions[identifier] = m.Action(node["name"].text(), identifier, parameters, primitives, node.source())
        return actions

    def _primitive(self, node: JsonNode) -> m.Primitive:
        parameters = tuple(parameter(self.names, item) for item in node.list("parameters"))
        return m.Primitive(node["op"].text(), parameters, node.source())

    def _calculation(self, node: JsonNode) -> m.CalculationDefinition:
        inputs = []
        with_payload = False
        for item in node.list("input"):
            kind = item["type"].text()
            if kind == "field":
                value = field(self.names, item["value"])
                if isinstance(value, ex.FieldReference):
                    inputs.append(m.CalculationInput(field=value))
                    continue
                raise item.error("a header's validity cannot be part of a calculation")
            if kind == "hexstr":
                width = item["bitwidth"].integer(1, _MAX_FIELD_BITS)
                inputs.append(m.CalculationInput(constant=item["value"].hexadecimal() % (1 << width), width=width))
            elif kind == "header":
                inputs.append(m.CalculationInput(header=named(item["value"], "header", self.names.headers)))
            elif kind == "payload":
                with_payload = True
            else:
                raise item.error(f"calculation input '{kind[:40]}' is not supported")
        return m.CalculationDefinition(node["name"].text(), node["algo"].text(), tuple(inputs), with_payload)

    @staticmethod
    def _extern(node: JsonNode) -> m.Extern:
        attributes = {n["name"].text(): n["value"].hexadecimal() for n in node.list("attribute_values")}
        return m.Extern(node["name"].text(), node["type"].text(), attributes)

    def _checksum(self, node: JsonNode) -> m.Checksum:
        verify, update, condition = node.get("verify"), node.get("update"), node.get("if_cond")
        return m.Checksum(
            node["name"].text(),
            target_field(self.names, node["target"]),
            named(node["calculation"], "calculation", self.names.calculations),
            boolean(self.names, condition) if condition else None,
            verify.boolean() if verify else True,
            update.boolean() if update else True,
            node.source(),
        )

    # ---- State ----

    def _value_set(self, node: JsonNode) -> m.ValueSet:
        return m.ValueSet(node["name"].text(), node["compressed_bitwidth"].integer(1, 4096))

    def _register(self, node: JsonNode) -> m.Register:
        return m.Register(
            node["name"].text(), node["bitwidth"].integer(1, _MAX_FIELD_BITS), node["size"].integer(0, _MAX_CELLS)
        )

    def _counter(self, node: JsonNode) -> m.Counter:
        if node["is_direct"].boolean():
            return m.Counter(node["name"].text(), 0, node["binding"].text())
        return m.Counter(node["name"].text(), node["size"].integer(0, _MAX_CELLS))

    def _meter(self, node: JsonNode) -> m.Meter:
        unit = node["type"].text()
        if unit not in ("packets", "bytes"):
            raise node["type"].error("a meter counts packets or bytes")
        if node["is_direct"].boolean():
            target = target_field(self.names, node["result_target"])
            return m.Meter(node["name"].text(), unit, 0, node["binding"].text(), target)
        return m.Meter(node["name"].text(), unit, node["size"].integer(0, _MAX_CELLS))

    def _digest(self, node: JsonNode) -> m.DigestList:
        elements = tuple(data(self.names, item) for item in node.list("elements"))
        return m.DigestList(node["id"].integer(), node["name"].text(), elements)

    def _field_list(self, node: JsonNode) -> m.FieldList:
        fields: list[ex.FieldReference] = []
        for item in node.list("elements"):
            value = parameter(self.names, item)
            if isinstance(value, ex.FieldReference):
                fields.append(value)
            elif isinstance(value, ex.NamedHeader):
                header = self.names.headers[value.name]
                fields.extend(ex.FieldReference(value, i) for i in range(len(header.type.fields)))
            else:
                raise item.error("a field list is made of fields and headers")
        return m.FieldList(node["id"].integer(), tuple(fields))


def _operation_source(node: JsonNode) -> m.Source | None:
    """Return the source of an operation, or of the primitive that it is."""
    return node.source() or (node.list("parameters")[0].source() if node["op"].value == "primitive" else None)


def _without_padding(padded: int, widths: list[int]) -> tuple[int, bool]:
    """Join byte-padded fields without their padding; return the value, and whether the padding was zero."""
    value, rest, fits, shift = 0, padded, padded >= 0, 0
    for width in reversed(widths):
        padded_width = (width + 7) // 8 * 8
        part = rest & ((1 << padded_width) - 1)
        fits = fits and part >> width == 0
        value |= (part & ((1 << width) - 1)) << shift
        rest >>= padded_width
        shift += width
    return value, fits and rest == 0
