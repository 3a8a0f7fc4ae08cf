"""Declarations at the top level, parsers and controls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gradbed.switch.compiler import syntax as s
from gradbed.switch.compiler import types as t
from gradbed.switch.compiler.checker.context import Context, check
from gradbed.switch.compiler.checker.conversions import check_as
from gradbed.switch.compiler.checker.statements import (
    BodyContext,
    check_block,
    check_statement,
    declare_constant,
    declare_instance,
)
from gradbed.switch.compiler.checker.tables import check_label, check_table
from gradbed.switch.compiler.checker.type_resolver import declare_parameters, fill_struct, resolve
from gradbed.switch.compiler.diagnostics import Reporter, suggestion
from gradbed.switch.compiler.symbols import (
    Applicable,
    ExternClass,
    ExternInstanceType,
    PackageType,
    ParameterType,
    Scope,
    Signature,
    Symbol,
)
from gradbed.switch.compiler.values import Symbolic
from gradbed.switch.state.externs import EXTERNS, ExternKind


@dataclass(frozen=True)
class CheckedProgram:
    """A program after checking."""

    program: s.P4Program
    globals: Scope
    errors: dict[str, Symbolic]
    """Members of `error` in order."""
    main: s.Instantiation | None
    """The package instance, if there is one."""


def check_program(program: s.P4Program, reporter: Reporter) -> CheckedProgram:
    """Check a whole program; errors go to the reporter."""
    context = Context(reporter)
    context.globals.names["error"] = Symbol("error", "namespace", program.loc, t.ERROR)
    for declaration in program.declarations:
        _declaration(declaration, context)
        # Bodies of generic functions, parsers and controls that have got their type arguments.
        while context.pending:
            _body(context.pending.pop(), context)
    main = context.globals.names.get("main")
    instance = main.node if main is not None and isinstance(main.node, s.Instantiation) else None
    return CheckedProgram(program, context.globals, context.errors, instance)


def _declaration(node: s.Declaration, context: Context) -> None:
    match node:
        case s.StructDeclaration():
            _struct(node, context)
        case s.EnumDeclaration():
            _enum(node, context)
        case s.ErrorDeclaration():
            _error(node, context)
        case s.TypedefDeclaration():
            _typedef(node, context)
        case s.ConstantDeclaration():
            declare_constant(node, context.globals, context)
        case s.Instantiation():
            declare_instance(node, context.globals, context)
            if node.symbol is not None and isinstance(node.symbol.type, Applicable):
                kind = "parser" if isinstance(node.symbol.type.signature.node, s.ParserDeclaration) else "control"
                context.error(node, f"a {kind} cannot be instantiated here, only inside a control or parser")
        case s.FunctionDeclaration():
            _function(node, context.globals, context)
        case s.ExternDeclaration():
            _extern(node, context)
        case s.ParserDeclaration() | s.ControlDeclaration():
            _applicable(node, context)
        case s.PackageDeclaration():
            _package(node, context)
        case _:
            context.error(node, "a variable is not allowed outside parsers and controls")


def _body(signature: Signature, context: Context) -> None:
    node = signature.node
    if isinstance(node, s.FunctionDeclaration):
        _function_body(node, signature, signature.scope, context)
    elif isinstance(node, s.ParserDeclaration):
        _parser_body(node, signature, context)
    elif isinstance(node, s.ControlDeclaration):
        _control_body(node, signature, context)


# ---- Types ----


def _struct(node: s.StructDeclaration, context: Context) -> None:
    if node.type_parameters:
        generic = t.Struct(node.kind, node.name, {}, node)
        context.declare(context.globals, Symbol(node.name, "type", node.name_loc, generic, node=node))
        return
    struct = t.Struct(node.kind, node.name, {}, node)
    fill_struct(struct, context.globals, context)
    context.declare(context.globals, Symbol(node.name, "type", node.name_loc, struct, node=node))


def _enum(node: s.EnumDeclaration, context: Context) -> None:
    underlying = None
    if node.underlying is not None:
        underlying = resolve(node.underlying, context.globals, context)
        if not isinstance(t.representation(underlying), (t.Bit, t.Int)):
            if underlying is not t.UNKNOWN:
                context.error(node.underlying, f"an enum is stored as bit<N> or int<N>, not {underlying}")
            underlying = t.bit(32)
        underlying = t.representation(underlying)
    enum = t.Enum(node.name, tuple(member.name for member in node.members), node, underlying)
    for position, member in enumerate(node.members):
        if member.name in enum.values:
            context.error(member, f"'{member.name}' is declared twice")
        number = position
        if underlying is not None and member.value is not None:
            value = check_as(member.value, context.globals, underlying, context)
            if isinstance(value.value, int):
                number = value.value
            elif value.type is not t.UNKNOWN:
                context.error(member, "the value of a member must be known at compile time")
        enum.values[member.name] = number
    context.declare(context.globals, Symbol(node.name, "type", node.name_loc, enum, node=node))


def _error(node: s.ErrorDeclaration, context: Context) -> None:
    for member in node.members:
        if node.name == "match_kind":
            context.match_kinds.add(member.name)
        elif member.name in context.errors:
            context.error(member, f"error '{member.name}' is declared twice")
        else:
            number = len(context.errors)
            context.errors[member.name] = Symbolic(t.ERROR, member.name, number)


def _typedef(node: s.TypedefDeclaration, context: Context) -> None:
    assert isinstance(node.type, s.TypeSyntax)
    type_ = resolve(node.type, context.globals, context)
    if node.is_new and type_ is not t.UNKNOWN:
        if not (isinstance(t.representation(type_), (t.Bit, t.Int)) or type_ is t.BOOL):
            context.error(node.type, f"'type' needs bit<N>, int<N> or bool, not {type_}")
        type_ = t.NewType(node.name, type_, node)
    context.declare(context.globals, Symbol(node.name, "type", node.name_loc, type_, node=node))


# ---- Functions, externs, packages ----


def _signature(node: s.FunctionDeclaration, scope: Scope, context: Context) -> Signature:
    inner = Scope(scope)
    variables = context.type_variables(inner, node.type_parameters, node.loc)
    result: t.Type = t.VOID
    if node.return_type is not None:
        result = resolve(node.return_type, inner, context)
    parameters = declare_parameters(node.parameters, inner, "parameter", context)
    node.signature = parameters
    node.result = result
    return Signature(node.name, variables, parameters, result, node, inner)


def _function(node: s.FunctionDeclaration, scope: Scope, context: Context) -> None:
    signature = _signature(node, scope, context)
    kind = "action" if node.return_type is None else "function"
    if kind == "action":
        _action_parameters(signature, context)
    if not signature.variables:
        context.unfinished.append(node.name)
        _function_body(node, signature, signature.scope, context)
        context.unfinished.pop()
    existing = scope.names.get(node.name)
    if existing is not None and existing.kind == "function" == kind:
        # Calls tell overloads apart by the number of arguments or by their names (P4_16, extern objects).
        names = {parameter.name for parameter in signature.parameters}
        if any({parameter.name for parameter in other.parameters} == names for other in existing.functions):
            count = len(signature.parameters)
            context.error(node, f"'{node.name}' with {count} parameter(s) is declared twice")
        existing.functions.append(signature)
        return
    symbol = Symbol(node.name, kind, node.name_loc, t.VOID, node=node, functions=[signature])
    context.declare(scope, symbol)


def _action_parameters(signature: Signature, context: Context) -> None:
    """Check that directionless parameters, which the control plane gives, come last (P4_16 1.2.5, section 14.1)."""
    undirected = False
    for parameter in signature.parameters:
        if parameter.direction and parameter.type is t.INTEGER:
            context.error(parameter, "a parameter of type int cannot have a direction")
        elif not parameter.direction:
            undirected = True
            if parameter.type is not t.UNKNOWN and not t.is_scalar(parameter.type):
                context.error(parameter, f"action data must be a number, a bool or an enum, not {parameter.type}")
        elif undirected:
            context.error(parameter, "parameters with a direction come before those without")


def _function_body(node: s.FunctionDeclaration, signature: Signature, scope: Scope, context: Context) -> None:
    if node.body is None:
        return
    kind = "action" if node.return_type is None else "function"
    check_block(node.body, scope, BodyContext(kind, signature.return_type), context)
    if kind == "function" and signature.return_type is not t.VOID and not _always_returns(node.body):
        context.reporter.error(
            node.name_loc,
            f"'{node.name}' does not return a value on every path",
            node.name_loc + len(node.name),
        )


def _extern(node: s.ExternDeclaration, context: Context) -> None:
    inner = Scope(context.globals)
    variables = context.type_variables(inner, node.type_parameters, node.loc)
    klass = ExternClass(node.name, variables, {}, [], node)
    symbol = Symbol(node.name, "type", node.name_loc, ExternInstanceType(klass, ()), node=node)
    context.declare(context.globals, symbol)
    for method in node.methods:
        signature = _signature(method, inner, context)
        if method.name == node.name:
            klass.constructors.append(signature)
        else:
            klass.methods.setdefault(method.name, []).append(signature)


def _package(node: s.PackageDeclaration, context: Context) -> None:
    inner = Scope(context.globals)
    variables = context.type_variables(inner, node.type_parameters, node.loc)
    parameters = declare_parameters(node.parameters, inner, "parameter", context)
    signature = Signature(node.name, variables, parameters, t.VOID, node, inner)
    context.declare(context.globals, Symbol(node.name, "type", node.name_loc, PackageType(signature), node=node))


# ---- Parsers and controls ----


def _applicable(node: s.ParserDeclaration | s.ControlDeclaration, context: Context) -> None:
    inner = Scope(context.globals)
    variables = context.type_variables(inner, node.type_parameters, node.loc)
    parameters = declare_parameters(node.parameters, inner, "parameter", context)
    constructor = declare_parameters(node.constructor_parameters, inner, "constructor_parameter", context)
    node.signature, node.constructor_signature = parameters, constructor
    signature = Signature(node.name, variables, parameters, t.VOID, node, inner, constructor)
    if not variables:
        context.unfinished.append(node.name)
        _body(signature, context)
        context.unfinished.pop()
    context.declare(context.globals, Symbol(node.name, "type", node.name_loc, Applicable(signature), node=node))


def _control_body(node: s.ControlDeclaration, signature: Signature, context: Context) -> None:
    if node.body is None:
        return
    scope = signature.body_scope = Scope(signature.scope)
    for local in node.locals:
        if isinstance(local, s.FunctionDeclaration):
            _function(local, scope, context)
        elif isinstance(local, s.TableDeclaration):
            check_table(local, scope, context)
        else:
            check_statement(local, scope, BodyContext("control", t.VOID), context)
    check_block(node.body, scope, BodyContext("control", t.VOID), context)


def _parser_body(node: s.ParserDeclaration, signature: Signature, context: Context) -> None:
    if node.states is None:
        return
    scope = signature.body_scope = Scope(signature.scope)
    around = BodyContext("parser", t.VOID)
    for local in node.locals:
        if isinstance(local, s.ValueSetDeclaration):
            _value_set(local, scope, context)
        else:
            check_statement(local, scope, around, context)
    names: dict[str, s.StateDeclaration] = {}
    for state in node.states:
        if state.name in names or state.name in ("accept", "reject"):
            context.reporter.error(
                state.name_loc,
                f"state '{state.name}' is declared twice",
                state.name_loc + len(state.name),
            )
        names[state.name] = state
    if "start" not in names:
        context.reporter.error(
            node.name_loc, f"parser '{node.name}' has no state 'start'", node.name_loc + len(node.name)
        )
    for state in node.states:
        inner = Scope(scope)
        for statement in state.statements:
            check_statement(statement, inner, around, context)
        if state.transition is not None:
            _transition(state.transition, names, inner, context)
    if "start" in names and not _reaches_an_end(names):
        message = f"parser '{node.name}' never reaches accept or reject"
        context.reporter.error(node.name_loc, message, node.name_loc + len(node.name))


def _value_set(node: s.ValueSetDeclaration, scope: Scope, context: Context) -> None:
    type_ = resolve(node.type, scope, context)
    check(node.size, scope, context)
    node.symbol = Symbol(node.name, "value_set", node.name_loc, t.SetOf(type_), node=node)
    context.declare(scope, node.symbol)


def _transition(node: s.Transition, states: dict[str, s.StateDeclaration], scope: Scope, context: Context) -> None:
    known = {*states, "accept", "reject"}
    if node.keys is None:
        if node.state not in known:
            near = suggestion(node.state, known)
            context.error(node, f"state '{node.state}' is not declared{near}")
        return
    key_types = [check(key, scope, context) for key in node.keys]
    for key, type_ in zip(node.keys, key_types, strict=True):
        if type_ is not t.UNKNOWN and (type_ is t.INTEGER or not t.is_scalar(type_)):
            context.error(key, f"select takes numbers, bools, enums and errors, not {type_}")
            key.type = t.UNKNOWN
    for case in node.cases:
        if case.state not in known:
            context.error(case, f"state '{case.state}' is not declared{suggestion(case.state, known)}")
        case.label = _label(case.label, node.keys, scope, context)


def _label(label: s.Expression, keys: list[s.Expression], scope: Scope, context: Context) -> s.Expression:
    if isinstance(label, s.Wildcard):
        return label
    if isinstance(label, s.ListExpression):
        if len(label.items) != len(keys):
            context.error(label, f"select has {len(keys)} keys, but {len(label.items)} are given")
            return label
        label.items = [
            check_label(item, key.type or t.UNKNOWN, scope, context)
            for item, key in zip(label.items, keys, strict=True)
        ]
        return label
    if len(keys) == 1:
        return check_label(label, keys[0].type or t.UNKNOWN, scope, context)
    type_ = check(label, scope, context)
    if not isinstance(type_, t.SetOf) and type_ is not t.UNKNOWN:
        context.error(label, f"select has {len(keys)} keys, but one is given")
    return label


def _reaches_an_end(states: dict[str, s.StateDeclaration]) -> bool:
    """Return whether some path from start leads to accept or reject, or to a state without a transition."""
    reached = {"start"}
    pending = ["start"]
    while pending:
        state = states.get(pending.pop())
        if state is None or state.transition is None:
            return True
        following = {case.state for case in state.transition.cases}
        if state.transition.keys is None:
            following.add(state.transition.state)
        elif not any(isinstance(case.label, s.Wildcard) for case in state.transition.cases):
            return True
        pending += following - reached
        reached |= following
    return False


def _always_returns(node: s.Statement) -> bool:
    if isinstance(node, (s.Return, s.Exit)):
        return True
    if isinstance(node, s.Block):
        return any(map(_always_returns, node.statements))
    if isinstance(node, s.If):
        return node.otherwise is not None and _always_returns(node.then) and _always_returns(node.otherwise)
    if isinstance(node, s.Switch):
        bodies = [case.body for case in node.cases if case.body is not None]
        return any(case.label is None for case in node.cases) and all(map(_always_returns, bodies))
    return False


# ---- Declarations of gradbed.p4 ----


_DECLARATIONS = "gradbed.p4"
_DESCRIPTION = "switch/state/externs.py"
_DIRECTION = {"key": "in", "in": "in", "out": "out"}
"""The direction that P4 declares for a parameter of each role."""


def check_extern_kinds(checked: CheckedProgram, reporter: Reporter) -> None:
    """Report externs of gradbed.p4 without an ExternKind, and declarations that differ from theirs."""
    sources = reporter.sources
    for node in checked.program.declarations:
        if isinstance(node, s.ExternDeclaration) and node.name not in EXTERNS and sources.is_standard(node.loc):
            file = sources.file_at(node.loc)[0].path.name
            if file == _DECLARATIONS:
                message = f"'{node.name}' is declared in {file}, and not listed in EXTERNS ({_DESCRIPTION})"
                reporter.error(node.name_loc, message)
    for kind in EXTERNS.values():
        symbol = checked.globals.names.get(kind.name)
        if symbol is not None and isinstance(symbol.type, ExternInstanceType):
            _compare(symbol.type.klass, kind, reporter)


def _compare(declared: ExternClass, kind: ExternKind, reporter: Reporter) -> None:
    file = reporter.sources.file_at(declared.node.loc)[0].path.name

    def differ(signature: Signature | None, name: str, described: str) -> None:
        loc, shown = declared.node.name_loc, f"no {name}"
        if signature is not None:
            loc, shown = signature.loc, f"{name}({', '.join(map(_written, signature.parameters))})"
        reporter.error(loc, f"{file} declares {shown}, {_DESCRIPTION} has {described}: make them agree")

    for constructor in declared.constructors:
        if [each.name for each in constructor.parameters] != list(kind.attributes):
            differ(constructor, kind.name, _listed(list(kind.attributes)))
    for name, signatures in declared.methods.items():
        for signature in signatures:
            method = f"{kind.name}.{name}"
            roles = kind.methods.get(name)
            if roles is None:
                differ(signature, method, "no such method")
            elif [each.direction for each in signature.parameters] != [_DIRECTION[role] for role in roles]:
                differ(signature, method, _listed(roles))
            elif signature.return_type is not t.VOID:
                message = f"{method} returns {signature.return_type}: a method of {file} returns void, and gives its"
                reporter.error(signature.loc, f"{message} result by an out parameter")
    for name in kind.methods.keys() - declared.methods.keys():
        differ(None, f"{kind.name}.{name}", "one")


def _written(parameter: ParameterType) -> str:
    return f"{parameter.direction} {parameter.name}".strip()


def _listed(names: Sequence[str]) -> str:
    return f"({', '.join(names)})"
