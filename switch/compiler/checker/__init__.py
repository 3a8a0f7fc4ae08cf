"""Names and types: what every name stands for, what every expression's type and compile-time value is."""

# These three hold the rules by kind of expression that `type_of` of context.py chooses from.
from gradbed.switch.compiler.checker import calls, expressions, operators
from gradbed.switch.compiler.checker.program import CheckedProgram, check_program

__all__ = ["CheckedProgram", "calls", "check_program", "expressions", "operators"]
