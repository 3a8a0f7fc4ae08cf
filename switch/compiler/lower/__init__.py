"""From the checked syntax tree to flat code: everything is inlined, every value has its place."""

from switch.compiler.lower.program import lower_program
from switch.compiler.lower.result import LoweredProgram

__all__ = ["LoweredProgram", "lower_program"]
