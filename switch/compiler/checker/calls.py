"""Calls of functions, methods, actions and constructors, and apply() (P4_16 1.2.5, sections 8.20 and 8.21).

`CallTarget.kind` is one of:
  function, extern_function, action, extern_method (declaration: Signature; receiver: the object)
  header_method: isValid, setValid, setInvalid; stack_method: push_front, pop_front (receiver: the header or stack)
  size_method: minSizeInBits and the like; the call has a value
  apply_table (declaration: TableDeclaration), apply (of an instance; receiver), apply_type (of a type)
  constructor (declaration: Signature, or that of the Applicable)
"""

from __future__ import annotations

import copy
import dataclasses

from gradbed.switch.compiler import syntax as s
from gradbed.switch.compiler import types as t
from gradbed.switch.compiler.checker.context import Context, check, constant_int, type_of
from gradbed.switch.compiler.checker.conversions import block_hint, coerce, unify
from gradbed.switch.compiler.checker.expressions import require_writable
from gradbed.switch.compiler.checker.type_resolver import declare_parameters, resolve
from gradbed.switch.compiler.diagnostics import suggestion
from gradbed.switch.compiler.symbols import (
    Applicable,
    ApplyResult,
    ExternInstanceType,
    PackageType,
    ParameterType,
    Scope,
    Signature,
    Symbol,
    TableType,
    substitute,
)

_SIZE_METHODS = ("minSizeInBits", "minSizeInBytes", "maxSizeInBits", "maxSizeInBytes")


@type_of.register(s.Call)
def _call(node: s.Call, scope: Scope, context: Context) -> t.Type:
    callee = node.callee
    if isinstance(callee, s.Member):
        return _method(node, callee, scope, context)
    if isinstance(callee, s.TypeName):
        type_ = resolve(callee.syntax, scope, context)
        return _constructor(node, type_, scope, context)
    if isinstance(callee, s.Name):
        symbol = (scope.root if callee.absolute else scope).lookup(callee.name)
        if symbol is None:
            check(callee, scope, context)  # reports it, with a hint
            _check_arguments(node, scope, context)
            return t.UNKNOWN
        symbol.used = True
        if symbol.kind in ("function", "action"):
            return _function(node, symbol, scope, context)
        if symbol.kind == "type":
            type_ = symbol.type
            if node.type_arguments:
                named = s.NamedType(callee.loc, callee.end, callee.name, callee.absolute, node.type_arguments)
                type_ = resolve(named, scope, context)
            return _constructor(node, type_, scope, context)
        applied = isinstance(symbol.type, (TableType, Applicable))
        hint = f"apply it: {callee.name}.apply()" if applied else ""
        context.error(callee, f"'{callee.name}' is a {symbol.kind} and cannot be called", hint=hint)
    else:
        context.error(callee, "this cannot be called")
    _check_arguments(node, scope, context)
    return t.UNKNOWN


def _check_arguments(node: s.Call, scope: Scope, context: Context) -> None:
    for argument in node.arguments:
        check(argument.expression, scope, context)


# ---- Functions and actions ----


def _function(node: s.Call, symbol: Symbol, scope: Scope, context: Context) -> t.Type:
    _check_arguments(node, scope, context)
    signature = _overload(node, symbol.functions, symbol.name, context)
    if signature is None:
        return t.UNKNOWN
    assert isinstance(signature.node, s.FunctionDeclaration)
    deprecated = s.find_annotation(signature.node.annotations, "deprecated")
    if deprecated is not None:
        message = f"'{symbol.name}' with {len(signature.parameters)} argument(s) is deprecated"
        advice = deprecated.string()
        message += f": {advice}" if advice else ""
        context.reporter.warning(node.loc, message, node.end, category="deprecated")
    if signature.node.body is None:
        kind = "extern_function"
    else:
        kind = "action" if signature.node.return_type is None else "function"
    return _bind(node, kind, signature, {}, scope, context)


def _overload(node: s.Call, candidates: list[Signature], name: str, context: Context) -> Signature | None:
    """Return the function that takes this many arguments with these names; None after a report."""
    given = len(node.arguments)
    named = {argument.name for argument in node.arguments if argument.name}
    fitting = []
    for candidate in candidates:
        names = [parameter.name for parameter in candidate.parameters]
        needed = sum(1 for parameter in candidate.parameters if not _may_be_absent(parameter))
        if needed <= given <= len(names) and named <= set(names):
            fitting.append(candidate)
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        context.error(
            node,
            f"'{name}' could be each of {len(fitting)} declarations",
            (fitting[0].loc, "this is one of them"),
            hint="name its arguments",
        )
        return None
    counts = sorted({len(candidate.parameters) for candidate in candidates})
    wanted = " or ".join(map(str, counts))
    unknown = next((argument for argument in node.arguments if argument.name), None)
    if unknown is not None and given in counts:
        context.error(unknown, f"'{name}' has no parameter '{unknown.name}'")
    else:
        context.error(
            node,
            f"'{name}' takes {wanted} argument(s), but {given} are given",
            (candidates[0].loc, f"'{name}' is declared here") if candidates else None,
            _hint_of_result(candidates, given),
        )
    return None


def _bind(
    node: s.Call,
    kind: str,
    signature: Signature,
    bindings: dict[t.Variable, t.Type],
    scope: Scope,
    context: Context,
    receiver: s.Expression | None = None,
) -> t.Type:
    """Match arguments that are checked already with parameters, infer type arguments and convert."""
    if node.type_arguments:
        if len(node.type_arguments) != len(signature.variables):
            context.error(node, f"'{signature.name}' takes {len(signature.variables)} type argument(s)")
            return t.UNKNOWN
        for variable, syntax in zip(signature.variables, node.type_arguments, strict=True):
            type_ = resolve(syntax, scope, context)
            if type_ is not t.ANY:
                bindings[variable] = type_
    arguments = match_arguments(node, node.arguments, signature.parameters, signature.name, context)
    if arguments is None:
        return t.UNKNOWN
    for parameter, argument in zip(signature.parameters, arguments, strict=True):
        if argument is None:
            continue
        assert argument.type is not None
        if argument.type is t.UNKNOWN:
            return substitute(signature.return_type, bindings)
        if not unify(parameter.type, argument.type, bindings):
            expected = substitute(parameter.type, bindings)
            hint = block_hint(parameter.type, argument.type)
            context.error(argument, f"expected {expected}, but this is {argument.type}", hint=hint)
            return t.UNKNOWN
    unbound = [variable for variable in signature.variables if variable not in bindings]
    if unbound and kind != "constructor":
        context.error(node, f"cannot tell what type '{unbound[0]}' of '{signature.name}' is: write it as <type>")
        return t.UNKNOWN
    if kind == "function" and signature.variables:
        signature = _specialize(signature, bindings, context)
    parameters = [_concrete(parameter, bindings) for parameter in signature.parameters]
    bound = _convert_arguments(node, parameters, arguments, context)
    result = substitute(signature.return_type, bindings)
    node.target = s.CallTarget(
        node.loc, node.end, kind, signature.name, parameters, bound, result, signature, receiver
    )
    if signature.name == "static_assert" and kind == "extern_function":
        _static_assert(node, bound, context)
    return result


def match_arguments(
    node: s.Node, given: list[s.Argument], parameters: list[ParameterType], name: str, context: Context
) -> list[s.Expression | None] | None:
    """Return the argument of each parameter; None (after a report) if they do not match."""
    result: dict[str, s.Expression | None] = {}
    names = [parameter.name for parameter in parameters]
    if len(given) > len(parameters):
        context.error(node, f"'{name}' takes {len(parameters)} argument(s), but {len(given)} are given")
        return None
    for position, argument in enumerate(given):
        key = argument.name or names[position]
        if key not in names or key in result:
            problem = "is given twice" if key in result else "is not a parameter"
            context.error(argument, f"'{key}' {problem} of '{name}'")
            return None
        wildcard = isinstance(argument.expression, s.Wildcard)
        result[key] = None if wildcard else argument.expression
    for parameter in parameters:
        if parameter.name not in result:
            if not _may_be_absent(parameter):
                context.error(node, f"'{name}' needs an argument for '{parameter.name}'")
                return None
            assert parameter.default is None or isinstance(parameter.default, s.Expression)
            result[parameter.name] = parameter.default
    return [result[name] for name in names]


def _convert_arguments(
    node: s.Call, parameters: list[ParameterType], arguments: list[s.Expression | None], context: Context
) -> list[s.Expression | None]:
    """Convert values, and check that arguments for out and inout are assignable (P4_16 1.2.5, section 6.8)."""
    bound: list[s.Expression | None] = []
    for parameter, argument in zip(parameters, arguments, strict=True):
        if argument is None:
            if parameter.direction in ("in", "inout"):
                context.error(node, f"'_' cannot stand for '{parameter.name}', which is read")
            bound.append(None)
        elif parameter.direction in ("out", "inout"):
            if argument.type != parameter.type:
                if argument.type is not t.UNKNOWN:
                    context.error(
                        argument,
                        f"expected {parameter.type}, but this is {argument.type}",
                        hint=f"'{parameter.name}' is written ({parameter.direction}): "
                        f"its argument must be a variable or field of type {parameter.type}",
                    )
            else:
                require_writable(argument, f"by '{parameter.name}'", context)
            bound.append(argument)
        elif isinstance(parameter.type, (Applicable, ExternInstanceType)):
            bound.append(argument)
        else:
            bound.append(coerce(argument, parameter.type, context))
    return bound


def _static_assert(node: s.Call, bound: list[s.Expression | None], context: Context) -> None:
    condition = bound[0]
    if condition is not None and condition.value is False:
        text = bound[1].value if len(bound) > 1 and bound[1] is not None else "static assertion failed"
        context.error(node, str(text))
    elif condition is not None and condition.value is None and condition.type is not t.UNKNOWN:
        context.error(condition, "static_assert needs a condition known at compile time")
    node.value = True


def _specialize(signature: Signature, bindings: dict[t.Variable, t.Type], context: Context) -> Signature:
    """Return the instance of a generic function, parser or control for these type arguments."""
    key = tuple(bindings[variable] for variable in signature.variables)
    known = signature.instances.get(key)
    if known is not None:
        return known
    node = copy.deepcopy(signature.node)
    assert isinstance(node, (s.FunctionDeclaration, s.ParserDeclaration, s.ControlDeclaration))
    scope = Scope(signature.scope.parent)
    for variable, type_ in zip(signature.variables, key, strict=True):
        scope.names[variable.name] = Symbol(variable.name, "type", node.loc, type_)
    parameters = declare_parameters(node.parameters, scope, "parameter", context)
    instance = Signature(signature.name, (), parameters, substitute(signature.return_type, bindings), node, scope)
    if isinstance(node, (s.ParserDeclaration, s.ControlDeclaration)):
        node.constructor_signature = declare_parameters(
            node.constructor_parameters, scope, "constructor_parameter", context
        )
        instance.constructor = node.constructor_signature
    signature.instances[key] = instance
    context.pending.append(instance)
    return instance


# ---- Constructors ----


def _constructor(node: s.Call, type_: t.Type, scope: Scope, context: Context) -> t.Type:
    _check_arguments(node, scope, context)
    if isinstance(type_, ExternInstanceType):
        return _construct_extern(node, type_, scope, context)
    if isinstance(type_, Applicable):
        return _construct_applicable(node, type_, scope, context)
    if isinstance(type_, PackageType):
        bindings = dict(zip(type_.signature.variables, type_.arguments, strict=False))
        node.type_arguments = []
        _bind(node, "constructor", type_.signature, bindings, scope, context)
        return type_
    if type_ is not t.UNKNOWN:
        context.error(node, f"{type_} has no constructor")
    return t.UNKNOWN


def _construct_extern(node: s.Call, type_: ExternInstanceType, scope: Scope, context: Context) -> t.Type:
    klass = type_.klass
    signature = _overload(node, klass.constructors, klass.name, context)
    if signature is None:
        return t.UNKNOWN
    bindings = dict(zip(klass.variables, type_.arguments, strict=False))
    node.type_arguments = []
    _bind(node, "constructor", signature, bindings, scope, context)
    if len(type_.arguments) < len(klass.variables):
        missing = [variable for variable in klass.variables if variable not in bindings]
        if missing:
            context.error(node, f"'{klass.name}' needs its type arguments, as {klass.name}<...>")
            return t.UNKNOWN
        return ExternInstanceType(klass, tuple(bindings[variable] for variable in klass.variables))
    return type_


def _construct_applicable(node: s.Call, type_: Applicable, scope: Scope, context: Context) -> t.Type:
    signature = type_.signature
    if signature.variables:
        bindings = dict(zip(signature.variables, type_.arguments, strict=False))
        if len(bindings) < len(signature.variables):
            context.error(node, f"'{signature.name}' needs its type arguments")
            return t.UNKNOWN
        signature = _specialize(signature, bindings, context)
    declaration = signature.node
    has_body = (isinstance(declaration, s.ControlDeclaration) and declaration.body is not None) or (
        isinstance(declaration, s.ParserDeclaration) and declaration.states is not None
    )
    if not has_body:
        context.error(node, f"'{signature.name}' is only a type: it has no body")
        return t.UNKNOWN
    node.type_arguments = []
    constructor = Signature(signature.name, (), signature.constructor, t.VOID, signature.node, signature.scope)
    _bind(node, "constructor", constructor, {}, scope, context)
    if node.target is not None:
        node.target.declaration = signature
    return Applicable(signature)


# ---- Methods ----


def _method(node: s.Call, callee: s.Member, scope: Scope, context: Context) -> t.Type:
    base = callee.base
    if isinstance(base, s.TypeName) or (isinstance(base, s.Name) and _names_type(base, scope)):
        return _apply_type(node, callee, scope, context)
    receiver = check(base, scope, context)
    _check_arguments(node, scope, context)
    if receiver is t.UNKNOWN:
        return t.UNKNOWN
    name = callee.name
    if isinstance(receiver, ExternInstanceType):
        return _extern_method(node, callee, receiver, scope, context)
    if isinstance(receiver, TableType) and name == "apply":
        _no_arguments(node, name, context)
        node.target = s.CallTarget(node.loc, node.end, "apply_table", name, [], [], t.VOID, receiver.node, base)
        return ApplyResult(receiver.node)
    if isinstance(receiver, Applicable) and name == "apply":
        return _bind(node, "apply", receiver.signature, {}, scope, context, base)
    if name in _SIZE_METHODS:
        return _size(node, name, receiver, context)
    if isinstance(receiver, t.Struct) and receiver.kind != "struct":
        return _header_method(node, name, receiver, base, context)
    if isinstance(receiver, t.Stack) and name in ("push_front", "pop_front"):
        return _stack_method(node, name, base, scope, context)
    methods = ["apply"] if isinstance(receiver, (TableType, Applicable)) else []
    methods += ["push_front", "pop_front"] if isinstance(receiver, t.Stack) else []
    context.error(callee, f"{receiver} has no method '{name}'{suggestion(name, methods)}")
    return t.UNKNOWN


def _names_type(base: s.Name, scope: Scope) -> bool:
    symbol = (scope.root if base.absolute else scope).lookup(base.name)
    return symbol is not None and symbol.kind == "type"


def _apply_type(node: s.Call, callee: s.Member, scope: Scope, context: Context) -> t.Type:
    """Check Control.apply(...), an instance without a name (P4_16 1.2.5, section 15.1)."""
    base = callee.base
    if isinstance(base, s.TypeName):
        type_ = resolve(base.syntax, scope, context)
    else:
        assert isinstance(base, s.Name)
        symbol = scope.lookup(base.name)
        assert symbol is not None
        type_ = symbol.type
    _check_arguments(node, scope, context)
    if type_ is t.UNKNOWN:
        return t.UNKNOWN
    if callee.name in _SIZE_METHODS:
        return _size(node, callee.name, type_, context)
    if not isinstance(type_, Applicable) or callee.name != "apply":
        context.error(callee, f"type '{type_}' has no method '{callee.name}'")
        return t.UNKNOWN
    construction = s.Call(node.loc, node.end, base, [], [])
    built = _construct_applicable(construction, type_, scope, context)
    if not isinstance(built, Applicable):
        return t.UNKNOWN
    construction.type = built
    return _bind(node, "apply_type", built.signature, {}, scope, context, construction)


def _extern_method(
    node: s.Call, callee: s.Member, receiver: ExternInstanceType, scope: Scope, context: Context
) -> t.Type:
    candidates = receiver.klass.methods.get(callee.name)
    if not candidates:
        near = suggestion(callee.name, receiver.klass.methods)
        context.error(callee, f"{receiver.klass.name} has no method '{callee.name}'{near}")
        return t.UNKNOWN
    signature = _overload(node, candidates, callee.name, context)
    if signature is None:
        return t.UNKNOWN
    bindings = dict(zip(receiver.klass.variables, receiver.arguments, strict=False))
    return _bind(node, "extern_method", signature, bindings, scope, context, callee.base)


def _no_arguments(node: s.Call, name: str, context: Context) -> None:
    if node.arguments:
        context.error(node.arguments[0], f"'{name}' takes no arguments")


def _size(node: s.Call, name: str, receiver: t.Type, context: Context) -> t.Type:
    _no_arguments(node, name, context)
    bits = t.width_bits(receiver)
    if bits is None:
        context.error(node, f"{receiver} has no size")
        return t.UNKNOWN
    if name.startswith("min"):
        bits -= _varbit_bits(receiver)
    node.value = bits if name.endswith("Bits") else (bits + 7) // 8
    node.target = s.CallTarget(node.loc, node.end, "size_method", name, [], [], t.INTEGER)
    return t.INTEGER


def _header_method(node: s.Call, name: str, receiver: t.Struct, base: s.Expression, context: Context) -> t.Type:
    _no_arguments(node, name, context)
    if name == "isValid":
        result: t.Type = t.BOOL
    elif name in ("setValid", "setInvalid") and receiver.is_header:
        require_writable(base, f"by {name}()", context)
        result = t.VOID
    else:
        near = suggestion(name, ("isValid", "setValid", "setInvalid"))
        context.error(node, f"{receiver.kind} '{receiver}' has no method '{name}'{near}")
        return t.UNKNOWN
    node.target = s.CallTarget(node.loc, node.end, "header_method", name, [], [], result, None, base)
    return result


def _stack_method(node: s.Call, name: str, base: s.Expression, scope: Scope, context: Context) -> t.Type:
    require_writable(base, f"by {name}()", context)
    count = None
    if len(node.arguments) == 1:
        count = constant_int(node.arguments[0].expression, scope, f"the argument of {name}", context)
    else:
        context.error(node, f"'{name}' takes 1 argument")
    if count is None or count < 0:
        return t.UNKNOWN
    node.target = s.CallTarget(
        node.loc,
        node.end,
        "stack_method",
        name,
        [],
        [node.arguments[0].expression],
        t.VOID,
        None,
        base,
    )
    return t.VOID


def _hint_of_result(candidates: list[Signature], given: int) -> str:
    """Return a hint for a call that is written as if it returned its first parameter, which is out."""
    for candidate in candidates:
        parameters = candidate.parameters
        if len(parameters) == given + 1 and parameters[0].direction == "out" and candidate.return_type is t.VOID:
            names = ", ".join(parameter.name for parameter in parameters)
            return f"the result goes into the first argument: {candidate.name}({names})"
    return ""


def _may_be_absent(parameter: ParameterType) -> bool:
    return parameter.default is not None or any(annotation.name == "optional" for annotation in parameter.annotations)


def _concrete(parameter: ParameterType, bindings: dict[t.Variable, t.Type]) -> ParameterType:
    type_ = substitute(parameter.type, bindings)
    return parameter if type_ is parameter.type else dataclasses.replace(parameter, type=type_)


def _varbit_bits(type_: t.Type) -> int:
    if isinstance(type_, t.Varbit):
        return type_.width
    if isinstance(type_, t.Struct):
        return sum(map(_varbit_bits, type_.fields.values()))
    return 0
