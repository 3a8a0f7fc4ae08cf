"""The whole machine's processors, from the first line of /proc/stat (proc_stat(5))."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class MachineTimes:
    """Processor time of all processors together, in clock ticks, since the start of the machine."""

    busy: int
    idle: int
    stolen: int
    """Taken by a hypervisor for others."""

    def __sub__(self, other: MachineTimes) -> MachineTimes:
        return MachineTimes(self.busy - other.busy, self.idle - other.idle, self.stolen - other.stolen)

    @property
    def total(self) -> int:
        return self.busy + self.idle + self.stolen


def machine_times(stat: Path = Path("/proc/stat")) -> MachineTimes:
    """The sum over all processors now."""
    user, nice, system, idle, iowait, irq, softirq, steal = map(int, stat.read_text().split("\n", 1)[0].split()[1:9])
    return MachineTimes(busy=user + nice + system + irq + softirq, idle=idle + iowait, stolen=steal)
