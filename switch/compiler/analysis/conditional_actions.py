"""Conditions in actions around more than assignments: BMv2 jumps over anything, p4c predicates assignments alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gradbed.switch.compiler import ir
from gradbed.switch.compiler.diagnostics import Reporter

_ASSIGNMENTS = {"assign_VL", "assign_header", "assign_header_stack"}


def warn_of_conditional_actions(actions: Sequence[ir.LoweredAction], reporter: Reporter) -> None:
    """Warn of what is under conditions in actions, and in what these call."""
    found = {
        (each.loc, each.end) for action in actions for each in _refused(action.body, _exit(action), False, set())
    }
    for loc, end in sorted(found):
        reporter.warning(
            loc,
            "p4c's back end for BMv2 takes only assignments under a condition in an action, not this",
            end,
            category="unsupported",
        )


def _exit(action: ir.LoweredAction) -> ir.Label | None:
    """Return what an exit leaves: the whole action."""
    outermost = action.body[0] if action.body else None
    return outermost.label if isinstance(outermost, ir.LoweredBlock) else None


def _refused(
    body: Sequence[ir.LoweredStatement], exit_: ir.Label | None, is_conditional: bool, left: set[ir.Label]
) -> Iterator[ir.LoweredStatement]:
    """What is no assignment and is reached on a condition, also behind a return on a condition. left: labels of the
    blocks around that may have been left before."""
    for statement in body:
        here = is_conditional or bool(left)
        match statement:
            case ir.LoweredIf():
                yield from _refused(statement.then, exit_, True, left)
                yield from _refused(statement.otherwise, exit_, True, left)
            case ir.LoweredBlock() if not _is_loop(statement):
                yield from _refused(statement.body, exit_, is_conditional, left)
                left.discard(statement.label)
            case ir.Leave():
                if here and statement.label is exit_:
                    yield statement
                left.add(statement.label)
                return
            case ir.LoweredEnd() if here:
                yield statement
            case ir.LoweredPrimitive() if here and statement.op not in _ASSIGNMENTS and statement.op != "exit":
                yield statement


def _is_loop(block: ir.LoweredBlock) -> bool:
    """p4c unrolls loops, if it knows them at all: what is then under a condition nobody knows here."""
    return any(isinstance(each, ir.Repeat) and each.label is block.label for each in block.body)
