"""Reads of variables and out parameters that no path has assigned, and of headers that are never valid.

A header is named by its field of the struct, whatever parameter that struct is passed by. It can become valid where
it is extracted, assigned, set valid or passed to be written, or where its whole struct is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gradbed.switch.compiler import syntax as s
from gradbed.switch.compiler import types as t
from gradbed.switch.compiler.diagnostics import Reporter
from gradbed.switch.compiler.symbols import ParameterType, Symbol


def warn_of_uninitialized_reads(declarations: Sequence[s.Declaration], reporter: Reporter) -> None:
    for declaration in declarations:
        if isinstance(declaration, s.ControlDeclaration) and declaration.body is not None:
            _control(declaration, declaration.body, reporter)
        elif isinstance(declaration, s.ParserDeclaration):
            for state in declaration.states or ():
                flow = _Flow(reporter)
                flow.statements(state.statements)
                if state.transition is not None:
                    for key in state.transition.keys or ():
                        flow.read(key)
        elif isinstance(declaration, s.FunctionDeclaration) and declaration.body is not None:
            _function(declaration, declaration.body, reporter)


def _control(declaration: s.ControlDeclaration, body: s.Block, reporter: Reporter) -> None:
    """Analyse a control.

    Its variables are tracked in the apply block only, since what actions see depends on their callers.
    """
    by_actions = _Flow(None)
    for local in declaration.locals:
        if isinstance(local, s.FunctionDeclaration) and local.body is not None:
            _function(local, local.body, reporter)
            by_actions.statement(local.body)
    flow = _Flow(reporter, by_actions.written)
    flow.out_parameters(declaration.signature)
    for local in declaration.locals:
        if isinstance(local, s.VariableDeclaration):
            flow.statement(local)
    flow.statement(body)


def _function(declaration: s.FunctionDeclaration, body: s.Block, reporter: Reporter) -> None:
    flow = _Flow(reporter)
    flow.out_parameters(declaration.signature)
    flow.statement(body)


class _Flow:
    """A walk through a body, which tracks the variables that some path so far may have written (`written`).

    Without a reporter it only collects them. `by_actions` has the variables that a table or an action may write.
    """

    def __init__(self, reporter: Reporter | None, by_actions: set[Symbol] | None = None) -> None:
        self.written: set[Symbol] = set()
        self._reporter = reporter
        self._by_actions = by_actions or set()
        self._tracked: set[Symbol] = set()

    def out_parameters(self, parameters: Sequence[ParameterType]) -> None:
        self._tracked.update(parameter.symbol for parameter in parameters if parameter.direction == "out")

    # ---- Statements ----

    def statements(self, nodes: Sequence[s.Statement]) -> None:
        for node in nodes:
            self.statement(node)

    def statement(self, node: s.Statement) -> None:
        if isinstance(node, s.Assignment):
            self.read(node.source)
            self._write(node.target)
        elif isinstance(node, s.CallStatement):
            self.read(node.call)
        elif isinstance(node, s.VariableDeclaration):
            self._variable(node)
        elif isinstance(node, s.Block):
            self.statements(node.statements)
        elif isinstance(node, s.If):
            self.read(node.condition)
            self._either([node.then] if node.otherwise is None else [node.then, node.otherwise])
        elif isinstance(node, s.Switch):
            self.read(node.expression)
            self._either([case.body for case in node.cases if case.body is not None])
        elif isinstance(node, s.Return) and node.value is not None:
            self.read(node.value)
        elif isinstance(node, s.For):
            self.statements(node.initial)
            self._loop([node.body, *node.update], node.condition)
        elif isinstance(node, s.ForIn):
            self.read(node.collection)
            self._loop([node.body], None)

    def _variable(self, node: s.VariableDeclaration) -> None:
        if node.initial is not None:
            self.read(node.initial)
        elif node.symbol is not None:
            self._tracked.add(node.symbol)
            self.written.discard(node.symbol)

    def _either(self, branches: Sequence[s.Statement]) -> None:
        before = self.written
        after = set(before)
        for branch in branches:
            self.written = set(before)
            self.statement(branch)
            after |= self.written
        self.written = after

    def _loop(self, body: list[s.Statement], condition: s.Expression | None) -> None:
        """Analyse the body of a loop, where one iteration may read what the one before has written."""
        rounds = _Flow(None, self._by_actions)
        rounds.statements(body)
        self.written |= rounds.written
        if condition is not None:
            self.read(condition)
        self.statements(body)

    # ---- Expressions ----

    def read(self, node: s.Expression) -> None:
        if isinstance(node, s.Call):
            self._call(node)
        elif isinstance(node, (s.Name, s.Member, s.Index, s.Slice)):
            self._read_place(node)
        elif isinstance(node, (s.Convert, s.Cast, s.Unary)):
            self.read(node.operand)
        elif isinstance(node, s.Binary):
            self.read(node.left)
            self.read(node.right)
        elif isinstance(node, s.Conditional):
            self.read(node.condition)
            self.read(node.if_true)
            self.read(node.if_false)
        elif isinstance(node, s.ListExpression):
            for item in node.items:
                self.read(item)
        elif isinstance(node, s.StructExpression):
            for _, item in node.fields:
                self.read(item)

    def _read_place(self, node: s.Expression) -> None:
        if isinstance(node, s.Member) and isinstance(node.base.type, t.Stack) and node.name in ("lastIndex", "size"):
            return
        root = self._root(node)
        if root is None or root.symbol is None or root.symbol in self.written or root.symbol not in self._tracked:
            return
        if node.type is None or not t.is_scalar(node.type):
            return
        self.written.add(root.symbol)  # one warning for a variable is enough
        if self._reporter is not None:
            message = f"'{root.name}' is read here, but has no value yet"
            self._reporter.warning(node.loc, message, node.end, category="uninitialized_use", about=root.symbol.loc)

    def _root(self, node: s.Expression) -> s.Name | None:
        """Return the variable of an l-value, after reading the indices and calls on the way to it."""
        while not isinstance(node, s.Name):
            if isinstance(node, s.Index):
                self.read(node.index)
            if not isinstance(node, (s.Member, s.Index, s.Slice)):
                self.read(node)
                return None
            node = node.base
        return node

    def _write(self, node: s.Expression) -> None:
        root = self._root(node)
        if root is not None and root.symbol is not None:
            self.written.add(root.symbol)

    def _call(self, node: s.Call) -> None:
        target = node.target
        if target is None:
            return
        written: list[s.Expression] = []
        for parameter, argument in zip(target.parameters, target.bound, strict=False):
            if argument is None:
                continue
            if parameter.direction in ("out", "inout"):
                written.append(argument)
            if parameter.direction != "out":
                self.read(argument)
        if target.receiver is not None and target.name != "isValid":
            written.append(target.receiver)
        for lvalue in written:
            self._write(lvalue)
        if target.kind in ("apply_table", "action"):
            self.written |= self._by_actions


# ---- Headers that are never valid ----


# The struct by identity, and the name of its field.
_Header = tuple[int, str]


def warn_of_invalid_headers(declarations: Sequence[s.Declaration], reporter: Reporter) -> None:
    made: set[_Header] = set()
    whole: set[int] = set()
    reads: list[tuple[s.Member, s.Member, _Header]] = []
    lvalues: set[int] = set()
    for declaration in declarations:
        for node in s.walk(declaration):
            for lvalue in _written(node):
                lvalues.update(id(part) for part in _chain(lvalue))
                made.update(header for part in _chain(lvalue) if (header := _header(part)) is not None)
                if isinstance(lvalue.type, t.Struct) and not _is_passed_on(node):
                    whole.add(id(lvalue.type.node))
            if isinstance(node, s.Member) and isinstance(node.base, s.Member):
                header = _header(node.base)
                if header is not None and node.type is not None and t.is_scalar(node.type):
                    reads.append((node, node.base, header))
    reported: set[_Header] = set()
    for member, base, header in sorted(reads, key=lambda item: item[0].loc):
        if header in made or header[0] in whole or header in reported or id(member) in lvalues:
            continue
        reported.add(header)
        message = f"header '{base.name}' is never valid: it is never extracted, assigned or set valid"
        reporter.warning(member.loc, message, member.end, category="invalid_header")


def _header(node: s.Expression) -> _Header | None:
    """Return the header that `struct.header` names."""
    if not isinstance(node, s.Member):
        return None
    base, type_ = node.base.type, node.type
    if isinstance(base, t.Struct) and base.kind == "struct" and isinstance(type_, t.Struct) and type_.is_header:
        return id(base.node), node.name
    return None


def _chain(lvalue: s.Expression) -> Iterator[s.Expression]:
    """Yield an l-value and everything that it is a part of."""
    current: s.Expression | None = lvalue
    while current is not None:
        yield current
        current = current.base if isinstance(current, (s.Member, s.Index, s.Slice)) else None


def _written(node: s.Node) -> Iterator[s.Expression]:
    """Yield the l-values that a node by itself may write."""
    if isinstance(node, s.Assignment):
        yield node.target
    elif isinstance(node, s.VariableDeclaration) and node.initial is not None:
        yield node.initial
    elif isinstance(node, s.Return) and node.value is not None:
        yield node.value
    elif isinstance(node, s.Call) and node.target is not None:
        if node.target.receiver is not None and node.target.name != "isValid":
            yield node.target.receiver
        for parameter, argument in zip(node.target.parameters, node.target.bound, strict=False):
            if parameter.direction in ("out", "inout") and argument is not None:
                yield argument


def _is_passed_on(node: s.Node) -> bool:
    """Return whether the written l-value is an argument of something whose own statements are analysed."""
    target = node.target if isinstance(node, s.Call) else None
    return target is not None and target.kind in ("apply", "apply_type", "action", "function")
