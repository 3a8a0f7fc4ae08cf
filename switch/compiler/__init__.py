"""Compiler from P4_16 for v1model to BMv2 JSON and P4Info: compile_p4(path)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradbed.switch.compiler.diagnostics import CompileError, Diagnostic
from gradbed.switch.compiler.preprocessor import input_files

if TYPE_CHECKING:
    from gradbed.switch.compiler.driver import Compiled, compile_p4

__all__ = ["CompileError", "Compiled", "Diagnostic", "compile_p4", "input_files"]


def __getattr__(name: str) -> Any:
    # Loads all of the compiler, which a program that was compiled before has no need of.
    if name not in ("Compiled", "compile_p4"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from gradbed.switch.compiler import driver

    return getattr(driver, name)
