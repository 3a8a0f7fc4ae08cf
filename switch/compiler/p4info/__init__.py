"""What the control plane may know of a program, as P4Runtime's P4Info message."""

from gradbed.switch.compiler.p4info.document import emit_p4info

__all__ = ["emit_p4info"]
