"""The run of all analyses, and @noWarn, which silences them."""

from __future__ import annotations

from collections.abc import Sequence

from gradbed.switch.compiler import ir
from gradbed.switch.compiler import syntax as s
from gradbed.switch.compiler.analysis.bmv2_differences import warn_of_bmv2_differences, warn_of_conditional_actions
from gradbed.switch.compiler.analysis.dead_code import (
    warn_of_constant_comparisons,
    warn_of_unreachable_code,
    warn_of_unused,
)
from gradbed.switch.compiler.analysis.uninitialized import warn_of_invalid_headers, warn_of_uninitialized_reads
from gradbed.switch.compiler.checker import CheckedProgram
from gradbed.switch.compiler.diagnostics import Reporter

# The names are p4c's where it has the same warning, so that a @noWarn("...") works with both.
CATEGORIES = {
    "backslash": "blanks after the backslash of a line continuation",
    "bmv2": "something that BMv2 does differently from this switch and from the P4 specification",
    "deprecated": "a deprecated construct is used",
    "directive": "a line that begins with # and is no directive; the compiler ignores it",
    "duplicate": "two actions have the same control-plane name",
    "ignore-prop": "a table property that v1model ignores",
    "invalid_header": "a field of a header is read that the program never makes valid",
    "mismatch": "the result of a comparison is constant",
    "overflow": "a constant is truncated to its type",
    "parser-transition": "a parser state has no transition, so it rejects packets",
    "paste": "the operands of ## in a macro do not form one token and stay separate",
    "redefined": "a macro is redefined differently",
    "uninitialized_use": "a variable or out parameter is read before it has a value",
    "unreachable": "a parser state, case or statement that no packet reaches",
    "unsupported": "something that works here but that p4c, its BMv2 back end or BMv2 refuses",
    "unused": "a table, selector key, action, control, parser, instance or variable that is never used",
    "user": "the text of a #warning line",
}


def analyse_program(checked: CheckedProgram, actions: Sequence[ir.LoweredAction], reporter: Reporter) -> None:
    """Report warnings about declarations of the user, and about actions of tables and those that controls call."""
    declarations = [
        declaration
        for declaration in checked.program.declarations
        if not reporter.sources.is_standard(declaration.loc)
    ]
    warn_of_unused(declarations, reporter)
    warn_of_bmv2_differences(checked, declarations, reporter)
    warn_of_unreachable_code(declarations, reporter)
    # The rest needs types, which the declarations of generic things have not.
    concrete = [item for item in declarations if not getattr(item, "type_parameters", None)]
    warn_of_uninitialized_reads(concrete, reporter)
    warn_of_constant_comparisons(concrete, reporter)
    warn_of_conditional_actions(actions, reporter)
    if len(concrete) == len(declarations):
        warn_of_invalid_headers(concrete, reporter)
    reporter.diagnostics.sort(key=lambda item: (item.file, item.line, item.column))


def silence_annotated(program: s.P4Program, reporter: Reporter) -> None:
    """Let @noWarn("category") drop that warning for what it annotates (P4_16 1.2.5, section 20.3.8)."""
    for node in s.walk(program):
        for annotation in getattr(node, "annotations", ()):
            category = annotation.string() if annotation.name == "noWarn" else None
            if category is not None:
                reporter.silence(node.loc, node.end, category)
