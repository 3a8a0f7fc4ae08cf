"""The P4Info message of P4Runtime: what the control plane may know of a program."""

from gradbed.switch.compiler.p4info.document import emit_p4info

__all__ = ["emit_p4info"]
