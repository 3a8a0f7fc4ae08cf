"""Statements: types of what they assign, pass, test and return (P4_16 1.2.5, section 12)."""

from __future__ import annotations

from dataclasses import dataclass

from gradbed.switch.compiler import syntax as s
from gradbed.switch.compiler import types as t
from gradbed.switch.compiler.checker.context import Context, check
from gradbed.switch.compiler.checker.conversions import check_as, coerce
from gradbed.switch.compiler.checker.expressions import require_writable
from gradbed.switch.compiler.checker.type_resolver import resolve
from gradbed.switch.compiler.diagnostics import suggestion
from gradbed.switch.compiler.symbols import (
    Applicable,
    ApplyResult,
    ExternInstanceType,
    PackageType,
    Scope,
    Symbol,
    TableType,
)
from gradbed.switch.compiler.values import Constant


@dataclass(frozen=True)
class BodyContext:
    """The body that contains a statement."""

    kind: str
    """function, action, control or parser."""
    return_type: t.Type
    in_loop: bool = False


def check_block(block: s.Block, scope: Scope, around: BodyContext, context: Context) -> None:
    inner = Scope(scope)
    for statement in block.statements:
        check_statement(statement, inner, around, context)


def check_statement(node: s.Statement, scope: Scope, around: BodyContext, context: Context) -> None:
    match node:
        case s.Assignment():
            _assignment(node, scope, context)
        case s.CallStatement():
            _call(node, scope, around, context)
        case s.If():
            node.condition = check_as(node.condition, scope, t.BOOL, context)
            check_statement(node.then, Scope(scope), around, context)
            if node.otherwise is not None:
                check_statement(node.otherwise, Scope(scope), around, context)
        case s.Block():
            check_block(node, scope, around, context)
        case s.VariableDeclaration():
            declare_variable(node, scope, context)
        case s.ConstantDeclaration():
            declare_constant(node, scope, context)
        case s.Instantiation():
            declare_instance(node, scope, context)
        case s.Switch():
            _switch(node, scope, around, context)
        case s.Return():
            _return(node, scope, around, context)
        case s.For():
            _for(node, scope, around, context)
        case s.ForIn():
            _for_in(node, scope, around, context)
        case s.Exit() if around.kind in ("function", "parser"):
            context.error(node, f"'exit' is not allowed in a {around.kind}")
        case s.Break() | s.Continue() if not around.in_loop:
            context.error(node, "this is only allowed in a loop")


def _assignment(node: s.Assignment, scope: Scope, context: Context) -> None:
    target = check(node.target, scope, context)
    writable = require_writable(node.target, "by an assignment", context)
    if node.operator != "=":
        node.source = node.compound = s.Binary(node.loc, node.end, node.operator, node.target, node.source)
    source = check(node.source, scope, context)
    if not writable or target is t.UNKNOWN or source is t.UNKNOWN:
        return
    if isinstance(target, (ExternInstanceType, Applicable, TableType)):
        context.error(node, f"{target} cannot be assigned")
        return
    node.source = coerce(node.source, target, context)


def _call(node: s.CallStatement, scope: Scope, around: BodyContext, context: Context) -> None:
    check(node.call, scope, context)
    call = node.call
    assert isinstance(call, s.Call)
    target = call.target
    if target is None:
        return
    if target.kind in ("constructor", "size_method"):
        context.error(node, "this call has no effect")
    elif target.kind.startswith("apply") and around.kind in ("function", "action"):
        hint = "apply the table in the apply block, and act on its result there" if around.kind == "action" else ""
        context.error(node, f"apply() is not allowed in {_with_article(around.kind)}", hint=hint)
    elif target.kind == "action" and around.kind in ("function", "parser"):
        context.error(node, f"an action cannot be called in a {around.kind}")
    elif target.kind == "apply_table" and around.kind == "parser":
        context.error(node, "a table cannot be applied in a parser")


def _return(node: s.Return, scope: Scope, around: BodyContext, context: Context) -> None:
    if around.kind == "parser":
        context.error(node, "'return' is not allowed in a parser")
    elif node.value is None:
        if around.return_type is not t.VOID:
            context.error(node, f"expected a value of type {around.return_type} to return")
    elif around.return_type is t.VOID:
        check(node.value, scope, context)
        context.error(node, f"{_with_article(around.kind)} cannot return a value here")
    else:
        node.value = check_as(node.value, scope, around.return_type, context)


def _switch(node: s.Switch, scope: Scope, around: BodyContext, context: Context) -> None:
    type_ = check(node.expression, scope, context)
    if type_ is t.ACTION_RUN:
        _switch_on_action(node, context)
    elif type_ is not t.UNKNOWN:
        _switch_on_value(node, type_, scope, context)
    defaults = [case for case in node.cases if case.label is None]
    if len(defaults) > 1:
        context.error(defaults[1], "a switch has one default")
    elif defaults and node.cases[-1] is not defaults[0]:
        context.error(defaults[0], "default must be the last case")
    if node.cases and node.cases[-1].body is None:
        context.error(node.cases[-1], "the last case needs a block")
    for case in node.cases:
        if case.body is not None:
            check_block(case.body, scope, around, context)


def _switch_on_action(node: s.Switch, context: Context) -> None:
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
            context.error(case.label, f"expected one of the actions of table '{result.node.name}'{near}")
            continue
        if case.label.name in seen:
            context.error(case.label, f"action '{case.label.name}' has a case already")
        seen.add(case.label.name)


def _switch_on_value(node: s.Switch, type_: t.Type, scope: Scope, context: Context) -> None:
    if type_ is t.INTEGER or not (t.is_scalar(type_) and type_ is not t.BOOL):
        context.error(node.expression, f"a switch takes a number, an enum or an error, not {type_}")
        return
    seen: set[Constant] = set()
    for case in node.cases:
        if case.label is None:
            continue
        case.label = check_as(case.label, scope, type_, context)
        value = case.label.value
        if case.label.type is t.UNKNOWN:
            continue
        if value is None:
            context.error(case.label, "a label must be known at compile time")
        elif value in seen:
            context.error(case.label, "this value has a case already")
        else:
            seen.add(value)


def _for(node: s.For, scope: Scope, around: BodyContext, context: Context) -> None:
    inner = Scope(scope)
    for statement in node.initial:
        check_statement(statement, inner, around, context)
    node.condition = check_as(node.condition, inner, t.BOOL, context)
    for statement in node.update:
        check_statement(statement, inner, around, context)
    check_statement(node.body, Scope(inner), BodyContext(around.kind, around.return_type, in_loop=True), context)


def _for_in(node: s.ForIn, scope: Scope, around: BodyContext, context: Context) -> None:
    inner = Scope(scope)
    declare_variable(node.variable, inner, context)
    symbol = node.variable.symbol
    assert symbol is not None
    collection = check(node.collection, scope, context)
    if isinstance(collection, t.SetOf) and isinstance(node.collection, s.Binary):
        if node.collection.operator == "..":
            node.collection.left = coerce(node.collection.left, symbol.type, context)
            node.collection.right = coerce(node.collection.right, symbol.type, context)
    elif isinstance(collection, (t.Stack, t.ListOf)):
        if collection.element != symbol.type and symbol.type is not t.UNKNOWN:
            context.error(node.variable, f"expected {collection.element}, but this is {symbol.type}")
    elif collection is not t.UNKNOWN:
        what = f"a loop runs over a range, a list or a header stack, not {collection}"
        context.error(node.collection, what)
    check_statement(node.body, Scope(inner), BodyContext(around.kind, around.return_type, in_loop=True), context)


# ---- Declarations among statements ----


def declare_variable(node: s.VariableDeclaration, scope: Scope, context: Context) -> None:
    type_ = resolve(node.type, scope, context)
    if type_ in (t.VOID, t.INTEGER, t.MATCH_KIND, t.ANY) or isinstance(
        type_, (ExternInstanceType, Applicable, PackageType)
    ):
        hint = "give it a width, for instance bit<32> or int<32>" if type_ is t.INTEGER else ""
        context.error(node.type, f"a variable cannot have type {type_}", hint=hint)
        type_ = t.UNKNOWN
    if node.initial is not None:
        node.initial = check_as(node.initial, scope, type_, context)
    node.symbol = Symbol(node.name, "variable", node.name_loc, type_, node=node)
    context.declare(scope, node.symbol)


def declare_constant(node: s.ConstantDeclaration, scope: Scope, context: Context) -> None:
    type_ = resolve(node.type, scope, context)
    node.initial = check_as(node.initial, scope, type_, context)
    if node.initial.type is not t.UNKNOWN and not _is_constant(node.initial):
        context.error(node.initial, "the value of a constant must be known at compile time")
    context.declare(scope, Symbol(node.name, "constant", node.name_loc, type_, node.initial.value, node))


def declare_instance(node: s.Instantiation, scope: Scope, context: Context) -> None:
    call = s.Call(node.loc, node.end, s.TypeName(node.type.loc, node.type.end, node.type), [], node.arguments)
    type_ = check(call, scope, context)
    node.call = call
    node.symbol = Symbol(node.name, "instance", node.name_loc, type_, node=node)
    context.declare(scope, node.symbol)


def _is_constant(expression: s.Expression) -> bool:
    """Return whether a list consists of constants only."""
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
