"""Names and types: what every name stands for, what every expression's type and compile-time value is."""

from switch.compiler.checker.program import CheckedProgram, check_program

__all__ = ["CheckedProgram", "check_program"]
