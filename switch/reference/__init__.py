"""A reference for P4: v1model programs interpreted from their source, as the specification says."""

from gradbed.switch.reference.pipeline import ReferenceSwitch
from gradbed.switch.reference.tokens import ProgramError

__all__ = ["ProgramError", "ReferenceSwitch"]
