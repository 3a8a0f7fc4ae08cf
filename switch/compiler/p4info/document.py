"""The P4Info message, section by section."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from finsy.proto import p4i

from gradbed.switch.compiler import ir
from gradbed.switch.compiler import syntax as s
from gradbed.switch.compiler import types as t
from gradbed.switch.compiler.diagnostics import Reporter
from gradbed.switch.compiler.ir import DEFAULT_SIZE, LoweredAction, LoweredKey, LoweredProgram, LoweredTable
from gradbed.switch.compiler.ir.values import ExternObject
from gradbed.switch.compiler.p4info.preamble import (
    add_annotations,
    add_documentation,
    assign_ids,
    explicit_id,
    fill_preamble,
    number_in,
    shortest_suffixes,
    values_in,
)
from gradbed.switch.compiler.p4info.type_info import TypeInfo, control_width, padded_bytes
from gradbed.switch.state.externs import EXTERNS

_MATCH_TYPES = {
    "exact": p4i.MatchField.EXACT,
    "lpm": p4i.MatchField.LPM,
    "ternary": p4i.MatchField.TERNARY,
    "range": p4i.MatchField.RANGE,
    "optional": p4i.MatchField.OPTIONAL,
}
_COUNTER_UNITS = {
    "packets": p4i.CounterSpec.PACKETS,
    "bytes": p4i.CounterSpec.BYTES,
    "packets_and_bytes": p4i.CounterSpec.BOTH,
}
_METER_UNITS = {"packets": p4i.MeterSpec.PACKETS, "bytes": p4i.MeterSpec.BYTES}
# Fields of their own say what these do.
_OF_PROFILES = ("max_group_size", "selector_size_semantics", "max_member_weight")
_PROFILES = ("action_profile", "action_selector")

Named = tuple[str, Sequence[s.Annotation], int]


def emit_p4info(program: LoweredProgram, reporter: Reporter) -> Any:
    """Return the p4.config.v1.P4Info message of a program."""
    return _Emitter(program, reporter).emit()


def _hidden(annotations: Sequence[s.Annotation]) -> bool:
    return any(annotation.name == "hidden" for annotation in annotations)


class _Emitter:
    """Builds the message, section by section."""

    def __init__(self, program: LoweredProgram, reporter: Reporter) -> None:
        self._program = program
        self._reporter = reporter
        self._message = p4i.P4Info()
        self._order = _source_order(program)
        self._types = TypeInfo(self._message.type_info, program.checked.errors)
        self._tables = sorted(
            (table for table in program.tables if not _hidden(table.node.annotations)),
            key=lambda table: (self._order[table.node], table.name),
        )
        self._actions = self._visible_actions()
        self._headers = self._controller_headers()
        self._ids: dict[str, dict[str, int]] = {}
        named = self._named()
        for kind, objects in named.items():
            self._ids[kind] = assign_ids(kind, objects, reporter)
        self._aliases = shortest_suffixes(name for objects in named.values() for name, _, _ in objects)

    def _visible_actions(self) -> list[LoweredAction]:
        """Return the actions of tables and those that are called, one for each name.

        The copies of an action for single tables share its name.
        """
        by_name: dict[str, LoweredAction] = {}
        for action in [*self._program.actions, *self._program.called_actions]:
            if _hidden(action.node.annotations):
                continue
            first = by_name.setdefault(action.name, action)
            if first.node is not action.node:
                self._report_duplicate(first, action)
        return sorted(by_name.values(), key=lambda action: (self._order[action.node], action.name))

    def _report_duplicate(self, first: LoweredAction, second: LoweredAction) -> None:
        """Report two actions of one name: an error in one table; elsewhere only newer versions of p4c object."""
        message = f"the controller knows another action as '{first.name}', too: give one of them another @name"
        start = second.node.name_loc
        for table in self._program.tables:
            if {first.node, second.node} <= {item.action.node for item in table.actions}:
                self._reporter.error(start, message)
                return
        self._reporter.warning(start, message, start + len(second.node.name), category="duplicate")

    def _controller_headers(self) -> list[tuple[str, t.Struct]]:
        result: list[tuple[str, t.Struct]] = []
        for symbol in self._program.checked.globals.names.values():
            if symbol.kind == "type" and isinstance(symbol.type, t.Struct) and symbol.type.is_header:
                annotation = s.find_annotation(symbol.type.node.annotations, "controller_header")
                name = annotation.string() if annotation is not None else None
                if name is not None and not _hidden(symbol.type.node.annotations):
                    result.append((name, symbol.type))
        return result

    def _objects(self, *kinds: str) -> list[ExternObject]:
        found = [item for item in self._program.objects if item.kind in kinds and not _hidden(item.node.annotations)]
        if kinds[0].startswith("direct"):
            visible = {table.name for table in self._tables}
            direct = self._program.direct_tables
            found = [item for item in found if item.name in direct and direct[item.name].name in visible]
        return found

    def _named(self) -> dict[str, list[Named]]:
        def objects(*kinds: str) -> list[Named]:
            return [(item.name, item.node.annotations, item.node.loc) for item in self._objects(*kinds)]

        return {
            "table": [(item.name, item.node.annotations, item.node.loc) for item in self._tables],
            "action": [(item.name, item.node.annotations, item.node.loc) for item in self._actions],
            "value_set": [(item.name, item.node.annotations, item.node.loc) for item in self._program.value_sets],
            # Identified by the type's name, known by the annotation's (as p4c does it).
            "controller_header": [(type_.name, type_.node.annotations, type_.node.loc) for _, type_ in self._headers],
            "action_profile": objects(*_PROFILES),
            "counter": objects("counter"),
            "direct_counter": objects("direct_counter"),
            "meter": objects("meter"),
            "direct_meter": objects("direct_meter"),
            "register": objects("register"),
            **{name: objects(name) for name in EXTERNS},
            "digest": [
                (item.name, item.type.node.annotations if isinstance(item.type, t.Struct) else [], item.loc)
                for item in self._program.digests
            ],
        }

    def emit(self) -> Any:
        self._package()
        for table in self._tables:
            self._table(table)
        for action in self._actions:
            self._action(action)
        for item in self._objects(*_PROFILES):
            self._profile(item)
        for item in self._objects("counter"):
            self._counter(item, self._message.counters, "counter")
        for item in self._objects("direct_counter"):
            self._counter(item, self._message.direct_counters, "direct_counter")
        for item in self._objects("meter"):
            self._meter(item, self._message.meters, "meter")
        for item in self._objects("direct_meter"):
            self._meter(item, self._message.direct_meters, "direct_meter")
        for name, type_ in self._headers:
            self._controller_header(name, type_)
        self._value_sets()
        for item in self._objects("register"):
            register = self._message.registers.add()
            self._preamble(register, "register", item.name, item.node.annotations)
            self._types.add(item.type.arguments[0])
            register.type_spec.CopyFrom(self._types.spec(item.type.arguments[0]))
            register.size = _number(item.arguments["size"])
        self._digests()
        self._externs()
        return self._message

    def _preamble(self, message: Any, kind: str, name: str, annotations: Sequence[s.Annotation]) -> None:
        fill_preamble(message.preamble, self._ids[kind][name], name, self._aliases[name], annotations)

    def _package(self) -> None:
        main = self._program.checked.main
        package = self._message.pkg_info
        package.arch = "v1model"
        annotations = main.annotations if main is not None else []
        for name, value in values_in(annotations, "pkginfo").items():
            if name in ("name", "version", "organization", "contact", "url"):
                setattr(package, name, s.unquote(value))
        for name, value in values_in(annotations, "platform_property").items():
            if name in package.platform_properties.DESCRIPTOR.fields_by_name and value.isdecimal():
                setattr(package.platform_properties, name, int(value))
        add_documentation(package, annotations)
        elsewhere = ("name", "id", "brief", "description", "pkginfo", "platform_property")
        add_annotations(package, annotations, frozenset(elsewhere))

    def _table(self, table: LoweredTable) -> None:
        node = table.node
        message = self._message.tables.add()
        self._preamble(message, "table", table.name, node.annotations)
        self._message.type_info.SetInParent()
        for position, key in enumerate(table.keys):
            self._match_field(message.match_fields.add(), key, position + 1)
        for item in table.actions:
            if item.action.name not in self._ids["action"]:
                continue
            ref = message.action_refs.add(id=self._ids["action"][item.action.name])
            add_annotations(ref, item.annotations)
            names = {annotation.name for annotation in item.annotations}
            if "tableonly" in names:
                ref.scope = p4i.ActionRef.TABLE_ONLY
            elif "defaultonly" in names:
                ref.scope = p4i.ActionRef.DEFAULT_ONLY
        if table.default_const and table.default_action is not None:
            message.const_default_action_id = self._ids["action"].get(table.default_action.name, 0)
        self._initial_default(message, table)
        if table.implementation is not None:
            message.implementation_id = self._ids["action_profile"].get(table.implementation.name, 0)
        for kind, direct in (("direct_counter", table.counters), ("direct_meter", table.meters)):
            if direct is not None and direct.name in self._ids[kind]:
                message.direct_resource_ids.append(self._ids[kind][direct.name])
        message.size = table.size or DEFAULT_SIZE
        if table.support_timeout:
            message.idle_timeout_behavior = p4i.Table.NOTIFY_CONTROL
        message.is_const_table = node.entries_const
        message.has_initial_entries = bool(table.entries)

    def _initial_default(self, message: Any, table: LoweredTable) -> None:
        action = table.default_action
        if action is None or action.name not in self._ids["action"]:
            return
        initial = message.initial_default_action
        initial.action_id = self._ids["action"][action.name]
        for position, (parameter, value) in enumerate(zip(action.parameters, table.default_data, strict=True)):
            number = explicit_id(parameter.annotations) or position + 1
            initial.arguments.add(param_id=number, value=padded_bytes(value, parameter.type))

    def _match_field(self, message: Any, key: LoweredKey, number: int) -> None:
        message.id = explicit_id(key.annotations) or number
        message.name = key.name
        add_annotations(message, key.annotations)
        add_documentation(message, key.annotations)
        message.bitwidth = control_width(key.type)
        message.match_type = _MATCH_TYPES.get(key.match_kind, p4i.MatchField.UNSPECIFIED)
        self._named_type(message, key.type)

    def _named_type(self, message: Any, type_: t.Type) -> None:
        if isinstance(type_, t.NewType):
            message.type_name.name = type_.name
        self._types.add(type_)

    def _action(self, action: LoweredAction) -> None:
        message = self._message.actions.add()
        self._preamble(message, "action", action.name, action.node.annotations)
        for position, parameter in enumerate(action.parameters):
            item = message.params.add()
            item.id = explicit_id(parameter.annotations) or position + 1
            item.name = parameter.name
            add_annotations(item, parameter.annotations)
            add_documentation(item, parameter.annotations)
            item.bitwidth = control_width(parameter.type)
            self._named_type(item, parameter.type)

    def _profile(self, item: ExternObject) -> None:
        message = self._message.action_profiles.add()
        given = [one for one in item.node.annotations if one.name not in _OF_PROFILES]
        self._preamble(message, "action_profile", item.name, given)
        users = sorted(table.name for table in self._tables if table.implementation is item)
        message.table_ids.extend(self._ids["table"][name] for name in users)
        message.with_selector = item.kind == "action_selector"
        message.size = _number(item.arguments["size"])
        if not message.with_selector:
            return
        message.max_group_size = number_in(item.node.annotations, "max_group_size")
        semantics = s.find_annotation(item.node.annotations, "selector_size_semantics")
        text = (semantics.string() or "").lower() if semantics is not None else ""
        if text == "sum_of_members":
            message.sum_of_members.SetInParent()
            message.sum_of_members.max_member_weight = number_in(item.node.annotations, "max_member_weight")
        elif text == "sum_of_weights":
            message.sum_of_weights.SetInParent()

    def _counter(self, item: ExternObject, section: Any, kind: str) -> None:
        message = section.add()
        self._preamble(message, kind, item.name, item.node.annotations)
        message.spec.unit = _COUNTER_UNITS.get(_member(item.arguments["type"]), p4i.CounterSpec.BOTH)
        self._array_or_direct(message, item)

    def _meter(self, item: ExternObject, section: Any, kind: str) -> None:
        message = section.add()
        self._preamble(message, kind, item.name, item.node.annotations)
        message.spec.unit = _METER_UNITS.get(_member(item.arguments["type"]), p4i.MeterSpec.PACKETS)
        self._array_or_direct(message, item)

    def _array_or_direct(self, message: Any, item: ExternObject) -> None:
        if item.kind.startswith("direct"):
            message.direct_table_id = self._ids["table"][self._program.direct_tables[item.name].name]
            return
        message.size = _number(item.arguments["size"])
        index = item.type.arguments[0] if item.type.arguments else None
        if isinstance(index, t.NewType):
            message.index_type_name.name = index.name
            self._types.add(index)

    def _controller_header(self, name: str, type_: t.Struct) -> None:
        message = self._message.controller_packet_metadata.add()
        number = self._ids["controller_header"][type_.name]
        fill_preamble(message.preamble, number, name, name, type_.node.annotations)
        for number, (field, inner, given) in enumerate(_visible_fields(type_), 1):
            item = message.metadata.add(id=explicit_id(given) or number, name=field)
            add_annotations(item, given)
            item.bitwidth = control_width(inner)
            self._named_type(item, inner)

    def _value_sets(self) -> None:
        for item in self._program.value_sets:
            message = self._message.value_sets.add()
            self._preamble(message, "value_set", item.name, item.node.annotations)
            if isinstance(item.type, t.Struct):
                for position, (name, inner) in enumerate(item.type.fields.items()):
                    annotations = item.type.annotations[name]
                    match = message.match.add(id=explicit_id(annotations) or position + 1, name=name)
                    match.bitwidth = control_width(inner)
                    kind = s.find_annotation(annotations, "match")
                    word = kind.body[0] if kind is not None and kind.body else "exact"
                    match.match_type = _MATCH_TYPES.get(word, p4i.MatchField.EXACT)
            else:
                message.match.add(id=1, bitwidth=control_width(item.type), match_type=p4i.MatchField.EXACT)
            message.size = item.size

    def _digests(self) -> None:
        seen: set[str] = set()
        for item in self._program.digests:
            if item.name in seen:
                continue
            seen.add(item.name)
            message = self._message.digests.add()
            annotations = item.type.node.annotations if isinstance(item.type, t.Struct) else []
            self._preamble(message, "digest", item.name, annotations)
            self._types.add(item.type)
            message.type_spec.CopyFrom(self._types.spec(item.type))

    def _externs(self) -> None:
        for kind in EXTERNS.values():
            found = self._objects(kind.name)
            if found:
                message = self._message.externs.add(extern_type_id=kind.type_id, extern_type_name=kind.name)
                for item in found:
                    self._preamble(message.instances.add(), kind.name, item.name, item.node.annotations)


def _visible_fields(type_: t.Struct) -> Iterator[tuple[str, t.Type, Sequence[s.Annotation]]]:
    """Yield name, type and annotations of fields that are not hidden, with nested names as outer.inner."""
    for name, inner in type_.fields.items():
        if _hidden(type_.annotations[name]):
            continue
        if isinstance(inner, t.Struct):
            yield from ((f"{name}.{field}", of, given) for field, of, given in _visible_fields(inner))
        else:
            yield name, inner, type_.annotations[name]


def _source_order(program: LoweredProgram) -> dict[s.Node, int]:
    """Number tables and actions by their position in the source, with included files where they are included."""
    order: dict[s.Node, int] = {}
    for declaration in program.checked.program.declarations:
        order[declaration] = len(order)
        if isinstance(declaration, s.ControlDeclaration):
            for local in declaration.locals:
                order[local] = len(order)
    # Copies made for type arguments come where they are first used.
    for table in program.tables:
        order.setdefault(table.node, len(order))
    for action in program.actions:
        order.setdefault(action.node, len(order))
    return order


def _number(value: object) -> int:
    return value.value if isinstance(value, ir.Const) else 0


def _member(value: object) -> str:
    return value.name if isinstance(value, ir.Const) else ""
