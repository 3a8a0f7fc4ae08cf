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
    "backslash": "blanks between a backslash and the end of a line that goes on",
    "bmv2": "something that BMv2 does in another way than this switch, and than P4 says",
    "deprecated": "something is used that is only there for old programs",
    "directive": "a line that begins with # and is no directive: it is left out",
    "duplicate": "two actions that the controller knows by one name",
    "ignore-prop": "a property of a table that means nothing to v1model",
    "invalid_header": "a field is read of a header that no part of the program ever makes valid",
    "mismatch": "a comparison whose result does not depend on the packet",
    "overflow": "a constant is cut to fit its type",
    "parser-transition": "a parser state without a transition, where packets are rejected",
    "paste": "a ## in a macro joins what gives no single token: the two stay apart",
    "redefined": "a macro is defined differently a second time",
    "uninitialized_use": "a variable or out parameter is read before it has a value",
    "unreachable": "states, cases and statements that no packet gets to",
    "unsupported": "something that works here and that p4c, its back end for BMv2, or BMv2 refuses",
    "unused": "tables, selector keys, actions, controls, parsers, instances and variables that nothing uses",
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
