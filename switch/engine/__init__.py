"""The data plane as Python sees it: engine (switches, links, ports), device (one switch), captures, statistics."""

from switch.engine.capture import Capture, CaptureInterface, Tap
from switch.engine.device import EngineDevice
from switch.engine.engine import Engine
from switch.engine.statistics import (
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
