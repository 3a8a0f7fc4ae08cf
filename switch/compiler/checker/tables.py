"""Tables: keys, actions with their arguments, entries, other properties (P4_16 1.2.5, section 14.2)."""

from __future__ import annotations

from gradbed.switch.compiler import syntax as s
from gradbed.switch.compiler import types as t
from gradbed.switch.compiler.checker.calls import match_arguments
from gradbed.switch.compiler.checker.context import Context, check, constant_int
from gradbed.switch.compiler.checker.conversions import check_as, coerce
from gradbed.switch.compiler.checker.expressions import require_writable
from gradbed.switch.compiler.symbols import ParameterType, Scope, Signature, Symbol, TableType

_KNOWN_PROPERTIES = frozenset(
    (
        "default_action",
        "size",
        "implementation",
        "counters",
        "meters",
        "support_timeout",
        "largest_priority_wins",
        "priority_delta",
    )
)


def check_table(node: s.TableDeclaration, scope: Scope, context: Context) -> None:
    """Check a table and declare it in the scope of its control."""
    symbol = Symbol(node.name, "table", node.name_loc, TableType(node), node=node)
    node.symbol = symbol
    context.declare(scope, symbol)
    for key in node.key:
        _check_key(key, scope, context)
        if key.match_kind == "selector" and node.property("implementation") is None:
            message = f"table '{node.name}' has no action_selector, so this key is never used"
            context.reporter.warning(key.loc, message, key.end, category="unused")
    seen: set[str] = set()
    for ref in node.actions:
        if ref.name in seen:
            context.error(ref, f"action '{ref.name}' is listed twice")
        seen.add(ref.name)
        _check_listed_action(ref, scope, context)
    _check_properties(node, scope, context)
    for entry in node.entries or ():
        _check_entry(node, entry, scope, context)


def _check_key(key: s.KeyElement, scope: Scope, context: Context) -> None:
    type_ = check(key.expression, scope, context)
    if key.match_kind not in context.match_kinds:
        known = ", ".join(sorted(context.match_kinds))
        context.reporter.error(key.end - 1, f"'{key.match_kind}' is no match kind; these are: {known}", key.end)
    if type_ is t.UNKNOWN:
        return
    if type_ is t.INTEGER or not t.is_scalar(type_):
        context.error(key.expression, f"a key must be a number, a bool, an enum or an error, not {type_}")
        key.expression.type = t.UNKNOWN


def _find_action(ref: s.ActionRef, scope: Scope, context: Context) -> Signature | None:
    symbol = (scope.root if ref.absolute else scope).lookup(ref.name)
    if symbol is None or symbol.kind != "action":
        context.not_declared(ref, ref.name, f"action '{ref.name}'", scope.all_names("action"))
        return None
    symbol.used = True
    signature = symbol.functions[0]
    assert isinstance(signature.node, s.FunctionDeclaration)
    ref.action = signature.node
    return signature


def _check_listed_action(ref: s.ActionRef, scope: Scope, context: Context) -> None:
    """Check an action of the list, which has arguments for the parameters with a direction."""
    signature = _find_action(ref, scope, context)
    if signature is None:
        return
    directed = [parameter for parameter in signature.parameters if parameter.direction]
    ref.bound = _bind(ref, directed, signature, scope, context)


def _bind(
    ref: s.ActionRef, parameters: list[ParameterType], signature: Signature, scope: Scope, context: Context
) -> list[s.Expression | None]:
    """Return the arguments for these parameters, with type UNKNOWN after a report."""
    arguments = ref.arguments or []
    for given in arguments:
        check(given.expression, scope, context)
    matched = match_arguments(ref, arguments, parameters, signature.name, context)
    if matched is None:
        return []
    result: list[s.Expression | None] = []
    for parameter, argument in zip(parameters, matched, strict=True):
        if argument is None:
            result.append(None)
        elif parameter.direction in ("out", "inout"):
            if argument.type != parameter.type and argument.type is not t.UNKNOWN:
                context.error(argument, f"expected {parameter.type}, but this is {argument.type}")
            require_writable(argument, f"by '{parameter.name}'", context)
            result.append(argument)
        else:
            result.append(coerce(argument, parameter.type, context))
    return result


def _check_chosen_action(
    node: s.TableDeclaration, ref: s.ActionRef, scope: Scope, barred: str, problem: str, context: Context
) -> None:
    """Check the action of default_action or of an entry, with arguments for the parameters without a direction.

    An action with the annotation `barred` is refused; `problem` says why.
    """
    signature = _find_action(ref, scope, context)
    if signature is None:
        return
    listed = next((item for item in node.actions if item.action is ref.action), None)
    if listed is None:
        message = f"action '{ref.name}' is not among the actions of table '{node.name}'"
        context.error(ref, message, hint=f"add it to the table's actions = {{ ... {ref.name}; }}")
        return
    if s.find_annotation(listed.annotations, barred):
        context.error(ref, f"action '{ref.name}' is marked @{barred}: {problem}")
    undirected = [parameter for parameter in signature.parameters if not parameter.direction]
    given = ref.arguments or []
    directed_count = len(signature.parameters) - len(undirected)
    if directed_count and len(given) == len(signature.parameters):
        _bind(ref, signature.parameters, signature, scope, context)
        ref.arguments = given = given[directed_count:]
    ref.bound = _bind(ref, undirected, signature, scope, context)


def _check_properties(node: s.TableDeclaration, scope: Scope, context: Context) -> None:
    seen: set[str] = set()
    for item in node.properties:
        if item.name in seen:
            context.error(item, f"property '{item.name}' is given twice")
        seen.add(item.name)
        if isinstance(item.value, s.ActionRef):
            problem = "it cannot be the default action"
            _check_chosen_action(node, item.value, scope, "tableonly", problem, context)
            continue
        check(item.value, scope, context)
        if item.name not in _KNOWN_PROPERTIES:
            message = f"property '{item.name}' means nothing to v1model"
            context.reporter.warning(item.loc, message, item.end, category="ignore-prop")
        elif isinstance(item.value, s.Call) and not s.find_annotation(item.annotations, "name"):
            message = (
                f"'{item.name}' of table '{node.name}' has no name, as p4c wants for P4Info: put @name before it"
            )
            context.reporter.warning(item.loc, message, item.end, category="unsupported")


def _check_entry(node: s.TableDeclaration, entry: s.TableEntry, scope: Scope, context: Context) -> None:
    _check_chosen_action(node, entry.action, scope, "defaultonly", "no entry can have it", context)
    if entry.priority is not None:
        constant_int(entry.priority, scope, "a priority", context)
        _check_needs_priorities(node, entry, context)
    keys = entry.keys
    if len(keys) == 1 and isinstance(keys[0], s.Wildcard) and len(node.key) > 1:
        message = f"p4c refuses one _ for the {len(node.key)} keys of table '{node.name}': write one for each"
        context.reporter.warning(keys[0].loc, message, keys[0].end, category="unsupported")
        keys = entry.keys = [s.Wildcard(keys[0].loc, keys[0].end) for _ in node.key]
    if len(keys) != len(node.key):
        context.error(entry, f"table '{node.name}' has {len(node.key)} keys, but {len(keys)} are given")
        return
    for index, (given, key) in enumerate(zip(keys, node.key, strict=True)):
        wanted = key.expression.type
        if wanted is None or wanted is t.UNKNOWN:
            continue
        label = keys[index] = check_label(given, wanted, scope, context)
        parts = (label.left, label.right) if isinstance(label, s.Binary) else (label,)
        for part in parts:
            if part.value is None and not isinstance(part, s.Wildcard) and part.type is not t.UNKNOWN:
                context.error(part, "the key of an entry must be known at compile time")


def _check_needs_priorities(node: s.TableDeclaration, entry: s.TableEntry, context: Context) -> None:
    """Refuse priorities if all keys are exact or lpm (P4_16 1.2.5, section 14.2.1.4); one error for each table."""
    first = next(each for each in node.entries or [] if each.priority is not None)
    if entry is first and all(key.match_kind in ("exact", "lpm") for key in node.key):
        message = f"the entries of table '{node.name}' can have no priority: its keys are exact and lpm only"
        context.error(entry.priority or entry, message)


def _is_struct_of(type_: t.Type, part: t.Type) -> bool:
    """Return whether a type is a struct with one field of type `part`."""
    return isinstance(type_, t.Struct) and list(type_.fields.values()) == [part]


def check_label(label: s.Expression, wanted: t.Type, scope: Scope, context: Context) -> s.Expression:
    """Check a value or set that is matched against a key of type `wanted`."""
    if isinstance(label, s.Wildcard):
        label.type = t.ANY
        return label
    if isinstance(label, s.Binary) and label.operator in ("&&&", ".."):
        number = t.representation(wanted)
        label.left = check_as(label.left, scope, number, context)
        label.right = check_as(label.right, scope, number, context)
        label.type = t.SetOf(number)
        return label
    check(label, scope, context)
    if isinstance(label, s.Call):
        context.error(label, "a value to match cannot be a call")
    if isinstance(label.type, t.SetOf):
        if label.type.element != wanted and not _is_struct_of(label.type.element, wanted):
            context.error(label, f"expected a set of {wanted}, but this is {label.type}")
        return label
    if isinstance(wanted, t.Enum) and wanted.underlying is not None and label.type != wanted:
        return coerce(label, wanted.underlying, context)
    return coerce(label, wanted, context)
