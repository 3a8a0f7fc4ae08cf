"""Calls: functions, actions, parsers and controls are inlined."""

from __future__ import annotations

from gradbed.switch.compiler import ir
from gradbed.switch.compiler import syntax as s
from gradbed.switch.compiler import types as t
from gradbed.switch.compiler.ir.values import Instance, LValue, NoValue, StackVariable, Value
from gradbed.switch.compiler.lower.context import Code, Frame, lower, lower_block, value_by_type, value_of
from gradbed.switch.compiler.lower.expressions import lvalue_of
from gradbed.switch.compiler.lower.externs import call_extern
from gradbed.switch.compiler.lower.inlining import (
    Arguments,
    anonymous_instance,
    arguments_of,
    bind,
    construct,
    copy_back,
    lower_variables,
    state_of,
)
from gradbed.switch.compiler.lower.parsers import parser_states
from gradbed.switch.compiler.lower.tables import apply_table, record_call
from gradbed.switch.compiler.lower.values import part, preserved, read, set_valid, validity
from gradbed.switch.compiler.symbols import ApplyResult, Signature


@value_by_type.register(s.Call)
def _call(node: s.Call, frame: Frame, code: Code) -> Value:
    target = node.target
    assert target is not None
    match target.kind:
        case "header_method":
            return _header_method(node, target, frame, code)
        case "function" | "action":
            return _inline(node, target, frame, code)
        case "extern_function" | "extern_method":
            return call_extern(node, target, frame, code)
        case "constructor":
            return construct(node, frame, "", code.program)
        case "stack_method":
            _stack_method(node, target, frame, code)
        case "apply_table":
            apply_table(node, frame, code)
        case "apply" | "apply_type":
            _apply(node, target, frame, code)
    return NoValue()


@value_by_type.register(s.Member)
def _member(node: s.Member, frame: Frame, code: Code) -> Value:
    if isinstance(node.base.type, ApplyResult):
        return _apply_result(node, frame, code)
    return part(value_of(node.base, frame, code), node.name, node, code)


def _apply_result(node: s.Member, frame: Frame, code: Code) -> ir.Expr:
    """Return table.apply().hit or .miss as a value."""
    result = code.storage.scalar(t.BOOL, "tmp")
    assert isinstance(node.base, s.Call)
    apply = apply_table(node.base, frame, code, kind="hit")
    for name in ("hit", "miss"):
        value = ir.Const(t.BOOL, int(name == node.name))
        apply.branches.setdefault(name, []).append(ir.LoweredAssign(node.loc, node.end, result, value))
    return result


# ---- Methods of headers and stacks ----


def _header_method(node: s.Call, target: s.CallTarget, frame: Frame, code: Code) -> Value:
    assert target.receiver is not None
    if target.name == "isValid":
        return validity(value_of(target.receiver, frame, code), node, code)
    set_valid(lvalue_of(target.receiver, frame, code), target.name == "setValid", node, code)
    return NoValue()


def _stack_method(node: s.Call, target: s.CallTarget, frame: Frame, code: Code) -> None:
    assert target.receiver is not None
    lvalue = lvalue_of(target.receiver, frame, code)
    if not isinstance(lvalue, StackVariable):
        code.error(node, "this header stack cannot be shifted on this target")
        return
    count = target.bound[0]
    assert count is not None and isinstance(count.value, int)
    kind = "header_stack" if lvalue in code.storage.stacks else "header_union_stack"
    name = "push" if target.name == "push_front" else "pop"
    code.primitive(node, name, ir.Ref(kind, lvalue.name), ir.LoweredNumber(count.value))


# ---- Functions and actions ----


def _inline(node: s.Call, target: s.CallTarget, frame: Frame, code: Code) -> Value:
    signature = target.declaration
    assert isinstance(signature, Signature)
    declaration = signature.node
    assert isinstance(declaration, s.FunctionDeclaration) and declaration.body is not None
    is_action = target.kind == "action"
    with code.inlined(node):
        arguments = arguments_of(target.parameters, target.bound, frame, code)
        closure = _declaring_frame(signature, frame) if is_action else None
        outer, code.in_action = code.in_action, code.in_action or is_action
        callee = Frame(closure or code.program.globals, frame.prefix)
        copy_out = bind(target.parameters, arguments, callee, node, code, closed=not is_action)
        code.copy_outs.append(copy_out)
        begin = len(code.statements)
        result = lower_body(declaration.body, signature.return_type, callee, node, code)
        code.in_action = outer
        if is_action and not outer:
            record_call(declaration, closure.prefix if closure else "", code.statements[begin:], code.program)
        code.copy_outs.pop()
        end = len(code.statements)
        copy_back(copy_out, node, code)
        return preserved(result, end, node, code)


def _declaring_frame(signature: Signature, frame: Frame) -> Frame | None:
    """Return the frame of the control that declares an action: the innermost one with the scope of its symbol."""
    return next((around for around in frame.outwards() if around.owns is signature.scope.parent), None)


def lower_body(body: s.Block, return_type: t.Type, frame: Frame, node: s.Node, code: Code) -> Value:
    """Lower a body with its return statements; return the value that it returns."""
    last = body.statements[-1] if body.statements else None
    returns = [inner for inner in s.walk(body) if isinstance(inner, s.Return)]
    if not returns or (returns == [last]):
        for statement in body.statements if not returns else body.statements[:-1]:
            lower(statement, frame, code)
        if isinstance(last, s.Return) and last.value is not None:
            return read(value_of(last.value, frame, code), last, code)
        return NoValue()
    result: LValue | None = None
    if return_type is not t.VOID:
        result = code.storage.variable(return_type, "retval")
    label = ir.Label("return")
    code.returns.append((label, result))
    with code.branch() as inlined:
        lower_block(body, frame, code)
    code.returns.pop()
    code.emit(ir.LoweredBlock(node.loc, node.end, label, inlined))
    return NoValue() if result is None else result


# ---- Parsers and controls ----


def _apply(node: s.Call, target: s.CallTarget, frame: Frame, code: Code) -> None:
    assert target.receiver is not None
    if target.kind == "apply_type":
        instance = anonymous_instance(target.receiver, node, frame, code.program)
    else:
        receiver = value_of(target.receiver, frame, code)
        if not isinstance(receiver, Instance):
            code.error(node, "this cannot be applied")
            return
        instance = receiver
    with code.inlined(node):
        arguments = arguments_of(target.parameters, target.bound, frame, code)
        _apply_instance(instance, arguments, node, code)


def _apply_instance(instance: Instance, arguments: Arguments, node: s.Node, code: Code) -> None:
    """Inline the body of an instance."""
    state = state_of(instance, code.program)
    owned = state.owned if state.applied_often else None
    # The instance's own parameters: the call may have been checked against a mere type of control.
    parameters = instance.signature.parameters
    copy_out = bind(parameters, arguments, state.frame, node, code, closed=True, owned=owned)
    code.copy_outs.append(copy_out)
    declaration = instance.signature.node
    if isinstance(declaration, s.ParserDeclaration):
        start = parser_states(declaration, state.frame, code, prefix=f"{state.instance.name}_")
        code.emit(ir.SubParser(node.loc, node.end, start))
    else:
        assert isinstance(declaration, s.ControlDeclaration) and declaration.body is not None
        lower_variables(declaration, state.frame, code)
        lower_body(declaration.body, t.VOID, state.frame, node, code)
    code.copy_outs.pop()
    copy_back(copy_out, node, code)
