"""The state of one switch, from Python: tables, registers, counters, meters, value sets, action profiles."""

from __future__ import annotations

from switch.runtime.access.meter_access import MeterAccess


class SwitchState(MeterAccess):
    """What one switch that runs a program keeps between packets. Implements that part of switch.device.Device."""
