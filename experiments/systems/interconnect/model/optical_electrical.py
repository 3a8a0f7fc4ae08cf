"""The optical and electrical interconnect in the model: queues by arithmetic, and the policies of hybrid switches.

Queues: hosts' links to their switch; the links to hosts; mesh links by (x, y, y'); light up by (plane, y, x, channel)
and light down by (plane, y, x', channel), where the channel is x' - x and x' - x, or 0 where a fibre is one channel.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gradbed.controller.systems.interconnect.entries import POLICIES, PolicyName, Rule
from gradbed.experiments.systems.interconnect.model.slots import DELIVERED, Integers, Packets
from gradbed.topo.optical_electrical import PLANES

TURNS = 8

UNSEEN = 1
"""Packets that are supposed in the queue at the far end when light is first (choose_path.p4)."""


@dataclass(frozen=True)
class OpticalElectrical:
    """gradbed.experiments.systems.interconnect.model.slots.Fabric."""

    n: int
    policy: PolicyName = "least-loaded"
    per_wavelength: bool = True

    @property
    def hosts(self) -> int:
        return self.n**3

    @property
    def turns(self) -> int:
        return TURNS if Rule.LEAST_LOADED in (POLICIES[self.policy].plane, POLICIES[self.policy].order) else 1

    @property
    def _mesh(self) -> int:
        return 2 * self.hosts

    @property
    def _up(self) -> int:
        return self._mesh + self.n**3

    @property
    def _down(self) -> int:
        return self._up + PLANES * self.n**3

    @property
    def queues(self) -> int:
        return self._down + PLANES * self.n**3

    def classes(self) -> dict[str, slice]:
        """The queues between switches by class of link."""
        return {"mesh": slice(self._mesh, self._up), "light-path": slice(self._up, self._down)}

    def route(self, packets: Packets, ids: Integers, queues: Integers, waiting: Integers) -> Integers:
        n = self.n
        to = np.full(len(ids), DELIVERED, np.int64)
        destination = packets.destination[ids]
        there_x, there_y = destination // n**2, destination // n % n
        unit, sub_unit = self._places(queues)

        at_optical = (queues >= self._up) & (queues < self._down)
        plane, _ = self._planes(queues)
        to[at_optical] = self._light_down(plane, sub_unit, unit, there_x)[at_optical]

        at_hybrid = (queues < self.hosts) | ((queues >= self._mesh) & ~at_optical)
        own = at_hybrid & (unit == there_x) & (sub_unit == there_y)
        to[own] = self.hosts + destination[own]
        same_unit = at_hybrid & ~own & (unit == there_x)
        mesh = self._mesh + (unit * n + sub_unit) * n + there_y
        to[same_unit] = mesh[same_unit]

        away = np.flatnonzero(at_hybrid & (unit != there_x))
        if len(away):
            to[away] = self._choose(
                packets, ids[away], unit[away], sub_unit[away], there_x[away], there_y[away], mesh[away], waiting
            )
        return to

    def _choose(
        self,
        packets: Packets,
        ids: Integers,
        unit: Integers,
        sub_unit: Integers,
        there_x: Integers,
        there_y: Integers,
        mesh: Integers,
        waiting: Integers,
    ) -> Integers:
        """The way to another unit: p4src/include/interconnect/choose_path.p4."""
        policy, salt = POLICIES[self.policy], packets.salt[ids] >> packets.links[ids]
        flow = _mixed(packets.flow[ids], unit * self.n + sub_unit)
        first, second = (self._light_up(plane, sub_unit, unit, there_x) for plane in range(PLANES))
        by_second = _second(policy.plane, waiting[first], waiting[second], salt & 1, flow & 1)
        light = np.where(by_second, second, first)
        # A tie goes to the mesh.
        light_first = _second(
            policy.order, waiting[mesh], waiting[light] + UNSEEN, np.zeros_like(salt), flow >> 1 & 1
        )
        return np.where((sub_unit == there_y) | light_first, light, mesh)

    def _places(self, queues: Integers) -> tuple[Integers, Integers]:
        """(unit, sub-unit) of the switch to which each queue sends; of light up: from which."""
        n = self.n
        host = queues < self.hosts
        mesh = (queues >= self._mesh) & (queues < self._up)
        at_mesh = queues - self._mesh
        # From here on by (plane, y, x, channel).
        light = np.where(queues >= self._down, queues - self._down, queues - self._up)
        unit = np.where(host, queues // n**2, np.where(mesh, at_mesh // n**2, light // n % n))
        sub_unit = np.where(host, queues // n % n, np.where(mesh, at_mesh % n, light // n**2 % n))
        return unit, sub_unit

    def _planes(self, queues: Integers) -> tuple[Integers, Integers]:
        light = queues - self._up
        return light // self.n**3, light % self.n

    def _channel(self, from_x: Integers, to_x: Integers) -> Integers:
        return (to_x - from_x) % self.n if self.per_wavelength else np.zeros_like(from_x)

    def _light_up(self, plane: int, y: Integers, from_x: Integers, to_x: Integers) -> Integers:
        return self._up + ((plane * self.n + y) * self.n + from_x) * self.n + self._channel(from_x, to_x)

    def _light_down(self, plane: Integers, y: Integers, from_x: Integers, to_x: Integers) -> Integers:
        return self._down + ((plane * self.n + y) * self.n + to_x) * self.n + self._channel(from_x, to_x)


def _mixed(flow: Integers, switch: Integers) -> Integers:
    """Each switch hashes flows with a seed of its own (MixHash in mix_hash.p4)."""
    mixed = (flow ^ (switch + 1) * 0x9E37_79B1) & 0xFFFF_FFFF
    for shift, factor in ((16, 0x85EB_CA6B), (13, 0xC2B2_AE35)):
        mixed = ((mixed ^ mixed >> shift) * factor) & 0xFFFF_FFFF
    return mixed ^ mixed >> 16


def _second(rule: Rule, first: Integers, second: Integers, coin: Integers, hashed: Integers) -> NDArray[np.bool_]:
    """Whether the second of two ways is taken."""
    taken: NDArray[np.bool_] = (coin if rule is Rule.RANDOM else hashed) == 1
    if rule is Rule.LEAST_LOADED:
        taken = (second < first) | ((second == first) & (coin == 1))
    elif rule is Rule.FIRST:
        taken = np.zeros(len(first), np.bool_)
    return taken
