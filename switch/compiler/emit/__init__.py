"""Emission of lowered programs as BMv2 JSON, by section."""

from gradbed.switch.compiler.emit.document import emit_bmv2

__all__ = ["emit_bmv2"]
