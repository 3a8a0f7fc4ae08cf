"""Statements: types of what they assign, pass, test and return."""

from __future__ import annotations

from dataclasses import dataclass

from switch.compiler import syntax as s
from switch.compiler import types as t
from switch.compiler.checker.context import Context
from switch.compiler.diagnostics import suggestion
from switch.compiler.symbols import Applicable, ApplyResult, Extern, Package, Scope, Symbol, Table
from switch.compiler.values import Constant


@dataclass(frozen=True)
class Surroundings:
    """What a statement stands in. `kind`: function, action, control or parser."""

    kind: str
    return_type: t.Type
    in_loop: bool = False


class StatementChecker:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._expressions = context.expressions

    def block(self, block: s.Block, scope: Scope, around: Surroundings) -> None:
        inner = Scope(scope)
        for statement in block.statements:
            self.check(statement, inner, around)

    def check(self, node: s.Statement, scope: Scope, around: Surroundings) -> None:
        if isinstance(node, s.Assignment):
            self._assignment(node, scope)
        elif isinstance(node, s.CallStatement):
            self._call(node, scope, around)
        elif isinstance(node, s.If):
            node.condition = self._expressions.check_as(node.condition, scope, t.BOOL)
            self.check(node.then, Scope(scope), around)
            if node.otherwise is not None:
                self.check(node.otherwise, Scope(scope), around)
        elif isinstance(node, s.Block):
            self.block(node, scope, around)
        elif isinstance(node, s.VariableDeclaration):
            self.variable(node, scope)
        elif isinstance(node, s.ConstantDeclaration):
            self.constant(node, scope)
        elif isinstance(node, s.Instantiation):
            self.instantiation(node, scope)
        elif isinstance(node, s.Switch):
            self._switch(node, scope, around)
        elif isinstance(node, s.Return):
            self._return(node, scope, around)
        elif isinstance(node, s.Exit):
            if around.kind in ("function", "parser"):
                self._context.error(node, f"'exit' cannot stand in a {around.kind}")
        elif isinstance(node, s.For):
            self._for(node, scope, around)
        elif isinstance(node, s.ForIn):
            self._for_in(node, scope, around)
        elif isinstance(node, (s.Break, s.Continue)) and not around.in_loop:
            self._context.error(node, "this can only stand in a loop")

    def _assignment(self, node: s.Assignment, scope: Scope) -> None:
        target = self._expressions.check(node.target, scope)
        writable = self._expressions.require_writable(node.target, "by an assignment")
        if node.operator != "=":
            node.source = node.compound = s.Binary(node.loc, node.end, node.operator, node.target, node.source)
        source = self._expressions.check(node.source, scope)
        if not writable or target is t.UNKNOWN or source is t.UNKNOWN:
            return
        if isinstance(target, (Extern, Applicable, Table)):
            self._context.error(node, f"{target} cannot be assigned")
            return
        node.source = self._expressions.coerce(node.source, target)

    def _call(self, node: s.CallStatement, scope: Scope, around: Surroundings) -> None:
        self._expressions.check(node.call, scope)
        call = node.call
        assert isinstance(call, s.Call)
        target = call.target
        if target is None:
            return
        if target.kind in ("constructor", "size_method"):
            self._context.error(node, "this call has no effect")
        elif target.kind.startswith("apply") and around.kind in ("function", "action"):
            hint = (
                "apply the table in the apply block, and act on its result there" if around.kind == "action" else ""
            )
            self._context.error(node, f"apply() cannot stand in {_with_article(around.kind)}", hint=hint)
        elif target.kind == "action" and around.kind in ("function", "parser"):
            self._context.error(node, f"an action cannot be called in a {around.kind}")
        elif target.kind == "apply_table" and around.kind == "parser":
            self._context.error(node, "a table cannot be applied in a parser")

    def _return(self, node: s.Return, scope: Scope, around: Surroundings) -> None:
        if around.kind == "parser":
            self._context.error(node, "'return' cannot stand in a parser")
        elif node.value is None:
            if around.return_type is not t.VOID:
                self._context.error(node, f"expected a value of type {around.return_type} to return")
        elif around.return_type is t.VOID:
            self._expressions.check(node.value, scope)
            self._context.error(node, f"{_with_article(around.kind)} cannot return a value here")
        else:
            node.value = self._expressions.check_as(node.value, scope, around.return_type)

    def _switch(self, node: s.Switch, scope: Scope, around: Surroundings) -> None:
        type_ = self._expressions.check(node.expression, scope)
        if type_ is t.ACTION_RUN:
            self._switch_on_action(node)
        elif type_ is not t.UNKNOWN:
            self._switch_on_value(node, type_, scope)
        defaults = [case for case in node.cases if case.label is None]
        if len(defaults) > 1:
            self._context.error(defaults[1], "a switch has one default")
        elif defaults and node.cases[-1] is not defaults[0]:
            self._context.error(defaults[0], "default must be the last case")
        if node.cases and node.cases[-1].body is None:
            self._context.error(node.cases[-1], "the last case needs a block")
        for case in node.cases:
            if case.body is not None:
                self.block(case.body, scope, around)

    def _switch_on_action(self, node: s.Switch) -> None:
        assert isinstance(node.expression, s.Member)
        result = node.expression.base.type
        assert isinstance(result, ApplyResult) and isinstance(result.node, s.TableDeclaration)
        known = {ref.name for ref in result.node.actions}
        seen: set[str] = set()
        for case in node.cases:
            if case.label is None:
                continue
            if not isinstance(case.label, s.Name) or case.label.name not in known:
                near = suggestion(case.label.name, known) if isinstance(case.label, s.Name) else ""
                self._context.error(case.label, f"expected one of the actions of table '{result.node.name}'{near}")
                continue
            if case.label.name in seen:
                self._context.error(case.label, f"action '{case.label.name}' has a case already")
            seen.add(case.label.name)

    def _switch_on_value(self, node: s.Switch, type_: t.Type, scope: Scope) -> None:
        if type_ is t.INTEGER or not (t.is_scalar(type_) and type_ is not t.BOOL):
            self._context.error(node.expression, f"a switch takes a number, an enum or an error, not {type_}")
            return
        seen: set[Constant] = set()
        for case in node.cases:
            if case.label is None:
                continue
            case.label = self._expressions.check_as(case.label, scope, type_)
            value = case.label.value
            if case.label.type is t.UNKNOWN:
                continue
            if value is None:
                self._context.error(case.label, "a label must be known at compile time")
            elif value in seen:
                self._context.error(case.label, "this value has a case already")
            else:
                seen.add(value)

    def _for(self, node: s.For, scope: Scope, around: Surroundings) -> None:
        inner = Scope(scope)
        for statement in node.initial:
            self.check(statement, inner, around)
        node.condition = self._expressions.check_as(node.condition, inner, t.BOOL)
        for statement in node.update:
            self.check(statement, inner, around)
        self.check(node.body, Scope(inner), Surroundings(around.kind, around.return_type, in_loop=True))

    def _for_in(self, node: s.ForIn, scope: Scope, around: Surroundings) -> None:
        inner = Scope(scope)
        self.variable(node.variable, inner)
        symbol = node.variable.symbol
        assert symbol is not None
        collection = self._expressions.check(node.collection, scope)
        if isinstance(collection, t.SetOf) and isinstance(node.collection, s.Binary):
            if node.collection.operator == "..":
                node.collection.left = self._expressions.coerce(node.collection.left, symbol.type)
                node.collection.right = self._expressions.coerce(node.collection.right, symbol.type)
        elif isinstance(collection, (t.Stack, t.ListOf)):
            if collection.element != symbol.type and symbol.type is not t.UNKNOWN:
                self._context.error(node.variable, f"expected {collection.element}, but this is {symbol.type}")
        elif collection is not t.UNKNOWN:
            what = f"a loop runs over a range, a list or a header stack, not {collection}"
            self._context.error(node.collection, what)
        self.check(node.body, Scope(inner), Surroundings(around.kind, around.return_type, in_loop=True))

    # --- declarations among statements ---

    def variable(self, node: s.VariableDeclaration, scope: Scope) -> None:
        type_ = self._context.types.resolve(node.type, scope)
        if type_ in (t.VOID, t.INTEGER, t.MATCH_KIND, t.ANY) or isinstance(type_, (Extern, Applicable, Package)):
            hint = "give it a width, for instance bit<32> or int<32>" if type_ is t.INTEGER else ""
            self._context.error(node.type, f"a variable cannot have type {type_}", hint=hint)
            type_ = t.UNKNOWN
        if node.initial is not None:
            node.initial = self._expressions.check_as(node.initial, scope, type_)
        node.symbol = Symbol(node.name, "variable", node.name_loc, type_, node=node)
        self._context.declare(scope, node.symbol)

    def constant(self, node: s.ConstantDeclaration, scope: Scope) -> None:
        type_ = self._context.types.resolve(node.type, scope)
        node.initial = self._expressions.check_as(node.initial, scope, type_)
        if node.initial.type is not t.UNKNOWN and not _is_constant(node.initial):
            self._context.error(node.initial, "the value of a constant must be known at compile time")
        self._context.declare(scope, Symbol(node.name, "constant", node.name_loc, type_, node.initial.value, node))

    def instantiation(self, node: s.Instantiation, scope: Scope) -> None:
        call = s.Call(node.loc, node.end, s.TypeName(node.type.loc, node.type.end, node.type), [], node.arguments)
        type_ = self._expressions.check(call, scope)
        node.call = call
        node.symbol = Symbol(node.name, "instance", node.name_loc, type_, node=node)
        self._context.declare(scope, node.symbol)


def _is_constant(expression: s.Expression) -> bool:
    """Whether a list is made of constants alone."""
    if expression.value is not None:
        return True
    if isinstance(expression, s.ListExpression):
        return all(map(_is_constant, expression.items))
    if isinstance(expression, s.StructExpression):
        return all(_is_constant(item) for _, item in expression.fields)
    if isinstance(expression, (s.Convert, s.Cast)):
        return _is_constant(expression.operand)
    if isinstance(expression, s.Name) and expression.symbol is not None:
        return expression.symbol.kind in ("constant", "constructor_parameter")
    if isinstance(expression, s.Member):
        return _is_constant(expression.base)
    if isinstance(expression, s.Binary):
        return _is_constant(expression.left) and _is_constant(expression.right)
    return isinstance(expression, (s.InvalidHeader, s.DefaultValue))


def _with_article(kind: str) -> str:
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"
