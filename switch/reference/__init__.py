"""A reference for P4: v1model programs interpreted from their source, as the specification says."""

from switch.reference.pipeline import ReferenceSwitch
from switch.reference.tokens import ProgramError

__all__ = ["ProgramError", "ReferenceSwitch"]
