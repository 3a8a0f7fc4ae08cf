"""The type checker: the declaration of every name, the type and compile-time value of every expression."""

# These three hold the rules by kind of expression that `type_of` of context.py chooses from.
from gradbed.switch.compiler.checker import calls, expressions, operators
from gradbed.switch.compiler.checker.program import CheckedProgram, check_program

__all__ = ["CheckedProgram", "calls", "check_program", "expressions", "operators"]
