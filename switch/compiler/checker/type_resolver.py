"""Resolution of types as written."""

from __future__ import annotations

from gradbed.switch.compiler import syntax as s
from gradbed.switch.compiler import types as t
from gradbed.switch.compiler.checker.context import Context, constant_int
from gradbed.switch.compiler.checker.conversions import check_as
from gradbed.switch.compiler.symbols import Applicable, ExternInstanceType, PackageType, ParameterType, Scope, Symbol

_SIMPLE = {
    "bool": t.BOOL,
    "error": t.ERROR,
    "string": t.STRING,
    "void": t.VOID,
    "match_kind": t.MATCH_KIND,
}


def resolve(syntax: s.TypeSyntax, scope: Scope, context: Context) -> t.Type:
    """Return the type; UNKNOWN after reporting an error in it."""
    match syntax:
        case s.BaseType():
            return _base(syntax, scope, context)
        case s.NamedType():
            return _named(syntax, scope, context)
        case s.StackTypeSyntax():
            return _stack(syntax, scope, context)
        case s.TupleTypeSyntax():
            return _tuple(syntax, scope, context)
    return t.ANY


def _tuple(syntax: s.TupleTypeSyntax, scope: Scope, context: Context) -> t.Type:
    elements = tuple(resolve(element, scope, context) for element in syntax.elements)
    if sum(map(t.field_count, elements)) > t.MAX_FIELDS:
        raise context.reporter.fatal(syntax.loc, f"the tuple has more than {t.MAX_FIELDS} fields")
    if not syntax.is_list:
        return t.Tuple(elements)
    if len(elements) != 1:
        context.error(syntax, "list takes one type argument")
        return t.UNKNOWN
    return t.ListOf(elements[0])


def _base(syntax: s.BaseType, scope: Scope, context: Context) -> t.Type:
    simple = _SIMPLE.get(syntax.name)
    if simple is not None:
        return simple
    if syntax.width is None:
        return t.INTEGER if syntax.name == "int" else t.bit(1)
    width = constant_int(syntax.width, scope, "the width of a type", context)
    if width is None:
        return t.UNKNOWN
    greatest = t.MAX_VARBIT_BITS if syntax.name == "varbit" else t.MAX_WIDTH_BITS
    if not 0 <= width <= greatest or (width == 0 and syntax.name == "int"):
        context.error(syntax, f"a width of {width} is outside 1 to {greatest}")
        return t.UNKNOWN
    if syntax.name == "bit":
        return t.bit(width)
    return t.int_(width) if syntax.name == "int" else t.Varbit(width)


def _named(syntax: s.NamedType, scope: Scope, context: Context) -> t.Type:
    symbol = (scope.root if syntax.absolute else scope).lookup(syntax.name)
    if symbol is None:
        context.not_declared(syntax, syntax.name, f"type '{syntax.name}'", scope.all_names("type"))
        return t.UNKNOWN
    if symbol.kind != "type":
        context.error(syntax, f"'{syntax.name}' is no type", (symbol.loc, f"'{syntax.name}' is declared here"))
        return t.UNKNOWN
    return _with_arguments(syntax, symbol, scope, context)


def _with_arguments(syntax: s.NamedType, symbol: Symbol, scope: Scope, context: Context) -> t.Type:
    type_ = symbol.type
    arguments = tuple(resolve(argument, scope, context) for argument in syntax.arguments)
    node = symbol.node
    if isinstance(type_, (ExternInstanceType, Applicable, PackageType)) and type_.arguments and not arguments:
        return type_  # a typedef of a generic type with its arguments
    if isinstance(type_, ExternInstanceType):
        return _apply(syntax, type_.klass.variables, arguments, ExternInstanceType(type_.klass, arguments), context)
    if isinstance(type_, Applicable):
        return _apply(syntax, type_.signature.variables, arguments, Applicable(type_.signature, arguments), context)
    if isinstance(type_, PackageType):
        return _apply(syntax, type_.signature.variables, arguments, PackageType(type_.signature, arguments), context)
    if isinstance(type_, t.Struct) and isinstance(node, s.StructDeclaration) and node.type_parameters:
        if len(arguments) != len(node.type_parameters):
            context.error(syntax, f"'{syntax.name}' takes {len(node.type_parameters)} type argument(s)")
            return t.UNKNOWN
        return _generic_struct(node, arguments, context)
    if arguments:
        context.error(syntax, f"'{syntax.name}' takes no type arguments")
    return type_


def _apply(
    syntax: s.NamedType,
    variables: tuple[t.Variable, ...],
    arguments: tuple[t.Type, ...],
    applied: t.Type,
    context: Context,
) -> t.Type:
    """Apply a generic type. Without arguments it is left to a constructor call to infer them."""
    if arguments and len(arguments) != len(variables):
        context.error(syntax, f"'{syntax.name}' takes {len(variables)} type argument(s)")
        return t.UNKNOWN
    return applied


def _generic_struct(node: s.StructDeclaration, arguments: tuple[t.Type, ...], context: Context) -> t.Type:
    key = (id(node), arguments)
    known = context.generic_structs.get(key)
    if known is not None:
        return known
    scope = Scope(context.globals)
    for name, argument in zip(node.type_parameters, arguments, strict=True):
        scope.names[name] = Symbol(name, "type", node.loc, argument)
    count = sum(1 for struct in context.generic_structs.values() if struct.node is node)
    struct = t.Struct(node.kind, f"{node.name}_{count}" if count else node.name, {}, node, {}, arguments)
    context.generic_structs[key] = struct
    fill_struct(struct, scope, context)
    return struct


def fill_struct(struct: t.Struct, scope: Scope, context: Context) -> None:
    """Resolve the fields of a struct, header or union, and check their types (P4_16 1.2.5, section 7.2.8)."""
    assert isinstance(struct.node, s.StructDeclaration)
    for field in struct.node.fields:
        type_ = resolve(field.type, scope, context)
        if field.name in struct.fields:
            context.error(field, f"field '{field.name}' is declared twice")
            continue
        problem = _misplaced(struct, type_)
        if problem:
            context.error(field, problem)
            type_ = t.UNKNOWN
        struct.field_count += t.field_count(type_)
        if struct.field_count > t.MAX_FIELDS:
            raise context.reporter.fatal(field.loc, f"{struct.name} has more than {t.MAX_FIELDS} fields")
        struct.fields[field.name] = type_
        struct.annotations[field.name] = field.annotations
    if struct.is_header:
        varbits = [name for name, type_ in struct.fields.items() if isinstance(type_, t.Varbit)]
        if len(varbits) > 1:
            context.error(struct.node, f"header '{struct.name}' has more than one varbit field")


def _misplaced(struct: t.Struct, type_: t.Type) -> str | None:
    if type_ is t.UNKNOWN or isinstance(type_, t.Variable):
        return None
    if struct.is_union:
        if isinstance(type_, t.Struct) and type_.is_header:
            return None
        return f"a header union holds headers, not {type_}"
    if type_ in (t.VOID, t.MATCH_KIND, t.INTEGER, t.STRING, t.ANY) or isinstance(
        type_, (ExternInstanceType, Applicable, PackageType, t.ListOf)
    ):
        return f"a {struct.kind} cannot have a field of type {type_}"
    stored = t.representation(type_)
    if struct.is_header:
        is_struct = isinstance(stored, t.Struct) and stored.kind == "struct"
        if not (isinstance(stored, (t.Bit, t.Int, t.Varbit)) or stored is t.BOOL or is_struct):
            return f"a header cannot have a field of type {type_}"
    elif isinstance(stored, t.Varbit):
        return None
    return None


def _stack(syntax: s.StackTypeSyntax, scope: Scope, context: Context) -> t.Type:
    element = resolve(syntax.element, scope, context)
    size = constant_int(syntax.size, scope, "the size of a stack", context)
    if size is None or element is t.UNKNOWN:
        return t.UNKNOWN
    if not (isinstance(element, t.Struct) and element.kind != "struct"):
        context.error(syntax, f"only headers and header unions form stacks, not {element}")
        return t.UNKNOWN
    if not 1 <= size <= t.MAX_STACK_SIZE:
        context.error(syntax, f"a stack of {size} elements is outside 1 to {t.MAX_STACK_SIZE}")
        return t.UNKNOWN
    return t.Stack(element, size)


def declare_parameters(nodes: list[s.Parameter], scope: Scope, kind: str, context: Context) -> list[ParameterType]:
    """Resolve and declare parameters; `kind` is that of their symbols, parameter or constructor_parameter."""
    result: list[ParameterType] = []
    for node in nodes:
        type_ = resolve(node.type, scope, context)
        symbol = Symbol(node.name, kind, node.loc, type_, node=node, direction=node.direction)
        context.declare(scope, symbol)
        default = node.default
        if default is not None:
            default = check_as(default, scope, type_, context)
        place = node.loc, node.end
        result.append(ParameterType(*place, node.name, node.direction, type_, default, symbol, node.annotations))
    return result
