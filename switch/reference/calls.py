"""Calls: the calling convention of P4_16 (section 6.8), methods of headers and stacks, externs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from gradbed.switch.reference import syntax as x
from gradbed.switch.reference.scope import (
    Cell,
    Environment,
    Generic,
    LValue,
    Overloads,
    Subroutine,
    TypedExpression,
    TypedParameter,
    argument_order,
    constant,
)
from gradbed.switch.reference.statements import RESULT, StatementInterpreter
from gradbed.switch.reference.tables import RuntimeTable
from gradbed.switch.reference.tokens import Position, ProgramError
from gradbed.switch.reference.values import (
    ANYTHING,
    BOOLEAN,
    VOID,
    ApplyResultType,
    BitsType,
    BlockType,
    Composite,
    ExternType,
    RecordType,
    RuntimeHeader,
    RuntimeUnion,
    StackType,
    Value,
    ValueType,
    base_of,
    copied,
    default,
    invalidate,
    size_in_bits,
)

_SIZES = {
    "minSizeInBits": (False, 1),
    "maxSizeInBits": (True, 1),
    "minSizeInBytes": (False, 8),
    "maxSizeInBytes": (True, 8),
}


class Externs(Protocol):
    """Objects and functions of the architecture.

    In calls, `types` are those of the arguments; `values` are the arguments, and what is left there is copied out.
    """

    def function(self, name: str, types: Sequence[ValueType]) -> Callable[[list[Value]], Value] | None: ...
    def method(
        self, of: ExternType, name: str, types: Sequence[ValueType], result: ValueType
    ) -> Callable[[Any, list[Value]], Value] | None: ...


class CallInterpreter(StatementInterpreter):
    """Interprets calls: of functions, actions, tables, blocks, methods and externs."""

    externs: Externs

    def direct_instance(self, declaration: Any, scope: Environment, position: Position) -> Subroutine:
        raise NotImplementedError

    def specialised_function(self, generic: Generic, types: dict[str, ValueType]) -> Subroutine:
        raise NotImplementedError

    def apply_table(self, table: RuntimeTable) -> tuple[bool, str]:
        raise NotImplementedError

    # ---- Which call it is ----

    def call(self, node: x.CallNode, scope: Environment, expected: ValueType | None) -> TypedExpression:
        function = node.function
        if isinstance(function, x.MemberNode):
            return self._method(node, function, scope)
        if not isinstance(function, x.NameNode):
            raise ProgramError(node.position, "this cannot be called")
        meaning = (scope.outermost if function.absolute else scope).get(function.name, node.position)
        if isinstance(meaning, Overloads):
            meaning = self._overload(meaning, node)
        if isinstance(meaning, Generic) and isinstance(meaning.declaration, x.FunctionNode):
            if meaning.declaration.body is None:
                return self._extern_function(meaning, node, scope)
            meaning = self._inferred(meaning, node, scope)
        if isinstance(meaning, Subroutine):
            run = self.invocation(meaning, node.arguments, scope, node.position)
            return TypedExpression(meaning.result, run)
        raise ProgramError(node.position, f"{function.name} cannot be called")

    def _overload(self, found: Overloads, node: x.CallNode) -> Any:
        for each in found.functions:
            declared = each.declaration.parameters if isinstance(each, Generic) else each.parameters
            needed = sum(parameter.default is None for parameter in declared)
            names = {parameter.name for parameter in declared}
            if needed <= len(node.arguments) <= len(declared) and all(
                argument.name in names for argument in node.arguments if argument.name is not None
            ):
                return each
        raise ProgramError(node.position, "no function of this name takes these arguments")

    # ---- The calling convention ----

    def invocation(
        self, of: Subroutine, arguments: list[x.ArgumentNode], scope: Environment, position: Position
    ) -> Callable[[], Value]:
        """Return a call by the convention of section 6.8.

        Arguments are evaluated and l-values saved from left to right; the function is run; results are copied out
        from left to right.
        """
        copies = [
            self._copy_in(of.parameters[index], argument, scope, position)
            for index, argument in argument_order(of.parameters, arguments, position)
        ]
        order = [index for index, _ in argument_order(of.parameters, arguments, position)]
        cells = [of.cells[index] for index in order]

        def run() -> Value:
            saved = [copy() for copy in copies]
            for cell, (value, _) in zip(cells, saved, strict=True):
                cell[0] = value
            return self.finish(of, cells, [place for _, place in saved])

        return run

    def finish(self, of: Subroutine, cells: list[Cell], places: Sequence[LValue | None]) -> Value:
        """Run the body on the copies, then copy out, also where exit or a parser's error ends the body."""
        try:
            return of.body()
        finally:
            for cell, place in zip(cells, places, strict=True):
                if place is not None:
                    place.set(copied(cell[0]))

    def _copy_in(
        self, parameter: TypedParameter, argument: x.ExpressionNode | None, scope: Environment, position: Position
    ) -> Callable[[], tuple[Value, LValue | None]]:
        """Evaluate one argument: a value of its own, and the l-value to which it is copied back."""
        type_ = parameter.type
        if argument is None:
            if parameter.default is None:
                return lambda: (default(type_), None)
            given = parameter.default.run
            return lambda: (copied(given()), None)
        if parameter.direction in ("out", "inout"):
            _, find = self.target(argument, scope, type_)
            if parameter.direction == "out":
                return lambda: (default(type_), find())

            def read() -> tuple[Value, LValue | None]:
                place = find()
                return copied(place.get()), place

            return read
        value = self.as_type(argument, scope, type_).run
        return lambda: (copied(value()), None)

    # ---- Generic functions ----

    def _inferred(self, generic: Generic, node: x.CallNode, scope: Environment) -> Subroutine:
        """Return a generic function specialised for the types of these arguments."""
        declaration = generic.declaration
        types: dict[str, ValueType] = {}
        if node.type_arguments:
            for name, each in zip(declaration.type_parameters, node.type_arguments, strict=True):
                types[name] = self.type(each, scope)
        else:
            inner = Environment(generic.scope)
            for name in declaration.type_parameters:
                inner.set(name, ANYTHING)
            plain = [TypedParameter(p.name, p.direction, ANYTHING) for p in declaration.parameters]
            for index, argument in argument_order(plain, node.arguments, node.position):
                if argument is not None and not isinstance(argument, x.AnythingNode):
                    self._infer(declaration.parameters[index].type, self.expression(argument, scope).type, types)
        missing = [name for name in declaration.type_parameters if name not in types]
        if missing:
            raise ProgramError(node.position, f"cannot tell what {missing[0]} is")
        return self.specialised_function(generic, types)

    def _infer(self, declared: x.TypeNode, given: ValueType, types: dict[str, ValueType]) -> None:
        if isinstance(declared, x.NamedTypeNode) and not declared.arguments:
            types.setdefault(declared.name, given)
        elif isinstance(declared, x.StackTypeNode) and isinstance(given, StackType):
            self._infer(declared.element, given.element, types)

    # ---- Methods ----

    def _method(self, node: x.CallNode, function: x.MemberNode, scope: Environment) -> TypedExpression:
        name = function.name
        if name == "apply" and isinstance(function.base, x.NameNode | x.TypeNameNode):
            base_name = function.base.name if isinstance(function.base, x.NameNode) else None
            meaning = scope.find(base_name) if base_name else None
            if isinstance(meaning, Generic) and isinstance(meaning.declaration, x.ControlNode | x.ParserNode):
                made = self.direct_instance(meaning, scope, node.position)
                return TypedExpression(VOID, self.invocation(made, node.arguments, scope, node.position))
        of_type = self.type_named(function.base, scope)
        if of_type is not None and name in _SIZES:
            return self._size(of_type, name)
        base = self.expression(function.base, scope)
        kind = base_of(base.type)
        if name in _SIZES:
            return self._size(base.type, name)
        if isinstance(kind, BlockType):
            return self._apply(base, node, scope)
        if isinstance(kind, ExternType):
            return self._extern_method(base, kind, node, function, scope)
        if isinstance(kind, StackType) and name in ("push_front", "pop_front"):
            count, stack = self.natural(node.arguments[0].value, scope), base.run
            if name == "push_front":
                return TypedExpression(VOID, lambda: stack().push(count))
            return TypedExpression(VOID, lambda: stack().pop(count))
        if isinstance(kind, RecordType) and name in ("isValid", "setValid", "setInvalid"):
            return self._validity(base, name, function, scope)
        raise ProgramError(node.position, f"a value of {base.type} has no method {name}")

    def _size(self, type_: ValueType, name: str) -> TypedExpression:
        greatest, unit = _SIZES[name]
        return constant(BitsType(32), -(-size_in_bits(type_, greatest) // unit))

    def _apply(self, base: TypedExpression, node: x.CallNode, scope: Environment) -> TypedExpression:
        block = base.run()
        if isinstance(block, RuntimeTable):
            return TypedExpression(ApplyResultType(block.name), lambda: self.apply_table(block))
        if not isinstance(block, Subroutine):
            raise ProgramError(node.position, f"{base.type} cannot be applied")
        return TypedExpression(VOID, self.invocation(block, node.arguments, scope, node.position))

    def _validity(
        self, base: TypedExpression, name: str, function: x.MemberNode, scope: Environment
    ) -> TypedExpression:
        header = base.run
        if name == "isValid":
            return TypedExpression(BOOLEAN, lambda: _is_valid(header()))
        if name == "setInvalid":
            return TypedExpression(VOID, lambda: invalidate(header()))
        union = None
        if isinstance(function.base, x.MemberNode):
            owner = self.expression(function.base.base, scope) if self._has_value(function.base.base, scope) else None
            if owner is not None and _kind(owner.type) == "header_union":
                union = owner.run

        def set_valid() -> None:
            found = header()
            if not found.valid:
                found.assign(default(found.type))
            found.valid = True
            if union is not None:
                union().make_valid(found)

        return TypedExpression(VOID, set_valid)

    def _has_value(self, node: x.ExpressionNode, scope: Environment) -> bool:
        return self.type_named(node, scope) is None

    # ---- Externs ----

    def _extern_function(self, generic: Generic, node: x.CallNode, scope: Environment) -> TypedExpression:
        declaration = generic.declaration
        inner = Environment(generic.scope)
        for index, name in enumerate(declaration.type_parameters):
            given = index < len(node.type_arguments)
            inner.set(name, self.type(node.type_arguments[index], scope) if given else ANYTHING)
        result = self.type(declaration.result, inner)
        copies, types, order = self._extern_arguments(declaration, inner, node, scope)
        implementation = self.externs.function(declaration.name, types)
        if implementation is None:
            raise ProgramError(node.position, f"extern function {declaration.name} is not in the reference")
        wraps = _wraps(types)
        return TypedExpression(result, lambda: _run_extern(implementation, copies, order, wraps))

    def _extern_arguments(
        self, declaration: x.FunctionNode, inner: Environment, node: x.CallNode, scope: Environment
    ) -> tuple[list[Callable[[], tuple[Value, LValue | None]]], list[ValueType], list[int]]:
        """Return the arguments as they are copied in, their types, and which of them are copied out.

        The first are in the order of the call, the others in that of the declaration.
        """
        parameters = [
            TypedParameter(p.name, p.direction, self.type(p.type, inner), None) for p in declaration.parameters
        ]
        copies: list[Callable[[], tuple[Value, LValue | None]]] = []
        types: list[ValueType] = [each.type for each in parameters]
        order: list[int] = []
        for index, argument in argument_order(parameters, node.arguments, node.position):
            parameter = parameters[index]
            assert argument is not None
            if parameter.direction in ("out", "inout") and not isinstance(argument, x.AnythingNode):
                found, _ = self.target(argument, scope)
                types[index] = found
                parameter = TypedParameter(parameter.name, parameter.direction, found)
            elif parameter.type == ANYTHING and not isinstance(argument, x.AnythingNode):
                types[index] = self.expression(argument, scope).type
                parameter = TypedParameter(parameter.name, parameter.direction, types[index])
            copies.append(self._copy_in(parameter, argument, scope, node.position))
            order.append(index)
        return copies, types, order

    def _extern_method(
        self, base: TypedExpression, kind: ExternType, node: x.CallNode, function: x.MemberNode, scope: Environment
    ) -> TypedExpression:
        generic = scope.outermost.get(kind.name, node.position)
        declaration: x.ExternNode = generic.declaration
        methods = [
            each
            for each in declaration.methods
            if each.name == function.name and len(each.parameters) == len(node.arguments)
        ]
        if not methods:
            raise ProgramError(node.position, f"{kind.name} has no such method {function.name}")
        method = methods[0]
        inner = Environment(generic.scope)
        for index, name in enumerate(declaration.type_parameters):
            inner.set(name, kind.arguments[index] if index < len(kind.arguments) else ANYTHING)
        for index, name in enumerate(method.type_parameters):
            given = index < len(node.type_arguments)
            inner.set(name, self.type(node.type_arguments[index], scope) if given else ANYTHING)
        result = self.type(method.result, inner)
        copies, types, order = self._extern_arguments(method, inner, node, scope)
        implementation = self.externs.method(kind, function.name, types, result)
        if implementation is None:
            raise ProgramError(node.position, f"{kind.name}.{function.name} is not in the reference")
        receiver = base.run
        after = self._after_extract(function, node, scope)
        wraps = _wraps(types)

        def run() -> Value:
            of = receiver()
            value = _run_extern(lambda values: implementation(of, values), copies, order, wraps)
            if after is not None:
                after()
            return value

        return TypedExpression(result, run)

    def _after_extract(
        self, function: x.MemberNode, node: x.CallNode, scope: Environment
    ) -> Callable[[], None] | None:
        """Return what extract(stack.next) does afterwards: it moves the stack on (section 8.18)."""
        if function.name != "extract":
            return None
        argument = node.arguments[0].value
        # In a stack of unions it stands before the header: extract(stack.next.header).
        while isinstance(argument, x.MemberNode) and argument.name != "next":
            argument = argument.base
        if not isinstance(argument, x.MemberNode):
            return None
        owner = self.expression(argument.base, scope)
        if not isinstance(base_of(owner.type), StackType):
            return None

        def advance() -> None:
            owner.run().next += 1

        return advance

    # ---- Bodies ----

    def body_of(self, block: x.BlockNode, scope: Environment, result: ValueType) -> Callable[[], Value]:
        """Return the function that runs the statements of a function or action."""
        cell: Cell = [None]
        scope.set(RESULT, (result, cell))
        run = self.block(block.statements, scope)

        def body() -> Value:
            run()
            return cell[0]

        return body


def _run_extern(
    implementation: Callable[[list[Value]], Value],
    copies: list[Callable[[], tuple[Value, LValue | None]]],
    order: list[int],
    wraps: list[Callable[[int], int] | None],
) -> Value:
    """Run an extern by the calling convention; numbers it returns are cut to the type of the out parameter."""
    saved = [copy() for copy in copies]
    values: list[Value] = [None] * len(saved)
    for index, (value, _) in zip(order, saved, strict=True):
        values[index] = value
    result = implementation(values)
    for index, (_, place) in zip(order, saved, strict=True):
        if place is not None:
            wrap = wraps[index]
            place.set(wrap(values[index]) if wrap is not None else values[index])
    return result


def _wraps(types: Sequence[ValueType]) -> list[Callable[[int], int] | None]:
    kinds = [base_of(type_) for type_ in types]
    return [kind.wrap if isinstance(kind, BitsType) else None for kind in kinds]


def _kind(type_: ValueType) -> str:
    base = base_of(type_)
    return base.kind if isinstance(base, RecordType) else ""


def _is_valid(value: Composite) -> bool:
    """Return whether one of a union's headers is valid."""
    if isinstance(value, RuntimeUnion):
        return any(part.valid for part in value.parts)
    assert isinstance(value, RuntimeHeader)
    return value.valid
