"""Tables and their actions, lowered."""

from __future__ import annotations

from gradbed.switch.bmv2_json.model import GREATEST_RANK
from gradbed.switch.compiler import ir
from gradbed.switch.compiler import syntax as s
from gradbed.switch.compiler import types as t
from gradbed.switch.compiler.ir import operations as op
from gradbed.switch.compiler.ir.values import ExternObject, Value
from gradbed.switch.compiler.lower.context import Code, Frame, ProgramState, lower_block, value_of
from gradbed.switch.compiler.lower.expressions import constant_of
from gradbed.switch.compiler.lower.inlining import Arguments, arguments_of, bind, construct, copy_back, exit_pipeline
from gradbed.switch.compiler.lower.values import assign, may_change, read


def apply_table(node: s.Call, frame: Frame, code: Code, kind: str = "action") -> ir.Apply:
    """Write the application of a table; its branches are still to be filled in."""
    target = node.target
    assert target is not None and isinstance(target.declaration, s.TableDeclaration)
    declaration = target.declaration
    if code.kind != "control":
        code.error(node, "a table can only be applied in the apply block of a control")
    owner = _owner(declaration, frame)
    key = (owner, declaration)
    table = code.program.tables.get(key)
    if table is None:
        table = _lower_table(declaration, owner, code)
        code.program.tables[key] = table
    for field, expression in table.key_inputs:
        assign(field, value_of(expression, owner, code), expression, code)
    apply = ir.Apply(node.loc, node.end, table, kind)
    if table.exit_flag is not None:
        code.emit(ir.LoweredAssign(0, 0, table.exit_flag, op.FALSE))
    code.emit(apply)
    if table.exit_flag is not None:
        with code.branch() as leaving:
            exit_pipeline(node, code)
        for name in ("hit", "miss") if kind == "hit" else ("",):
            apply.branches[name] = [ir.LoweredIf(0, 0, table.exit_flag, list(leaving), [])]
    return apply


def _owner(declaration: s.TableDeclaration, frame: Frame) -> Frame:
    """Return the frame of the control instance that the table belongs to."""
    for around in frame.outwards():
        if around.owns is not None and around.owns.names.get(declaration.name) is declaration.symbol:
            return around
    raise AssertionError("a table is applied outside its control")


def _lower_table(node: s.TableDeclaration, owner: Frame, code: Code) -> ir.LoweredTable:
    program = code.program
    table = ir.LoweredTable(program.control_name(node.annotations, owner.prefix, node.name), node)
    if any(other.name == table.name for other in program.tables.values()):
        code.error(node, f"the control plane knows another table by the name '{table.name}'")
    if any(copy_out.pairs for copy_out in code.copy_outs) and any(
        ref.action is not None and _exits(ref.action) for ref in node.actions
    ):
        table.exit_flag = code.storage.scalar(t.BOOL, "exited")
    _keys(table, owner, code)
    for ref in node.actions:
        if ref.action is None:
            continue
        action = _action(ref, owner, table.exit_flag, code.program)
        table.actions.append(ir.TableAction(action, ref.annotations, ref.name))
    _properties(table, node, owner, code)
    if node.entries is not None:
        table.entries = [
            _entry(table, entry, rank, owner, code)
            for entry, rank in zip(node.entries, _ranks(node, owner, code), strict=True)
        ]
    return table


def _keys(table: ir.LoweredTable, owner: Frame, code: Code) -> None:
    """Lower the keys from left to right: a field is matched itself only if no later key changes it."""
    evaluated: list[tuple[s.KeyElement, Value, list[ir.LoweredStatement]]] = []
    for key in table.node.key:
        with code.branch() as effects:
            value = read(value_of(key.expression, owner, code), key, code)
        evaluated.append((key, value, effects))
    for position, (key, value, effects) in enumerate(evaluated):
        type_ = key.expression.type
        assert type_ is not None
        later = [statement for _, _, statements in evaluated[position + 1 :] for statement in statements]
        if isinstance(value, ir.FieldRef) and not effects and not may_change(later, value):
            target = value
        else:
            target = code.storage.scalar(type_, "key")
            table.key_inputs.append((target, key.expression))
        lowered = ir.LoweredKey(_key_name(key, code), key.match_kind, target, type_, key.annotations, key)
        (table.selectors if key.match_kind == "selector" else table.keys).append(lowered)


def _key_name(key: s.KeyElement, code: Code) -> str:
    annotation = s.find_annotation(key.annotations, "name")
    given = annotation.string() if annotation is not None else None
    name = _expression_name(key.expression) if given is None else given
    if name is None:
        code.error(key.expression, 'this key needs a name for the control plane: write @name("...") after it')
        return "key"
    return name.removeprefix(".")


def _expression_name(node: s.Expression) -> str | None:
    """Return the name of a key in the control plane, if its expression has one (P4_16 1.2.5, section 18.3.1.3)."""
    match node:
        case s.Name():
            return node.name
        case s.Convert():
            return _expression_name(node.operand)
        case s.IntLiteral():
            return {2: "0b{:b}", 8: "0o{:o}", 16: "{:#x}"}.get(node.base, "{}").format(node.number)
        case s.Member():
            name = _field_name(node)
            return name[1:] if name.startswith(".") else _joined("{}.{}", node.base, name)
        case s.Call(callee=s.Member(name="isValid", base=base)):
            return _joined("{}.$valid$", base)
        case s.Index():
            return _joined("{}[{}]", node.base, node.index)
        case s.Slice():
            return _joined("{}[{}:{}]", node.base, str(node.high_bit), str(node.low_bit))
        case s.Binary(operator="&"):
            return _joined("{} & {}", node.left, node.right)
    return None


def _joined(form: str, *parts: s.Expression | str) -> str | None:
    """Format the names of the parts; None if one has none."""
    names = [item if isinstance(item, str) else _expression_name(item) for item in parts]
    return None if None in names else form.format(*names)


def _field_name(node: s.Member) -> str:
    """Return the name of the field, or the text of its @name."""
    annotations = node.base.type.annotations.get(node.name, []) if isinstance(node.base.type, t.Struct) else []
    annotation = s.find_annotation(annotations, "name")
    return (annotation.string() if annotation is not None else None) or node.name


def _properties(table: ir.LoweredTable, node: s.TableDeclaration, owner: Frame, code: Code) -> None:
    default = node.property("default_action")
    if default is not None and isinstance(default.value, s.ActionRef):
        ref = default.value
        table.default_const = default.is_const
        listed = next((item for item in node.actions if item.action is ref.action), None)
        if listed is not None:
            table.default_action = _action(listed, owner, table.exit_flag, code.program)
            table.default_data = _data(ref, owner, code)
    else:
        _add_no_action(table, owner, code)
    size = node.property("size")
    if size is not None and isinstance(size.value, s.Expression):
        written = size.value.value
        known = constant_of(size.value, owner, "the size of a table", code)
        # As written, for what is said about it: a constant has been cut to the width of P4's integers here.
        table.size = written if isinstance(written, int) else known
        if not 0 <= table.size <= ir.MAX_SIZE:
            code.error(size.value, f"a size of {table.size} is outside 1 to {ir.MAX_SIZE}")
        # As p4c has it, 0 is no size of one's own.
        table.size = table.size or ir.DEFAULT_SIZE
    timeout = node.property("support_timeout")
    if timeout is not None and isinstance(timeout.value, s.Expression):
        table.support_timeout = bool(constant_of(timeout.value, owner, "support_timeout", code))
    table.counters = _object(table, "counters", ("direct_counter",), owner, code)
    table.meters = _object(table, "meters", ("direct_meter",), owner, code)
    table.implementation = _object(table, "implementation", ("action_profile", "action_selector"), owner, code)


def _add_no_action(table: ir.LoweredTable, owner: Frame, code: Code) -> None:
    """Make NoAction the default action of a table that declares none."""
    symbol = code.program.checked.globals.lookup("NoAction")
    if symbol is None or not isinstance(symbol.node, s.FunctionDeclaration):
        return
    node = table.node
    ref = s.ActionRef(node.loc, node.end, [], "NoAction", True, None)
    ref.action = symbol.node
    action = _action(ref, owner, table.exit_flag, code.program)
    if all(item.action is not action for item in table.actions):
        annotation = s.Annotation(node.loc, node.end, "defaultonly", None)
        table.actions.append(ir.TableAction(action, [annotation], "NoAction"))
    table.default_action = action


def _object(
    table: ir.LoweredTable, name: str, kinds: tuple[str, ...], owner: Frame, code: Code
) -> ExternObject | None:
    item = table.node.property(name)
    if item is None or not isinstance(item.value, s.Expression):
        return None
    if isinstance(item.value, s.Call):
        # As p4c has it, @name in front of the property is the whole name.
        prefix = "" if s.find_annotation(item.annotations, "name") else owner.prefix
        own_name = code.program.control_name(item.annotations, prefix, f"{table.node.name}.{name}")
        value: Value = construct(item.value, owner, own_name, code.program)
        if isinstance(value, ExternObject):
            value.node.annotations = item.annotations
    else:
        value = value_of(item.value, owner, code)
    if not isinstance(value, ExternObject) or value.kind not in kinds:
        code.error(item.value, f"'{name}' takes {' or '.join(kinds)}")
        return None
    if name != "implementation":
        other = code.program.direct_tables.setdefault(value.name, table)
        if other is not table:
            code.error(item.value, f"'{value.name}' belongs to table '{other.name}' already")
    return value


def _data(ref: s.ActionRef, owner: Frame, code: Code) -> list[int]:
    return [constant_of(argument, owner, "action data", code) for argument in ref.bound if argument is not None]


def _ranks(node: s.TableDeclaration, owner: Frame, code: Code) -> list[int]:
    """Return the priority of each entry in BMv2 JSON: the smallest comes first (P4_16 1.2.5, section 14.2.1.4)."""
    entries = node.entries or []
    if all(entry.priority is None for entry in entries):
        return [_annotated_rank(entry, position) for position, entry in enumerate(entries, 1)]
    largest_wins = bool(_property(node, "largest_priority_wins", 1, owner, code))
    step = _property(node, "priority_delta", 1, owner, code) * (-1 if largest_wins else 1)
    following = 1 - (len(entries) - 1) * step if largest_wins else 1
    ranks = []
    for entry in entries:
        if entry.priority is not None and isinstance(entry.priority.value, int):
            following = entry.priority.value
        if not 0 < following <= GREATEST_RANK // 2:
            code.error(entry, f"the entry's priority {following} is not in 1..{GREATEST_RANK // 2}")
            following = 1
        ranks.append(GREATEST_RANK - following if largest_wins else following)
        following += step
    return ranks


def _annotated_rank(entry: s.TableEntry, position: int) -> int:
    """Return the number of @priority of p4c, which counts as in BMv2."""
    annotation = s.find_annotation(entry.annotations, "priority")
    if annotation is not None and annotation.body and annotation.body[0].isdecimal():
        return int(annotation.body[0])
    return position


def _property(node: s.TableDeclaration, name: str, otherwise: int, owner: Frame, code: Code) -> int:
    item = node.property(name)
    if item is None or not isinstance(item.value, s.Expression):
        return otherwise
    return constant_of(item.value, owner, name, code)


def _entry(table: ir.LoweredTable, entry: s.TableEntry, rank: int, owner: Frame, code: Code) -> ir.LoweredEntry:
    matches = []
    for label, key in zip(entry.keys, table.node.key, strict=False):
        if key.match_kind != "selector":
            matches.append(_match(label, owner, code))
    action = table.default_action
    for item in table.node.actions:
        if item.action is entry.action.action:
            action = _action(item, owner, table.exit_flag, code.program)
    assert action is not None
    return ir.LoweredEntry(matches, action, _data(entry.action, owner, code), rank, entry)


def _match(label: s.Expression, owner: Frame, code: Code) -> ir.LoweredKeyMatch:
    what = "the key of an entry"
    match label:
        case s.Wildcard():
            return ir.LoweredKeyMatch("any")
        case s.Binary(operator="&&&" | ".."):
            first, second = (constant_of(side, owner, what, code) for side in (label.left, label.right))
            return ir.LoweredKeyMatch("mask" if label.operator == "&&&" else "range", first, second)
    return ir.LoweredKeyMatch("value", constant_of(label, owner, what, code))


# ---- Actions ----


def _action(ref: s.ActionRef, owner: Frame, exit_flag: ir.FieldRef | None, program: ProgramState) -> ir.LoweredAction:
    """Return the action of a table, lowered once: for all tables, or for one if it has bound arguments."""
    node = ref.action
    assert node is not None
    is_global = _is_global(node, program)
    key = (program.globals if is_global else owner, ref if ref.bound else node, exit_flag)
    known = program.actions.get(key)
    if known is None:
        name = program.control_name(node.annotations, "" if is_global else owner.prefix, node.name)
        known = _lower_action(ref, node, name, owner, exit_flag, program)
        program.actions[key] = known
    return known


def record_call(
    node: s.FunctionDeclaration, prefix: str, body: list[ir.LoweredStatement], program: ProgramState
) -> None:
    """Record an action that a control calls itself: P4Info lists it, though the control plane cannot use it."""
    name = program.control_name(node.annotations, "" if _is_global(node, program) else prefix, node.name)
    program.called_actions.setdefault(name, ir.LoweredAction(name, [], body, node))


def _is_global(node: s.FunctionDeclaration, program: ProgramState) -> bool:
    symbol = program.checked.globals.names.get(node.name)
    return symbol is not None and symbol.node is node


def _lower_action(
    ref: s.ActionRef,
    node: s.FunctionDeclaration,
    name: str,
    owner: Frame,
    exit_flag: ir.FieldRef | None,
    program: ProgramState,
) -> ir.LoweredAction:
    assert node.body is not None
    code = Code(program, "action")
    code.exit_flag = exit_flag
    frame = Frame(owner, owner.prefix)
    directed = [parameter for parameter in node.signature if parameter.direction]
    label, finished = ir.Label("return"), ir.Label("finished")
    code.finished = finished
    with code.branch() as body:
        arguments = arguments_of(directed, ref.bound, owner, code) if ref.bound else Arguments([], {})
        copy_out = bind(directed[: len(arguments.values)], arguments, frame, ref, code, closed=False)
        parameters = _action_data(node, frame)
        code.returns.append((label, None))
        code.copy_outs.append(copy_out)
        with code.branch() as inner:
            lower_block(node.body, frame, code)
        code.copy_outs.pop()
        code.emit(ir.LoweredBlock(node.loc, node.end, label, inner))
        copy_back(copy_out, ref, code)
    return ir.LoweredAction(name, parameters, [ir.LoweredBlock(node.loc, node.end, finished, body)], node)


def _action_data(node: s.FunctionDeclaration, frame: Frame) -> list[ir.LoweredParameter]:
    """Return the parameters that the control plane gives, with their values set in the frame of the action."""
    parameters: list[ir.LoweredParameter] = []
    for parameter in node.signature:
        if not parameter.direction:
            data = ir.RuntimeData(t.representation(parameter.type), len(parameters))
            frame.values[parameter.symbol] = data
            given = parameter.annotations
            annotation = s.find_annotation(given, "name")
            name = annotation.string() if annotation is not None else None
            parameters.append(ir.LoweredParameter(name or parameter.name, parameter.type, given))
    return parameters


def _exits(action: s.FunctionDeclaration) -> bool:
    """Return whether an action, or one that it calls, contains an exit."""
    for node in s.walk(action.body):
        if isinstance(node, s.Exit):
            return True
        if isinstance(node, s.Call) and node.target is not None and node.target.kind == "action":
            inner = getattr(node.target.declaration, "node", None)
            if isinstance(inner, s.FunctionDeclaration) and _exits(inner):
                return True
    return False
