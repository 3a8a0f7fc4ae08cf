"""Parser states, select cases and statements that no packet gets to."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from gradbed.switch.compiler import syntax as s
from gradbed.switch.compiler.diagnostics import Reporter


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
    """Return whether control never gets behind a statement."""
    if isinstance(statement, (s.Return, s.Exit, s.Break, s.Continue)):
        return True
    if isinstance(statement, s.Block):
        return any(map(_ends, statement.statements))
    if isinstance(statement, s.If):
        return statement.otherwise is not None and _ends(statement.then) and _ends(statement.otherwise)
    return False
