"""Stand-ins for p4c's and BMv2's commands: write_shims(folder) makes executables that existing tool chains find."""

from gradbed.switch.shims.write import SHIMS, write_shims

__all__ = ["SHIMS", "write_shims"]
