"""Packets for people: captures read, and headers with every field by its name."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from pathlib import Path
from typing import Any

import gradbed.hosts as hosts_room
from gradbed.experiments.live.recording import Row

MOST_CHARACTERS = 120
"""Of a value that are shown."""

BINDS = "bind_to_udp("
"""What a module of hosts has in its text that makes layers of Scapy."""


def packets_of(captured: Row) -> Row:
    """The row of a capture as one of packets; its file goes."""
    from scapy.error import Scapy_Exception
    from scapy.utils import RawPcapNgReader

    file = Path(captured["file"])
    packets = []
    try:
        with RawPcapNgReader(str(file)) as reader:
            for frame, about in reader:
                time_ns = ((about.tshigh << 32) + about.tslow) * 10**9 // about.tsresol
                sender = bytes(about.ifname or b"").decode().partition("->")[0]
                t_us = captured["scale"] * (time_ns - captured["begin_ns"]) / 1000
                frame = bytes(frame)
                packets.append({"t_us": round(t_us, 3), "from": sender, "length": len(frame), "frame": frame.hex()})
    except (OSError, EOFError, Scapy_Exception):
        pass  # it was not written to its end
    file.unlink(missing_ok=True)
    packets.sort(key=lambda packet: packet["t_us"])
    return {"kind": "packets", "t_us": captured["t_us"], "link": captured["link"], "packets": packets}


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
    for module in pkgutil.walk_packages(hosts_room.__path__, f"{hosts_room.__name__}."):
        spec = module.module_finder.find_spec(module.name, None)
        origin = None if spec is None else spec.origin
        if origin and origin.endswith(".py") and BINDS in Path(origin).read_text(encoding="utf-8"):
            importlib.import_module(module.name)
