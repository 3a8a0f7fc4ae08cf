"""Packets for people: their headers, with every field by its name."""

from __future__ import annotations

import importlib
from functools import cache
from typing import Any

from experiments.systems import SYSTEMS

MOST_CHARACTERS = 120
"""Of a value that are shown."""


def layers_of(frame: bytes) -> list[dict[str, Any]]:
    """name, and fields as [name, value in words], of each header."""
    _load_layers()
    from scapy.layers.l2 import Ether

    found = []
    packet = Ether(frame)
    while packet and packet.name != "NoPayload":
        fields = [[field.name, _words(packet, field)] for field in packet.fields_desc if field.name in packet.fields]
        found.append({"name": packet.name, "fields": fields})
        packet = packet.payload
    return found


def _words(packet: Any, field: Any) -> str:
    text = str(field.i2repr(packet, packet.getfieldval(field.name)))
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]} ... ({len(text)} characters)"


@cache
def _load_layers() -> None:
    """Every system's, which Scapy then finds by their UDP ports."""
    from hosts.collectives import ring  # noqa: F401

    for place in SYSTEMS.values():
        importlib.import_module(place.partition(":")[0])
