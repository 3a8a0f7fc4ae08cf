"""The data plane as Python sees it: engine (switches, links, ports), device (one switch), captures, statistics."""

from gradbed.switch.engine.capture import Capture, CaptureInterface, Tap
from gradbed.switch.engine.device import EngineDevice
from gradbed.switch.engine.engine import Engine
from gradbed.switch.engine.statistics import (
    DeviceStatistics,
    Direction,
    EngineStatistics,
    InterfaceStatistics,
    LinkStatistics,
)

__all__ = [
    "Capture",
    "CaptureInterface",
    "DeviceStatistics",
    "Direction",
    "Engine",
    "EngineDevice",
    "EngineStatistics",
    "InterfaceStatistics",
    "LinkStatistics",
    "Tap",
]
