"""From the checked syntax tree to flat code: everything is inlined, every value has its place."""

from switch.compiler.lower.program import LoweredProgram, lower_program

__all__ = ["LoweredProgram", "lower_program"]
