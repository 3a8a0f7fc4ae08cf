"""Types and compile-time values of expressions."""

from __future__ import annotations

from switch.compiler import syntax as s
from switch.compiler import types as t
from switch.compiler.checker.context import Context
from switch.compiler.checker.conversions import castable
from switch.compiler.diagnostics import suggestion
from switch.compiler.symbols import Scope, Symbol
from switch.compiler.values import (
    Constant,
    FoldError,
    Symbolic,
    compare,
    fold_binary,
    fold_unary,
    slice_bits,
    stored,
    wrap,
)

_COMPARISONS = frozenset(("<", "<=", ">", ">="))
_EQUALITIES = frozenset(("==", "!="))
_LOGICAL = frozenset(("&&", "||"))


class ExpressionChecker:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._dispatch = {
            s.IntLiteral: self._int_literal,
            s.BoolLiteral: self._bool_literal,
            s.StringLiteral: self._string_literal,
            s.Name: self._name,
            s.Member: self._member,
            s.Index: self._index,
            s.Slice: self._slice,
            s.Unary: self._unary,
            s.Binary: self._binary,
            s.Conditional: self._conditional,
            s.Cast: self._cast,
            s.Convert: self._convert,
            s.Call: self._call,
            s.TypeName: self._type_name,
            s.ListExpression: self._list,
            s.StructExpression: self._struct,
            s.InvalidHeader: self._invalid_header,
            s.DefaultValue: self._default_value,
            s.Wildcard: self._wildcard,
        }

    def check(self, expression: s.Expression, scope: Scope) -> t.Type:
        """Find the expression's type; sets its `type` and, if it is known, `value`."""
        type_: t.Type = self._dispatch[type(expression)](expression, scope)  # type: ignore[operator]
        expression.type = type_
        return type_

    def check_as(self, expression: s.Expression, scope: Scope, target: t.Type) -> s.Expression:
        """Check and convert to a type."""
        self.check(expression, scope)
        return self.coerce(expression, target)

    def constant_int(self, expression: s.Expression, scope: Scope, what: str) -> int | None:
        """Value of an expression that must be an integer known at compile time."""
        if self.check(expression, scope) is t.UNKNOWN:
            return None
        value = expression.value
        if isinstance(value, Symbolic) and isinstance(value.type, t.Enum) and value.type.underlying:
            value = value.number
        if isinstance(value, bool) or not isinstance(value, int):
            self._context.error(expression, f"{what} must be an integer known at compile time")
            return None
        return value

    # --- conversions ---

    def coerce(self, expression: s.Expression, target: t.Type) -> s.Expression:
        """The expression as a value of `target`, by the implicit conversions; reports if there is none."""
        source = expression.type
        assert source is not None
        if source == target or source is t.UNKNOWN or target is t.UNKNOWN:
            return expression
        converted = self._try_coerce(expression, source, target)
        if converted is None:
            self._context.error(expression, f"expected {target}, but this is {source}")
            expression.type = t.UNKNOWN
            return expression
        return converted

    def _try_coerce(self, expression: s.Expression, source: t.Type, target: t.Type) -> s.Expression | None:
        if source is t.INTEGER and isinstance(target, (t.Bit, t.Int)):
            return self._literal_to_width(expression, target)
        if isinstance(source, t.Enum) and source.underlying is not None:
            if source.underlying == target:
                value = expression.value
                return self._converted(expression, target, value.number if isinstance(value, Symbolic) else value)
            return None
        if source is t.DEFAULT_VALUE or (source is t.INVALID_HEADER and _is_header_like(target)):
            return self._converted(expression, target, None)
        if isinstance(expression, s.ListExpression):
            return self._list_as(expression, target)
        if isinstance(expression, s.StructExpression):
            return self._struct_as(expression, target)
        if isinstance(expression, s.Conditional) and isinstance(source, t.Tuple):
            expression.if_true = self.coerce(expression.if_true, target)
            expression.if_false = self.coerce(expression.if_false, target)
            expression.type = target
            return expression
        if not (isinstance(source, t.Tuple) and isinstance(target, t.Struct) and target.kind == "struct"):
            return None
        same = source.elements == tuple(target.fields.values())
        return self._converted(expression, target, None) if same else None

    def _converted(self, expression: s.Expression, target: t.Type, value: Constant | None) -> s.Expression:
        result = s.Convert(expression.loc, expression.end, expression)
        result.type = target
        result.value = value
        return result

    def _literal_to_width(self, expression: s.Expression, target: t.Bit | t.Int) -> s.Expression:
        value = expression.value
        if not isinstance(value, int):
            # A constructor parameter of type int: known when the program is put together.
            return self._converted(expression, target, None)
        wrapped = wrap(value, target)
        fits = wrapped == value or (isinstance(target, t.Int) and value == wrapped & ((1 << target.width) - 1))
        if not fits:
            self._context.reporter.warning(
                expression.loc, f"{value} does not fit into {target}, it becomes {wrapped}", expression.end
            )
        return self._converted(expression, target, wrapped)

    def _list_as(self, expression: s.ListExpression, target: t.Type) -> s.Expression | None:
        if isinstance(target, t.Struct) and not target.is_union:
            wanted = list(target.fields.values())
        elif isinstance(target, t.Tuple):
            wanted = list(target.elements)
        elif isinstance(target, t.Stack):
            wanted = [target.element] * target.size
            if len(expression.items) < target.size and not expression.with_defaults:
                wanted = wanted[: len(expression.items)]
        elif isinstance(target, t.ListOf):
            wanted = [target.element] * len(expression.items)
        else:
            return None
        given = len(expression.items)
        if given > len(wanted) or (given < len(wanted) and not expression.with_defaults):
            self._context.error(expression, f"{target} has {len(wanted)} parts, but {given} values are given")
            expression.type = t.UNKNOWN
            return expression
        expression.items = [self.coerce(item, type_) for item, type_ in zip(expression.items, wanted, strict=False)]
        expression.type = target
        return expression

    def _struct_as(self, expression: s.StructExpression, target: t.Type) -> s.Expression | None:
        if not (isinstance(target, t.Struct) and not target.is_union):
            return None
        seen: set[str] = set()
        fields: list[tuple[str, s.Expression]] = []
        for name, item in expression.fields:
            if name not in target.fields:
                self._context.error(item, f"{target.kind} '{target}' has no field '{name}'")
                continue
            if name in seen:
                self._context.error(item, f"field '{name}' is given twice")
            seen.add(name)
            fields.append((name, self.coerce(item, target.fields[name])))
        missing = [name for name in target.fields if name not in seen]
        if missing and not expression.with_defaults:
            self._context.error(expression, f"no value is given for field '{missing[0]}'")
        expression.fields = fields
        expression.type = target
        return expression

    # --- leaves ---

    def _int_literal(self, node: s.IntLiteral, scope: Scope) -> t.Type:
        if node.width is None:
            node.value = node.number
            return t.INTEGER
        if not 0 < node.width <= t.MAX_WIDTH_BITS:
            self._context.error(node, f"a width of {node.width} is outside 1 to {t.MAX_WIDTH_BITS}")
            return t.UNKNOWN
        type_ = t.int_(node.width) if node.signed else t.bit(node.width)
        node.value = wrap(node.number, type_)
        if node.number >> node.width:
            self._context.reporter.warning(node.loc, f"{node.number} does not fit into {type_}", node.end)
        return type_

    def _bool_literal(self, node: s.BoolLiteral, scope: Scope) -> t.Type:
        node.value = node.flag
        return t.BOOL

    def _string_literal(self, node: s.StringLiteral, scope: Scope) -> t.Type:
        node.value = node.text
        return t.STRING

    def _invalid_header(self, node: s.InvalidHeader, scope: Scope) -> t.Type:
        return t.INVALID_HEADER

    def _default_value(self, node: s.DefaultValue, scope: Scope) -> t.Type:
        return t.DEFAULT_VALUE

    def _wildcard(self, node: s.Wildcard, scope: Scope) -> t.Type:
        return t.ANY

    def _convert(self, node: s.Convert, scope: Scope) -> t.Type:
        assert node.type is not None
        return node.type

    def _type_name(self, node: s.TypeName, scope: Scope) -> t.Type:
        self._context.error(node, "expected a value, but this is a type")
        return t.UNKNOWN

    def _name(self, node: s.Name, scope: Scope) -> t.Type:
        symbol = (scope.root if node.absolute else scope).lookup(node.name)
        if symbol is None:
            self._context.error(node, f"'{node.name}' is not declared{suggestion(node.name, scope.all_names())}")
            return t.UNKNOWN
        node.symbol = symbol
        symbol.used = True
        if symbol.kind in ("type", "namespace"):
            self._context.error(node, f"expected a value, but '{node.name}' is a type")
            return t.UNKNOWN
        if symbol.kind in ("function", "action"):
            self._context.error(node, f"'{node.name}' is a {symbol.kind}: expected '(' behind it")
            return t.UNKNOWN
        node.value = symbol.value
        return symbol.type

    def _call(self, node: s.Call, scope: Scope) -> t.Type:
        return self._context.calls.check(node, scope)

    # --- parts ---

    def _member(self, node: s.Member, scope: Scope) -> t.Type:
        namespace = self._namespace(node.base, scope)
        if namespace is not None:
            return self._static_member(node, namespace)
        base = self.check(node.base, scope)
        if base is t.UNKNOWN:
            return t.UNKNOWN
        if isinstance(base, t.Struct):
            type_ = base.fields.get(node.name)
            if type_ is None:
                if node.name in ("isValid", "setValid", "setInvalid"):
                    self._context.error(node, f"'{node.name}' is a method: expected '(' behind it")
                else:
                    hint = suggestion(node.name, base.fields)
                    self._context.error(node, f"{base.kind} '{base}' has no field '{node.name}'{hint}")
                return t.UNKNOWN
            return type_
        if isinstance(base, t.Stack):
            if node.name in ("next", "last"):
                return base.element
            if node.name in ("lastIndex", "size"):
                if node.name == "size":
                    node.value = base.size
                return t.bit(32)
        if isinstance(base, t.ApplyResult):
            if node.name in ("hit", "miss"):
                return t.BOOL
            if node.name == "action_run":
                return t.ACTION_RUN
        if isinstance(base, t.NamedFields) and node.name in base.names:
            return base.elements[base.names.index(node.name)]
        self._context.error(node, f"{base} has no member '{node.name}'")
        return t.UNKNOWN

    def _namespace(self, base: s.Expression, scope: Scope) -> Symbol | None:
        """The enum or `error` in front of a dot."""
        if isinstance(base, s.Name):
            symbol = (scope.root if base.absolute else scope).lookup(base.name)
            if symbol is not None and symbol.kind in ("type", "namespace"):
                return symbol
        return None

    def _static_member(self, node: s.Member, namespace: Symbol) -> t.Type:
        if namespace.kind == "namespace":
            value = self._context.errors.get(node.name)
            if value is None:
                hint = suggestion(node.name, self._context.errors)
                self._context.error(node, f"error '{node.name}' is not declared{hint}")
                return t.UNKNOWN
            node.value = value
            return t.ERROR
        type_ = namespace.type
        hint = suggestion(node.name, type_.members) if isinstance(type_, t.Enum) else ""
        if isinstance(type_, t.Enum) and node.name in type_.members:
            number = type_.values[node.name]
            node.value = Symbolic(type_, node.name, number)
            return type_
        self._context.error(node, f"type '{namespace.name}' has no member '{node.name}'{hint}")
        return t.UNKNOWN

    def _index(self, node: s.Index, scope: Scope) -> t.Type:
        base = self.check(node.base, scope)
        index = self.check(node.index, scope)
        if base is t.UNKNOWN or index is t.UNKNOWN:
            return t.UNKNOWN
        if isinstance(base, t.Tuple):
            if not isinstance(node.index.value, int) or not 0 <= node.index.value < len(base.elements):
                self._context.error(node.index, f"the index of {base} must be a constant inside it")
                return t.UNKNOWN
            return base.elements[node.index.value]
        if not isinstance(base, t.Stack):
            self._context.error(node, f"only header stacks and tuples have elements, this is {base}")
            return t.UNKNOWN
        if index is t.INTEGER:
            if isinstance(node.index.value, int) and not 0 <= node.index.value < base.size:
                self._context.error(
                    node.index, f"index {node.index.value} is outside the {base.size} elements of the stack"
                )
                return t.UNKNOWN
            node.index = self.coerce(node.index, t.bit(32))
        elif not isinstance(t.representation(index), (t.Bit, t.Int)):
            self._context.error(node.index, f"an index must be an integer, this is {index}")
            return t.UNKNOWN
        return base.element

    def _slice(self, node: s.Slice, scope: Scope) -> t.Type:
        base = self.check(node.base, scope)
        high = self.constant_int(node.high, scope, "a bit number of a slice")
        low = self.constant_int(node.low, scope, "a bit number of a slice")
        if base is t.UNKNOWN or high is None or low is None:
            return t.UNKNOWN
        stored_type = base if base is t.INTEGER else t.representation(base)
        if not (stored_type is t.INTEGER or isinstance(stored_type, (t.Bit, t.Int))):
            self._context.error(node, f"only numbers have slices, this is {base}")
            return t.UNKNOWN
        width = t.MAX_WIDTH_BITS if stored_type is t.INTEGER else stored_type.width  # type: ignore[union-attr]
        if not 0 <= low <= high < width:
            self._context.error(node, f"slice [{high}:{low}] is outside the bits of {base}")
            return t.UNKNOWN
        node.high_bit, node.low_bit = high, low
        if node.base.value is not None:
            node.value = slice_bits(stored(node.base.value), high, low)
        return t.bit(high - low + 1)

    # --- operators ---

    def _unary(self, node: s.Unary, scope: Scope) -> t.Type:
        operand = self.check(node.operand, scope)
        if operand is t.UNKNOWN:
            return t.UNKNOWN
        if node.operator == "!":
            if operand is not t.BOOL:
                self._context.error(node.operand, f"'!' takes a bool, this is {operand}")
                return t.UNKNOWN
            if isinstance(node.operand.value, bool):
                node.value = not node.operand.value
            return t.BOOL
        node.operand = self._plain(node.operand)
        assert node.operand.type is not None
        operand = node.operand.type
        if not (isinstance(operand, (t.Bit, t.Int)) or (operand is t.INTEGER and node.operator != "~")):
            self._context.error(node.operand, f"'{node.operator}' takes a number, this is {operand}")
            return t.UNKNOWN
        if isinstance(node.operand.value, int):
            node.value = fold_unary(node.operator, node.operand.value, operand)
        return operand

    def _plain(self, expression: s.Expression) -> s.Expression:
        """A serialisable enum as the number that it is; anything else as it was."""
        if isinstance(expression.type, t.Enum) and expression.type.underlying is not None:
            return self.coerce(expression, expression.type.underlying)
        return expression

    def _binary(self, node: s.Binary, scope: Scope) -> t.Type:
        left = self.check(node.left, scope)
        right = self.check(node.right, scope)
        if left is t.UNKNOWN or right is t.UNKNOWN:
            return t.BOOL if node.operator in _EQUALITIES | _COMPARISONS | _LOGICAL else t.UNKNOWN
        operator = node.operator
        if operator in _LOGICAL:
            return self._logical(node)
        if operator in _EQUALITIES:
            return self._equality(node)
        if operator in ("&&&", ".."):
            return self._set(node)
        node.left = self._plain(node.left)
        node.right = self._plain(node.right)
        if operator in ("<<", ">>"):
            return self._shift(node)
        if operator == "++":
            return self._concatenation(node)
        common = self._common_number(node)
        if common is None:
            return t.UNKNOWN
        if operator in _COMPARISONS:
            if node.left.value is not None and node.right.value is not None:
                node.value = compare(operator, node.left.value, node.right.value)
            return t.BOOL
        if operator in ("/", "%") and isinstance(common, t.Int):
            self._context.error(node, f"'{operator}' is not defined for signed numbers")
            return t.UNKNOWN
        if operator in ("&", "|", "^", "|+|", "|-|") and common is t.INTEGER and operator in ("|+|", "|-|"):
            self._context.error(node, f"'{operator}' needs numbers with a width")
            return t.UNKNOWN
        self._fold(node, common)
        return common

    def _fold(self, node: s.Binary, type_: t.Type) -> None:
        left, right = node.left.value, node.right.value
        if operator_by_zero(node):
            self._context.error(node.right, "division by zero")
            return
        if isinstance(left, int) and isinstance(right, int):
            try:
                node.value = fold_binary(node.operator, left, right, type_)
            except FoldError as error:
                self._context.error(node, str(error))

    def _common_number(self, node: s.Binary) -> t.Type | None:
        left, right = node.left.type, node.right.type
        assert left is not None and right is not None
        if left is t.INTEGER and isinstance(right, (t.Bit, t.Int)):
            node.left = self.coerce(node.left, right)
            return right
        if right is t.INTEGER and isinstance(left, (t.Bit, t.Int)):
            node.right = self.coerce(node.right, left)
            return left
        if left != right or not (left is t.INTEGER or isinstance(left, (t.Bit, t.Int))):
            self._context.error(
                node, f"'{node.operator}' takes two numbers of the same type, these are {left} and {right}"
            )
            return None
        return left

    def _logical(self, node: s.Binary) -> t.Type:
        for side in (node.left, node.right):
            if side.type is not t.BOOL:
                self._context.error(side, f"'{node.operator}' takes two bools, this is {side.type}")
                return t.BOOL
        left, right = node.left.value, node.right.value
        if isinstance(left, bool):
            if left == (node.operator == "||"):
                node.value = left
            elif isinstance(right, bool):
                node.value = right
        return t.BOOL

    def _equality(self, node: s.Binary) -> t.Type:
        left, right = node.left.type, node.right.type
        assert left is not None and right is not None
        if left != right:
            if self._converts(node.right, left):
                node.right = self.coerce(node.right, left)
            elif self._converts(node.left, right):
                node.left = self.coerce(node.left, right)
            elif isinstance(left, t.Enum) or isinstance(right, t.Enum):
                node.left, node.right = self._plain(node.left), self._plain(node.right)
                if (node.left.type, node.right.type) != (left, right):
                    return self._equality(node)
                self._incomparable(node)
            else:
                self._incomparable(node)
        elif isinstance(left, (t.Extern, t.Applicable, t.Table, t.ApplyResult)) or left is t.ACTION_RUN:
            self._incomparable(node)
        if node.left.value is not None and node.right.value is not None:
            node.value = compare(node.operator, node.left.value, node.right.value)
        return t.BOOL

    def _converts(self, expression: s.Expression, target: t.Type) -> bool:
        source = expression.type
        if source is t.INTEGER:
            return isinstance(target, (t.Bit, t.Int))
        if source is t.INVALID_HEADER:
            return _is_header_like(target)
        if isinstance(expression, (s.ListExpression, s.StructExpression)):
            return isinstance(target, (t.Struct, t.Tuple, t.Stack))
        return False

    def _incomparable(self, node: s.Binary) -> None:
        self._context.error(node, f"cannot compare {node.left.type} with {node.right.type}")

    def _shift(self, node: s.Binary) -> t.Type:
        left, right = node.left.type, node.right.type
        if not (left is t.INTEGER or isinstance(left, (t.Bit, t.Int))):
            self._context.error(node.left, f"'{node.operator}' shifts numbers, this is {left}")
            return t.UNKNOWN
        if not (right is t.INTEGER or isinstance(right, t.Bit) or node.right.value is not None):
            self._context.error(node.right, f"a shift amount must be a bit<N>, this is {right}")
            return t.UNKNOWN
        if left is t.INTEGER and node.right.value is None:
            self._context.error(node.left, "the number to shift needs a width, for instance 32w1")
            return t.UNKNOWN
        if isinstance(node.right.value, int) and node.right.value < 0:
            self._context.error(node.right, "a shift amount cannot be negative")
            return t.UNKNOWN
        if right is t.INTEGER:
            amount = node.right.value
            if isinstance(amount, int):
                width = max(1, amount.bit_length())
                node.right = self._converted(node.right, t.bit(min(width, t.MAX_WIDTH_BITS)), amount)
        assert left is not None
        self._fold(node, left)
        return left

    def _concatenation(self, node: s.Binary) -> t.Type:
        left, right = node.left.type, node.right.type
        if left is t.STRING and right is t.STRING:
            if isinstance(node.left.value, str) and isinstance(node.right.value, str):
                node.value = node.left.value + node.right.value
            return t.STRING
        if not isinstance(left, (t.Bit, t.Int)) or not isinstance(right, (t.Bit, t.Int)):
            self._context.error(node, f"'++' joins numbers with a width, these are {left} and {right}")
            return t.UNKNOWN
        width = left.width + right.width
        if width > t.MAX_WIDTH_BITS:
            self._context.error(node, f"the result of '++' is wider than {t.MAX_WIDTH_BITS} bits")
            return t.UNKNOWN
        result = t.bit(width) if isinstance(left, t.Bit) else t.int_(width)
        if isinstance(node.left.value, int) and isinstance(node.right.value, int):
            mask = (1 << right.width) - 1
            node.value = wrap((node.left.value << right.width) | (node.right.value & mask), result)
        return result

    def _set(self, node: s.Binary) -> t.Type:
        node.left = self._plain(node.left)
        node.right = self._plain(node.right)
        common = self._common_number(node)
        return t.UNKNOWN if common is None else t.SetOf(common)

    def _conditional(self, node: s.Conditional, scope: Scope) -> t.Type:
        node.condition = self.check_as(node.condition, scope, t.BOOL)
        first = self.check(node.if_true, scope)
        second = self.check(node.if_false, scope)
        if first is t.UNKNOWN or second is t.UNKNOWN:
            return t.UNKNOWN
        if first != second:
            if self._converts(node.if_false, first):
                node.if_false = self.coerce(node.if_false, first)
            elif self._converts(node.if_true, second):
                node.if_true = self.coerce(node.if_true, second)
                first = second
            else:
                node.if_true, node.if_false = self._plain(node.if_true), self._plain(node.if_false)
                if node.if_true.type != node.if_false.type:
                    self._context.error(node, f"the values of '?' have different types: {first} and {second}")
                    return t.UNKNOWN
                assert node.if_true.type is not None
                first = node.if_true.type
        if isinstance(node.condition.value, bool):
            node.value = node.if_true.value if node.condition.value else node.if_false.value
        elif first is t.INTEGER:
            self._context.error(node, "the values of '?' need a width, for instance 8w1")
            return t.UNKNOWN
        return first

    def _cast(self, node: s.Cast, scope: Scope) -> t.Type:
        target = self._context.types.resolve(node.target, scope)
        source = self.check(node.operand, scope)
        if source is t.UNKNOWN or target is t.UNKNOWN:
            return target
        implicit = self._converts(node.operand, target) or source in (t.DEFAULT_VALUE, t.INVALID_HEADER)
        if implicit and source is not t.INTEGER:
            node.operand = self.coerce(node.operand, target)
            return target
        value = node.operand.value
        if not castable(source, target, value is not None):
            self._context.error(node, f"{source} cannot be cast to {target}")
            return target
        if value is not None:
            node.value = self._cast_value(node, value, target)
        return target

    def _cast_value(self, node: s.Cast, value: Constant, target: t.Type) -> Constant | None:
        if isinstance(value, str):
            return value
        number = stored(value)
        if target is t.BOOL:
            if number not in (0, 1):
                self._context.error(node, f"only 0 and 1 can be cast to bool, not {number}")
            return bool(number)
        if target is t.INTEGER:
            return number
        if isinstance(target, t.Enum):
            name = next((name for name, one in target.values.items() if one == number), str(number))
            return Symbolic(target, name, number)
        return wrap(number, t.representation(target))

    # --- aggregates ---

    def _list(self, node: s.ListExpression, scope: Scope) -> t.Type:
        elements = tuple(self.check(item, scope) for item in node.items)
        return t.UNKNOWN if t.UNKNOWN in elements else t.Tuple(elements)

    def _struct(self, node: s.StructExpression, scope: Scope) -> t.Type:
        elements = tuple(self.check(item, scope) for _, item in node.fields)
        if t.UNKNOWN in elements:
            return t.UNKNOWN
        return t.NamedFields(tuple(name for name, _ in node.fields), elements)

    # --- places that can be written ---

    def require_writable(self, expression: s.Expression, what: str) -> bool:
        """Report unless the (checked) expression is a place that can be assigned to."""
        if expression.type is t.UNKNOWN:
            return False
        if isinstance(expression, s.Name) and expression.symbol is not None:
            if expression.symbol.writable:
                return True
            self._context.error(
                expression,
                f"'{expression.name}' cannot be changed {what}",
                (expression.symbol.loc, f"it is declared here as {_described(expression.symbol)}"),
            )
            return False
        if isinstance(expression, s.Member) and isinstance(expression.base.type, (t.Struct, t.Stack)):
            if isinstance(expression.base.type, t.Stack) and expression.name not in ("next", "last"):
                self._context.error(expression, f"'{expression.name}' of a stack cannot be changed")
                return False
            return self.require_writable(expression.base, what)
        if isinstance(expression, (s.Index, s.Slice)):
            return self.require_writable(expression.base, what)
        self._context.error(expression, f"this expression cannot be changed {what}")
        return False


def operator_by_zero(node: s.Binary) -> bool:
    return node.operator in ("/", "%") and node.right.value == 0


def _is_header_like(type_: t.Type) -> bool:
    return isinstance(type_, t.Struct) and type_.kind != "struct"


def _described(symbol: Symbol) -> str:
    if symbol.kind == "parameter":
        return f"a parameter with direction '{symbol.direction}'" if symbol.direction else "action data"
    return symbol.kind.replace("_", " ")
