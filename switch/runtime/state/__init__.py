"""The state of one switch, from Python: tables, registers, counters, meters, value sets, action profiles."""

from __future__ import annotations

from switch.runtime.state.array_access import ArrayAccess
from switch.runtime.state.table_access import TableAccess


class SwitchState(TableAccess, ArrayAccess):
    """What one switch that runs a program keeps between packets. Implements that part of switch.device.Device."""
