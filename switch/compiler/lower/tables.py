"""Tables and their actions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from switch.compiler import syntax as s
from switch.compiler import types as t
from switch.compiler.lower import ir
from switch.compiler.lower import operations as op
from switch.compiler.lower.places import ExternObject, Value
from switch.compiler.lower.scope import Code, Frame
from switch.entry_priority import GREATEST_RANK

if TYPE_CHECKING:
    from switch.compiler.lower.assignments import Assignments
    from switch.compiler.lower.expressions import Expressions
    from switch.compiler.lower.statements import Statements

DEFAULT_SIZE = 1024
MAX_SIZE = 1 << 28


@dataclass(eq=False)
class ActionParameter:
    """Action data that the control plane gives. `type` as declared."""

    name: str
    type: t.Type
    annotations: list[s.Annotation]


@dataclass(eq=False)
class LoweredAction:
    """`body` is straight code with branches; `node` is None for actions that the compiler made up."""

    name: str
    parameters: list[ActionParameter]
    body: list[ir.Stmt]
    node: s.FunctionDeclaration


@dataclass(eq=False)
class LoweredKey:
    """`target`: the field that is matched. `type` as declared."""

    name: str
    match_kind: str
    target: ir.FieldRef
    type: t.Type
    annotations: list[s.Annotation]
    node: s.KeyElement


@dataclass(eq=False)
class TableAction:
    action: LoweredAction
    annotations: list[s.Annotation]
    source_name: str


@dataclass(frozen=True)
class KeyMatch:
    """What an entry wants of one key. kind: value, mask, range or any; `second` is the mask or the last value."""

    kind: str
    first: int = 0
    second: int = 0


@dataclass(eq=False)
class LoweredEntry:
    matches: list[KeyMatch]
    action: LoweredAction
    data: list[int]
    priority: int
    node: s.TableEntry


@dataclass(eq=False)
class LoweredTable:
    """`exit_flag` is set by its actions where they exit, if what is behind the table must see to it."""

    name: str
    node: s.TableDeclaration
    keys: list[LoweredKey] = field(default_factory=list)
    selectors: list[LoweredKey] = field(default_factory=list)
    actions: list[TableAction] = field(default_factory=list)
    default_action: LoweredAction | None = None
    default_data: list[int] = field(default_factory=list)
    default_const: bool = False
    entries: list[LoweredEntry] | None = None
    size: int | None = None
    counters: ExternObject | None = None
    meters: ExternObject | None = None
    implementation: ExternObject | None = None
    support_timeout: bool = False
    exit_flag: ir.FieldRef | None = None
    key_inputs: list[tuple[ir.FieldRef, s.Expression]] = field(default_factory=list)

    def action_names(self) -> dict[str, str]:
        """Names of the actions in the source, with their names in the control plane."""
        return {item.source_name: item.action.name for item in self.actions}


class Tables:
    assignments: Assignments
    expressions: Expressions
    statements: Statements

    def __init__(self, code: Code) -> None:
        self._code = code

    def apply(self, node: s.Call, frame: Frame, kind: str = "action") -> ir.Apply:
        """Write the table's application; its branches are still to be filled in."""
        target = node.target
        assert target is not None and isinstance(target.declaration, s.TableDeclaration)
        declaration = target.declaration
        if self._code.kind != "control":
            self._code.error(node, "a table can only be applied in the apply block of a control")
        owner = self._owner(declaration, frame)
        key = (owner, declaration)
        table = self._code.program.tables.get(key)
        if table is None:
            table = self._lower(declaration, owner)
            self._code.program.tables[key] = table
        for field_, expression in table.key_inputs:
            self.assignments.assign(field_, self.expressions.value(expression, owner), expression)
        apply = ir.Apply(node.loc, node.end, table, kind)
        if table.exit_flag is not None:
            self._code.emit(ir.Assign(0, 0, table.exit_flag, op.FALSE))
        self._code.emit(apply)
        if table.exit_flag is not None:
            with self._code.branch() as leaving:
                self.statements.exit(node)
            for name in ("hit", "miss") if kind == "hit" else ("",):
                apply.branches[name] = [ir.If(0, 0, table.exit_flag, list(leaving), [])]
        return apply

    def _owner(self, declaration: s.TableDeclaration, frame: Frame) -> Frame:
        """The frame of the control instance that the table belongs to."""
        current: Frame | None = frame
        while current is not None:
            if current.owns is not None and current.owns.names.get(declaration.name) is declaration.symbol:
                return current
            current = current.parent
        raise AssertionError("a table is applied outside its control")

    # --- the table itself ---

    def _lower(self, node: s.TableDeclaration, owner: Frame) -> LoweredTable:
        program = self._code.program
        table = LoweredTable(program.control_name(node.annotations, owner.prefix, node.name), node)
        if any(other.name == table.name for other in program.tables.values()):
            self._code.error(node, f"the control plane knows another table by the name '{table.name}'")
        if any(copy_out.pairs for copy_out in self._code.copy_outs) and any(
            ref.action is not None and exits(ref.action) for ref in node.actions
        ):
            table.exit_flag = program.storage.scalar(t.BOOL, "exited")
        for key in node.key:
            self._key(table, key, owner)
        for ref in node.actions:
            if ref.action is None:
                continue
            action = program.actions.lower(ref, owner, table.exit_flag)
            table.actions.append(TableAction(action, ref.annotations, ref.name))
        self._properties(table, node, owner)
        if node.entries is not None:
            table.entries = [
                self._entry(table, entry, rank, owner)
                for entry, rank in zip(node.entries, self._ranks(node, owner), strict=True)
            ]
        return table

    def _key(self, table: LoweredTable, key: s.KeyElement, owner: Frame) -> None:
        type_ = key.expression.type
        assert type_ is not None
        name = self._key_name(key)
        with self._code.branch() as effects:
            value = self.expressions.read(self.expressions.value(key.expression, owner), key)
        if isinstance(value, ir.FieldRef) and not effects:
            target = value
        else:
            target = self._code.program.storage.scalar(type_, "key")
            table.key_inputs.append((target, key.expression))
        lowered = LoweredKey(name, key.match_kind, target, type_, key.annotations, key)
        (table.selectors if key.match_kind == "selector" else table.keys).append(lowered)

    def _key_name(self, key: s.KeyElement) -> str:
        annotation = s.find_annotation(key.annotations, "name")
        if annotation is not None:
            name = annotation.string()
            if name is not None:
                return name.removeprefix(".")
        name = _expression_name(key.expression)
        if name is None:
            self._code.error(
                key.expression, 'this key needs a name for the control plane: write @name("...") behind it'
            )
            return "key"
        return name.removeprefix(".")

    def _properties(self, table: LoweredTable, node: s.TableDeclaration, owner: Frame) -> None:
        default = node.property("default_action")
        if default is not None and isinstance(default.value, s.ActionRef):
            ref = default.value
            table.default_const = default.is_const
            listed = next((item for item in node.actions if item.action is ref.action), None)
            if listed is not None:
                table.default_action = self._code.program.actions.lower(listed, owner, table.exit_flag)
                table.default_data = self._data(ref, owner)
        else:
            self._add_no_action(table, owner)
        size = node.property("size")
        if size is not None and isinstance(size.value, s.Expression):
            written = size.value.value
            known = self._constant(size.value, owner, "the size of a table")
            # As written, for what is said about it: a constant has been cut to the width of P4's integers here.
            table.size = written if isinstance(written, int) else known
            if not 0 <= table.size <= MAX_SIZE:
                self._code.error(size.value, f"a size of {table.size} is outside 1 to {MAX_SIZE}")
            # As p4c has it, 0 is no size of one's own.
            table.size = table.size or DEFAULT_SIZE
        timeout = node.property("support_timeout")
        if timeout is not None and isinstance(timeout.value, s.Expression):
            table.support_timeout = bool(self._constant(timeout.value, owner, "support_timeout"))
        table.counters = self._object(table, "counters", ("direct_counter",), owner)
        table.meters = self._object(table, "meters", ("direct_meter",), owner)
        table.implementation = self._object(table, "implementation", ("action_profile", "action_selector"), owner)

    def _add_no_action(self, table: LoweredTable, owner: Frame) -> None:
        """Without a default action, a miss does nothing."""
        symbol = self._code.program.checked.globals.lookup("NoAction")
        if symbol is None or not isinstance(symbol.node, s.FunctionDeclaration):
            return
        node = table.node
        ref = s.ActionRef(node.loc, node.end, [], "NoAction", True, None)
        ref.action = symbol.node
        action = self._code.program.actions.lower(ref, owner, table.exit_flag)
        if all(item.action is not action for item in table.actions):
            annotation = s.Annotation(node.loc, node.end, "defaultonly", None)
            table.actions.append(TableAction(action, [annotation], "NoAction"))
        table.default_action = action

    def _object(self, table: LoweredTable, name: str, kinds: tuple[str, ...], owner: Frame) -> ExternObject | None:
        item = table.node.property(name)
        if item is None or not isinstance(item.value, s.Expression):
            return None
        if isinstance(item.value, s.Call):
            # As p4c has it, @name in front of the property is the whole name.
            prefix = "" if s.find_annotation(item.annotations, "name") else owner.prefix
            own_name = self._code.program.control_name(item.annotations, prefix, f"{table.node.name}.{name}")
            value: Value = self._code.program.instances.construct(item.value, owner, "", own_name)
            if isinstance(value, ExternObject):
                value.node.annotations = item.annotations
        else:
            value = self.expressions.value(item.value, owner)
        if not isinstance(value, ExternObject) or value.kind not in kinds:
            self._code.error(item.value, f"'{name}' takes {' or '.join(kinds)}")
            return None
        if name != "implementation":
            other = self._code.program.direct_tables.setdefault(value.name, table)
            if other is not table:
                self._code.error(item.value, f"'{value.name}' belongs to table '{other.name}' already")
        return value

    # --- values known at compile time ---

    def _constant(self, node: s.Expression, owner: Frame, what: str) -> int:
        with self._code.branch():
            value = self.expressions.value(node, owner)
        if isinstance(value, ir.Const):
            return value.value
        self._code.error(node, f"{what} must be known at compile time")
        return 0

    def _data(self, ref: s.ActionRef, owner: Frame) -> list[int]:
        return [self._constant(argument, owner, "action data") for argument in ref.bound if argument is not None]

    def _ranks(self, node: s.TableDeclaration, owner: Frame) -> list[int]:
        """BMv2's priority of each entry: the smallest goes first. P4_16 1.2.5, section 14.2.1.4."""
        entries = node.entries or []
        if all(entry.priority is None for entry in entries):
            return [_annotated_rank(entry, position) for position, entry in enumerate(entries, 1)]
        largest_wins = bool(self._property(node, "largest_priority_wins", 1, owner))
        step = self._property(node, "priority_delta", 1, owner) * (-1 if largest_wins else 1)
        following = 1 - (len(entries) - 1) * step if largest_wins else 1
        ranks = []
        for entry in entries:
            if entry.priority is not None and isinstance(entry.priority.value, int):
                following = entry.priority.value
            if not 0 < following <= GREATEST_RANK // 2:
                self._code.error(entry, f"the entry's priority {following} is not in 1..{GREATEST_RANK // 2}")
                following = 1
            ranks.append(GREATEST_RANK - following if largest_wins else following)
            following += step
        return ranks

    def _property(self, node: s.TableDeclaration, name: str, otherwise: int, owner: Frame) -> int:
        item = node.property(name)
        if item is None or not isinstance(item.value, s.Expression):
            return otherwise
        return self._constant(item.value, owner, name)

    def _entry(self, table: LoweredTable, entry: s.TableEntry, rank: int, owner: Frame) -> LoweredEntry:
        matches = []
        for label, key in zip(entry.keys, table.node.key, strict=False):
            if key.match_kind != "selector":
                matches.append(self._match(label, owner))
        action = table.default_action
        for item in table.node.actions:
            if item.action is entry.action.action:
                action = self._code.program.actions.lower(item, owner, table.exit_flag)
        assert action is not None
        return LoweredEntry(matches, action, self._data(entry.action, owner), rank, entry)

    def _match(self, label: s.Expression, owner: Frame) -> KeyMatch:
        if isinstance(label, s.Wildcard):
            return KeyMatch("any")
        what = "the key of an entry"
        if isinstance(label, s.Binary) and label.operator in ("&&&", ".."):
            first = self._constant(label.left, owner, what)
            second = self._constant(label.right, owner, what)
            return KeyMatch("mask" if label.operator == "&&&" else "range", first, second)
        return KeyMatch("value", self._constant(label, owner, what))


def _annotated_rank(entry: s.TableEntry, position: int) -> int:
    """p4c's @priority counts as BMv2 does."""
    annotation = s.find_annotation(entry.annotations, "priority")
    if annotation is not None and annotation.body and annotation.body[0].isdecimal():
        return int(annotation.body[0])
    return position


def exits(action: s.FunctionDeclaration) -> bool:
    """Whether an action, or one that it calls, contains an exit."""
    for node in s.walk(action.body):
        if isinstance(node, s.Exit):
            return True
        if isinstance(node, s.Call) and node.target is not None and node.target.kind == "action":
            inner = getattr(node.target.declaration, "node", None)
            if isinstance(inner, s.FunctionDeclaration) and exits(inner):
                return True
    return False


def _expression_name(node: s.Expression) -> str | None:
    """The name that the control plane knows a key by, if its expression is simple enough to be a name."""
    if isinstance(node, s.Name):
        return node.name
    if isinstance(node, s.Member):
        base, name = _expression_name(node.base), _field_name(node)
        return name[1:] if name.startswith(".") else None if base is None else f"{base}.{name}"
    if isinstance(node, s.Call) and isinstance(node.callee, s.Member) and node.callee.name == "isValid":
        base = _expression_name(node.callee.base)
        return None if base is None else f"{base}.$valid$"
    if isinstance(node, s.Index):
        base, index = _expression_name(node.base), _expression_name(node.index)
        return None if base is None or index is None else f"{base}[{index}]"
    if isinstance(node, s.Slice):
        base = _expression_name(node.base)
        return None if base is None else f"{base}[{node.high_bit}:{node.low_bit}]"
    if isinstance(node, s.Binary) and node.operator == "&":
        left, right = _expression_name(node.left), _expression_name(node.right)
        return None if left is None or right is None else f"{left} & {right}"
    if isinstance(node, (s.Convert,)):
        return _expression_name(node.operand)
    if isinstance(node, s.IntLiteral):
        return {2: "0b{:b}", 8: "0o{:o}", 16: "{:#x}"}.get(node.base, "{}").format(node.number)
    return None


def _field_name(node: s.Member) -> str:
    """The field's name, or what @name in front of it says."""
    annotations = node.base.type.annotations.get(node.name, []) if isinstance(node.base.type, t.Struct) else []
    annotation = s.find_annotation(annotations, "name")
    return (annotation.string() if annotation is not None else None) or node.name
