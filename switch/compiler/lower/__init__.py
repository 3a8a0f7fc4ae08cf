"""Lowering of the checked syntax tree to the IR: everything is inlined, every variable has storage."""

# These three hold the rules by type of node that `lower` and `value_of` of context.py choose from.
from gradbed.switch.compiler.lower import calls, expressions, statements
from gradbed.switch.compiler.lower.program import lower_program

__all__ = ["calls", "expressions", "lower_program", "statements"]
