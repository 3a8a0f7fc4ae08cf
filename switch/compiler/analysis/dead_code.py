"""Code without effect: unused declarations, unreachable states and statements, comparisons with a fixed result.

A declaration counts as used if its name is mentioned anywhere outside it where it is visible. A name that shadows it
can at worst hide a warning.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence

from gradbed.switch.compiler import syntax as s
from gradbed.switch.compiler import types as t
from gradbed.switch.compiler.diagnostics import Reporter
from gradbed.switch.compiler.source import SourceManager
from gradbed.switch.compiler.values import limits

# ---- Unused declarations ----


def warn_of_unused(declarations: Sequence[s.Declaration], reporter: Reporter) -> None:
    everywhere = sum(map(_mentions, declarations), Counter[str]())
    for declaration in declarations:
        if _is_library(declaration, reporter):
            continue
        _warn_unless_mentioned(declaration, everywhere, reporter)
        mentions = _mentions(declaration)
        if isinstance(declaration, (s.ControlDeclaration, s.ParserDeclaration)):
            for local in declaration.locals:
                _warn_unless_mentioned(local, mentions, reporter)
            _warn_of_direct_externs(declaration.locals, mentions, reporter)
        for node in s.walk(declaration):
            for statement in _statements(node):
                if isinstance(statement, s.VariableDeclaration):
                    _warn_unless_mentioned(statement, mentions, reporter)


def _warn_of_direct_externs(locals_: Sequence[s.Declaration], mentions: Counter[str], reporter: Reporter) -> None:
    """Warn of direct counters and meters that are used, but belong to no table."""
    tables = [local for local in locals_ if isinstance(local, s.TableDeclaration)]
    owned = {name for table in tables for item in table.properties for name in _mentions(item)}
    for node in locals_:
        if (
            isinstance(node, s.Instantiation)
            and isinstance(node.type, s.NamedType)
            and node.type.name in ("direct_counter", "direct_meter")
            and node.name not in owned
            and mentions[node.name]
        ):
            message = f"{node.type.name} '{node.name}' belongs to no table and does nothing"
            reporter.warning(node.name_loc, message, node.name_loc + len(node.name), category="unused")


def _is_library(declaration: s.Declaration, reporter: Reporter) -> bool:
    """Return whether the declaration is in another file, where it need not be used."""
    sources = reporter.sources
    return sources.file_at(declaration.loc)[0] is not sources.file_at(sources.main_loc)[0]


def _statements(node: s.Node) -> list[s.Statement]:
    return node.statements if isinstance(node, (s.Block, s.StateDeclaration)) else []


def _mentions(node: s.Node) -> Counter[str]:
    """Count how often each name is used below a node."""
    kinds = (s.Name, s.NamedType, s.ActionRef)
    return Counter(inner.name for inner in s.walk(node) if isinstance(inner, kinds))


def _warn_unless_mentioned(node: s.Declaration, mentions: Counter[str], reporter: Reporter) -> None:
    what = _unused_message(node)
    if (
        what is None
        or mentions[node.name] > _mentions(node)[node.name]
        or reporter.sources.is_expanded(node.name_loc)
    ):
        return
    reporter.warning(node.name_loc, what, node.name_loc + len(node.name), category="unused")


def _unused_message(node: s.Declaration) -> str | None:
    """Return the warning for this declaration if it is unused; None for what may well be unused."""
    if isinstance(node, s.TableDeclaration):
        return f"table '{node.name}' is never applied"
    if isinstance(node, s.FunctionDeclaration) and node.body is not None:
        if node.return_type is None:
            return f"action '{node.name}' is in no table and never called"
        return f"function '{node.name}' is never called"
    if isinstance(node, s.ControlDeclaration) and node.body is not None:
        return f"control '{node.name}' is never used"
    if isinstance(node, s.ParserDeclaration) and node.states is not None:
        return f"parser '{node.name}' is never used"
    if isinstance(node, s.Instantiation) and node.name != "main":
        return f"instance '{node.name}' is never used"
    if isinstance(node, s.VariableDeclaration):
        return f"variable '{node.name}' is never used"
    if isinstance(node, s.ValueSetDeclaration):
        return f"value set '{node.name}' is never used"
    return None


# ---- Unreachable states and statements ----


def warn_of_unreachable_code(declarations: Sequence[s.Declaration], reporter: Reporter) -> None:
    for declaration in declarations:
        if isinstance(declaration, s.ParserDeclaration) and declaration.states:
            _warn_of_states(declaration, declaration.states, reporter)
        for node in s.walk(declaration):
            if isinstance(node, s.Block):
                _warn_behind_end(node.statements, reporter)
            elif isinstance(node, s.Transition):
                _warn_behind_default(node, reporter)


def _warn_of_states(parser: s.ParserDeclaration, states: list[s.StateDeclaration], reporter: Reporter) -> None:
    by_name = {state.name: state for state in states}
    reached: set[str] = set()
    pending = ["start"]
    while pending:
        name = pending.pop()
        state = by_name.get(name)
        if state is None or name in reached:
            continue
        reached.add(name)
        if state.transition is not None:
            pending += [state.transition.state, *(case.state for case in state.transition.cases)]
    for state in states:
        end = state.name_loc + len(state.name)
        if state.name not in reached:
            message = f"no transition of parser '{parser.name}' leads to state '{state.name}'"
            reporter.warning(state.name_loc, message, end, category="unreachable")
        elif state.transition is None:
            message = f"state '{state.name}' has no transition: parsing ends here and rejects the packet"
            reporter.warning(state.name_loc, message, end, category="parser-transition")


def _warn_behind_default(transition: s.Transition, reporter: Reporter) -> None:
    for index, case in enumerate(transition.cases[:-1]):
        labels = case.label.items if isinstance(case.label, s.ListExpression) else [case.label]
        if all(isinstance(label, s.Wildcard) for label in labels):
            behind = transition.cases[index + 1]
            message = "this case is never chosen: the one before it takes all values"
            reporter.warning(behind.loc, message, behind.end, category="unreachable")
            return


def _warn_behind_end(statements: list[s.Statement], reporter: Reporter) -> None:
    for statement, behind in itertools.pairwise(statements):
        if _ends(statement) and not isinstance(behind, s.Empty):
            message = "this is never executed: the statement before it does not go on"
            reporter.warning(behind.loc, message, behind.end, category="unreachable")
            return


def _ends(statement: s.Statement) -> bool:
    """Return whether control never continues after a statement."""
    if isinstance(statement, (s.Return, s.Exit, s.Break, s.Continue)):
        return True
    if isinstance(statement, s.Block):
        return any(map(_ends, statement.statements))
    if isinstance(statement, s.If):
        return statement.otherwise is not None and _ends(statement.then) and _ends(statement.otherwise)
    return False


# ---- Constant comparisons ----


_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}


def warn_of_constant_comparisons(declarations: Sequence[s.Declaration], reporter: Reporter) -> None:
    for declaration in declarations:
        for node in s.walk(declaration):
            if not isinstance(node, s.Binary) or node.operator not in _MIRRORED:
                continue
            if not _is_written_out(node, reporter.sources):
                continue  # a macro serves widths and values that differ
            result = _result(node)
            if result is not None:
                message = f"this comparison is always {str(result).lower()}"
                reporter.warning(node.loc, message, node.end, category="mismatch")


def _is_written_out(node: s.Binary, sources: SourceManager) -> bool:
    """Return whether the operator is between its operands in the file, with no token of a macro."""
    if any(map(sources.is_expanded, (node.loc, node.left.end, node.right.loc, node.end))):
        return False
    source, start = sources.file_at(node.left.end)
    return node.operator in source.text[start : sources.file_at(node.right.loc)[1]]


def _result(node: s.Binary) -> bool | None:
    """Return the result of the comparison if it follows from the range of its variable side alone."""
    operator, variable, constant = node.operator, node.left, node.right
    if _number(variable) is not None:
        operator, variable, constant = _MIRRORED[operator], constant, variable
    number = _number(constant)
    if number is None or _number(variable) is not None:
        return None
    values = _range(variable)
    if values is None:
        return None
    least, greatest = values
    if operator in ("==", "!="):
        return None if least <= number <= greatest else operator == "!="
    always, never = {
        "<": (greatest < number, least >= number),
        "<=": (greatest <= number, least > number),
        ">": (least > number, greatest <= number),
        ">=": (least >= number, greatest < number),
    }[operator]
    return True if always else False if never else None


def _number(node: s.Expression) -> int | None:
    value = node.value
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _range(node: s.Expression) -> tuple[int, int] | None:
    """Return the least and greatest value of an expression."""
    type_ = node.type
    if not isinstance(type_, (t.Bit, t.Int)):
        return None
    if isinstance(node, (s.Cast, s.Convert)) and isinstance(type_, t.Bit):
        inner = node.operand.type
        if isinstance(inner, t.Bit) and inner.width <= type_.width:
            return _range(node.operand)
    if isinstance(type_, t.Bit) and isinstance(node, s.Binary) and node.operator == "&":
        masks = [mask for mask in (_number(node.left), _number(node.right)) if mask is not None]
        if masks:
            return 0, min(masks)
    return limits(type_)
