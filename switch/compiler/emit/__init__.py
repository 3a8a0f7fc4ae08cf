"""Lowered programs to BMv2 JSON, one file per section of it."""

from gradbed.switch.compiler.emit.document import emit_bmv2

__all__ = ["emit_bmv2"]
