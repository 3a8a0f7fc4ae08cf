"""Top-level declarations, parsers and controls."""

from __future__ import annotations

from dataclasses import dataclass

from switch.compiler import syntax as s
from switch.compiler import types as t
from switch.compiler.checker.calls import CallChecker
from switch.compiler.checker.context import Context
from switch.compiler.checker.expressions import ExpressionChecker
from switch.compiler.checker.statements import StatementChecker, Surroundings
from switch.compiler.checker.tables import check_label, check_table
from switch.compiler.checker.type_resolver import TypeResolver
from switch.compiler.diagnostics import Reporter, suggestion
from switch.compiler.symbols import Applicable, Extern, ExternClass, Package, Scope, Signature, Symbol
from switch.compiler.values import Symbolic


@dataclass(frozen=True)
class CheckedProgram:
    """`errors`: the members of `error` in order. `main`: the package instance, None if there is none."""

    program: s.Program
    globals: Scope
    errors: dict[str, Symbolic]
    main: s.Instantiation | None


def check_program(program: s.Program, reporter: Reporter) -> CheckedProgram:
    """Check everything; what is wrong is in the reporter."""
    context = Context(reporter)
    context.types = TypeResolver(context)
    context.expressions = ExpressionChecker(context)
    context.calls = CallChecker(context)
    context.statements = StatementChecker(context)
    context.globals.names["error"] = Symbol("error", "namespace", program.loc, t.ERROR)
    checker = _ProgramChecker(context)
    for declaration in program.declarations:
        checker.declaration(declaration)
        checker.check_pending()
    main = context.globals.names.get("main")
    instance = main.node if main is not None and isinstance(main.node, s.Instantiation) else None
    return CheckedProgram(program, context.globals, context.errors, instance)


class _ProgramChecker:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._scope = context.globals

    def declaration(self, node: s.Declaration) -> None:
        context = self._context
        if isinstance(node, s.StructDeclaration):
            self._struct(node)
        elif isinstance(node, s.EnumDeclaration):
            self._enum(node)
        elif isinstance(node, s.ErrorDeclaration):
            self._error(node)
        elif isinstance(node, s.TypedefDeclaration):
            self._typedef(node)
        elif isinstance(node, s.ConstantDeclaration):
            context.statements.constant(node, self._scope)
        elif isinstance(node, s.Instantiation):
            context.statements.instantiation(node, self._scope)
            if node.symbol is not None and isinstance(node.symbol.type, Applicable):
                kind = "parser" if isinstance(node.symbol.type.signature.node, s.ParserDeclaration) else "control"
                context.error(node, f"a {kind} cannot be instantiated here, only inside a control or parser")
        elif isinstance(node, s.FunctionDeclaration):
            self._function(node, self._scope)
        elif isinstance(node, s.ExternDeclaration):
            self._extern(node)
        elif isinstance(node, (s.ParserDeclaration, s.ControlDeclaration)):
            self._applicable(node)
        elif isinstance(node, s.PackageDeclaration):
            self._package(node)
        else:
            context.error(node, "a variable cannot stand outside parsers and controls")

    def check_pending(self) -> None:
        """Bodies of generic functions, parsers and controls that have got their type arguments."""
        while self._context.pending:
            self._body(self._context.pending.pop())

    def _body(self, signature: Signature) -> None:
        node = signature.node
        if isinstance(node, s.FunctionDeclaration):
            self._function_body(node, signature, signature.scope)
        elif isinstance(node, s.ParserDeclaration):
            self._parser_body(node, signature)
        elif isinstance(node, s.ControlDeclaration):
            self._control_body(node, signature)

    # --- types ---

    def _struct(self, node: s.StructDeclaration) -> None:
        if node.type_parameters:
            generic = t.Struct(node.kind, node.name, {}, node)
            self._context.declare(self._scope, Symbol(node.name, "type", node.name_loc, generic, node=node))
            return
        struct = t.Struct(node.kind, node.name, {}, node)
        self._context.types.fill_struct(struct, self._scope)
        self._context.declare(self._scope, Symbol(node.name, "type", node.name_loc, struct, node=node))

    def _enum(self, node: s.EnumDeclaration) -> None:
        underlying = None
        if node.underlying is not None:
            underlying = self._context.types.resolve(node.underlying, self._scope)
            if not isinstance(t.representation(underlying), (t.Bit, t.Int)):
                if underlying is not t.UNKNOWN:
                    self._context.error(node.underlying, f"an enum is stored as bit<N> or int<N>, not {underlying}")
                underlying = t.bit(32)
            underlying = t.representation(underlying)
        enum = t.Enum(node.name, tuple(member.name for member in node.members), node, underlying)
        for position, member in enumerate(node.members):
            if member.name in enum.values:
                self._context.error(member, f"'{member.name}' is declared twice")
            number = position
            if underlying is not None and member.value is not None:
                value = self._context.expressions.check_as(member.value, self._scope, underlying)
                if isinstance(value.value, int):
                    number = value.value
                elif value.type is not t.UNKNOWN:
                    self._context.error(member, "the value of a member must be known at compile time")
            enum.values[member.name] = number
        self._context.declare(self._scope, Symbol(node.name, "type", node.name_loc, enum, node=node))

    def _error(self, node: s.ErrorDeclaration) -> None:
        for member in node.members:
            if node.name == "match_kind":
                self._context.match_kinds.add(member.name)
            elif member.name in self._context.errors:
                self._context.error(member, f"error '{member.name}' is declared twice")
            else:
                number = len(self._context.errors)
                self._context.errors[member.name] = Symbolic(t.ERROR, member.name, number)

    def _typedef(self, node: s.TypedefDeclaration) -> None:
        assert isinstance(node.type, s.TypeSyntax)
        type_ = self._context.types.resolve(node.type, self._scope)
        if node.is_new and type_ is not t.UNKNOWN:
            if not (isinstance(t.representation(type_), (t.Bit, t.Int)) or type_ is t.BOOL):
                self._context.error(node.type, f"'type' needs bit<N>, int<N> or bool, not {type_}")
            type_ = t.NewType(node.name, type_, node)
        self._context.declare(self._scope, Symbol(node.name, "type", node.name_loc, type_, node=node))

    # --- functions, externs, packages ---

    def _signature(self, node: s.FunctionDeclaration, scope: Scope) -> Signature:
        inner = Scope(scope)
        variables = self._context.type_variables(inner, node.type_parameters, node.loc)
        result: t.Type = t.VOID
        if node.return_type is not None:
            result = self._context.types.resolve(node.return_type, inner)
        parameters = self._context.parameters(node.parameters, inner, "parameter")
        node.signature = parameters
        node.result = result
        return Signature(node.name, variables, parameters, result, node, inner)

    def _function(self, node: s.FunctionDeclaration, scope: Scope) -> None:
        signature = self._signature(node, scope)
        kind = "action" if node.return_type is None else "function"
        if kind == "action":
            self._action_parameters(signature)
        if not signature.variables:
            self._context.unfinished.append(node.name)
            self._function_body(node, signature, signature.scope)
            self._context.unfinished.pop()
        existing = scope.names.get(node.name)
        if existing is not None and existing.kind == "function" == kind:
            if any(len(other.parameters) == len(signature.parameters) for other in existing.functions):
                count = len(signature.parameters)
                self._context.error(node, f"'{node.name}' with {count} parameter(s) is declared twice")
            existing.functions.append(signature)
            return
        symbol = Symbol(node.name, kind, node.name_loc, t.VOID, node=node, functions=[signature])
        self._context.declare(scope, symbol)

    def _action_parameters(self, signature: Signature) -> None:
        """Those without a direction come from the control plane, and come last."""
        undirected = False
        for parameter in signature.parameters:
            if parameter.direction and parameter.type is t.INTEGER:
                self._context.error(parameter, "a parameter of type int cannot have a direction")
            elif not parameter.direction:
                undirected = True
                if parameter.type is not t.UNKNOWN and not t.is_scalar(parameter.type):
                    self._context.error(
                        parameter, f"action data must be a number, a bool or an enum, not {parameter.type}"
                    )
            elif undirected:
                self._context.error(parameter, "parameters with a direction come before those without")

    def _function_body(self, node: s.FunctionDeclaration, signature: Signature, scope: Scope) -> None:
        if node.body is None:
            return
        kind = "action" if node.return_type is None else "function"
        self._context.statements.block(node.body, scope, Surroundings(kind, signature.return_type))
        if kind == "function" and signature.return_type is not t.VOID and not _always_returns(node.body):
            self._context.reporter.error(
                node.name_loc,
                f"'{node.name}' does not return a value on every path",
                node.name_loc + len(node.name),
            )

    def _extern(self, node: s.ExternDeclaration) -> None:
        inner = Scope(self._scope)
        variables = self._context.type_variables(inner, node.type_parameters, node.loc)
        klass = ExternClass(node.name, variables, {}, [], node)
        symbol = Symbol(node.name, "type", node.name_loc, Extern(klass, ()), node=node)
        self._context.declare(self._scope, symbol)
        for method in node.methods:
            signature = self._signature(method, inner)
            if method.name == node.name:
                klass.constructors.append(signature)
            else:
                klass.methods.setdefault(method.name, []).append(signature)

    def _package(self, node: s.PackageDeclaration) -> None:
        inner = Scope(self._scope)
        variables = self._context.type_variables(inner, node.type_parameters, node.loc)
        parameters = self._context.parameters(node.parameters, inner, "parameter")
        signature = Signature(node.name, variables, parameters, t.VOID, node, inner)
        self._context.declare(self._scope, Symbol(node.name, "type", node.name_loc, Package(signature), node=node))

    # --- parsers and controls ---

    def _applicable(self, node: s.ParserDeclaration | s.ControlDeclaration) -> None:
        inner = Scope(self._scope)
        variables = self._context.type_variables(inner, node.type_parameters, node.loc)
        parameters = self._context.parameters(node.parameters, inner, "parameter")
        constructor = self._context.parameters(node.constructor_parameters, inner, "constructor_parameter")
        node.signature, node.constructor_signature = parameters, constructor
        signature = Signature(node.name, variables, parameters, t.VOID, node, inner, constructor)
        if not variables:
            self._context.unfinished.append(node.name)
            self._body(signature)
            self._context.unfinished.pop()
        self._context.declare(self._scope, Symbol(node.name, "type", node.name_loc, Applicable(signature), node=node))

    def _control_body(self, node: s.ControlDeclaration, signature: Signature) -> None:
        if node.body is None:
            return
        scope = signature.body_scope = Scope(signature.scope)
        for local in node.locals:
            if isinstance(local, s.FunctionDeclaration):
                self._function(local, scope)
            elif isinstance(local, s.TableDeclaration):
                check_table(self._context, local, scope)
            else:
                self._context.statements.check(local, scope, Surroundings("control", t.VOID))
        self._context.statements.block(node.body, scope, Surroundings("control", t.VOID))

    def _parser_body(self, node: s.ParserDeclaration, signature: Signature) -> None:
        if node.states is None:
            return
        scope = signature.body_scope = Scope(signature.scope)
        around = Surroundings("parser", t.VOID)
        for local in node.locals:
            if isinstance(local, s.ValueSetDeclaration):
                self._value_set(local, scope)
            else:
                self._context.statements.check(local, scope, around)
        names: dict[str, s.StateDeclaration] = {}
        for state in node.states:
            if state.name in names or state.name in ("accept", "reject"):
                self._context.reporter.error(
                    state.name_loc,
                    f"state '{state.name}' is declared twice",
                    state.name_loc + len(state.name),
                )
            names[state.name] = state
        if "start" not in names:
            self._context.reporter.error(
                node.name_loc, f"parser '{node.name}' has no state 'start'", node.name_loc + len(node.name)
            )
        for state in node.states:
            inner = Scope(scope)
            for statement in state.statements:
                self._context.statements.check(statement, inner, around)
            if state.transition is not None:
                self._transition(state.transition, names, inner)
        if "start" in names and not _reaches_an_end(names):
            message = f"parser '{node.name}' never reaches accept or reject"
            self._context.reporter.error(node.name_loc, message, node.name_loc + len(node.name))

    def _value_set(self, node: s.ValueSetDeclaration, scope: Scope) -> None:
        type_ = self._context.types.resolve(node.type, scope)
        self._context.expressions.check(node.size, scope)
        node.symbol = Symbol(node.name, "value_set", node.name_loc, t.SetOf(type_), node=node)
        self._context.declare(scope, node.symbol)

    def _transition(self, node: s.Transition, states: dict[str, s.StateDeclaration], scope: Scope) -> None:
        known = {*states, "accept", "reject"}
        if node.keys is None:
            if node.state not in known:
                near = suggestion(node.state, known)
                self._context.error(node, f"state '{node.state}' is not declared{near}")
            return
        key_types = [self._context.expressions.check(key, scope) for key in node.keys]
        for key, type_ in zip(node.keys, key_types, strict=True):
            if type_ is not t.UNKNOWN and (type_ is t.INTEGER or not t.is_scalar(type_)):
                self._context.error(key, f"select takes numbers, bools, enums and errors, not {type_}")
                key.type = t.UNKNOWN
        for case in node.cases:
            if case.state not in known:
                self._context.error(case, f"state '{case.state}' is not declared{suggestion(case.state, known)}")
            case.label = self._label(case.label, node.keys, scope)

    def _label(self, label: s.Expression, keys: list[s.Expression], scope: Scope) -> s.Expression:
        if isinstance(label, s.Wildcard):
            return label
        if isinstance(label, s.ListExpression):
            if len(label.items) != len(keys):
                self._context.error(label, f"select has {len(keys)} keys, but {len(label.items)} are given")
                return label
            label.items = [
                check_label(self._context, item, key.type or t.UNKNOWN, scope)
                for item, key in zip(label.items, keys, strict=True)
            ]
            return label
        if len(keys) == 1:
            return check_label(self._context, label, keys[0].type or t.UNKNOWN, scope)
        type_ = self._context.expressions.check(label, scope)
        if not isinstance(type_, t.SetOf) and type_ is not t.UNKNOWN:
            self._context.error(label, f"select has {len(keys)} keys, but one is given")
        return label


def _reaches_an_end(states: dict[str, s.StateDeclaration]) -> bool:
    """Whether some way from start leads to accept or reject, as it does where nothing else follows."""
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
