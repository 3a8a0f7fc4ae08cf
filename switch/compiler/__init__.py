"""P4_16 for v1model to BMv2 JSON and P4Info: compile_p4(path)."""

from switch.compiler.diagnostics import CompileError, Diagnostic
from switch.compiler.driver import Compiled, compile_p4, files_of

__all__ = ["CompileError", "Compiled", "Diagnostic", "compile_p4", "files_of"]
