"""Conditions in actions around more than assignments: BMv2 jumps over anything, p4c predicates assignments alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from switch.compiler import syntax as s
from switch.compiler.diagnostics import Reporter


def warn_of_conditional_actions(declarations: Sequence[s.Declaration], reporter: Reporter) -> None:
    for declaration in declarations:
        for node in s.walk(declaration):
            if isinstance(node, s.FunctionDeclaration) and node.return_type is None and node.body is not None:
                for statement in _under_conditions(node.body):
                    reporter.warning(
                        statement.loc,
                        "p4c's back end for BMv2 takes only assignments under a condition in an action, not this",
                        statement.end,
                        category="unsupported",
                    )


def _under_conditions(body: s.Block) -> Iterator[s.Statement]:
    """Exits, and calls of what is neither a function nor an action, that are reached on a condition."""
    for conditional in s.walk(body):
        if isinstance(conditional, (s.If, s.Switch)):
            for node in s.walk(conditional):
                if isinstance(node, s.Exit) or (isinstance(node, s.CallStatement) and not _is_inlined(node)):
                    yield node


def _is_inlined(statement: s.CallStatement) -> bool:
    target = statement.call.target if isinstance(statement.call, s.Call) else None
    return target is None or target.kind in ("function", "action")
