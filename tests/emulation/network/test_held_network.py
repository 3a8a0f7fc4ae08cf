"""gb.up on the real clock: a network of Mininet that another process holds, while this one stays where it is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from scapy.layers.inet import IP, UDP

import gradbed as gb

pytestmark = [pytest.mark.thorough, pytest.mark.root]

PROGRAM = Path(__file__).resolve().parents[3] / "cli" / "templates" / "program"


def program() -> gb.Program:
    return gb.Program(PROGRAM / "program.p4", entries=PROGRAM / "entries.yaml")


@pytest.fixture(scope="module")
def net() -> Iterator[gb.Network]:
    with gb.up(gb.star(3, rate_mbps=50), program()) as network:
        yield network


def test_hosts_run_commands_and_this_process_stays_where_it_is(net: gb.Network) -> None:
    h1, h2 = net.hosts["h1"], net.hosts["h2"]
    ended = h1.run("ip -o -4 addr show; exit 3")
    assert (ended.returncode, h1.ip in ended.stdout) == (3, True)
    assert h1.ping("h2") and h2.ping(h1)
    assert h1.ip not in subprocess.run(["ip", "-o", "addr"], capture_output=True, text=True, check=True).stdout
    with pytest.raises(gb.UserError, match=r"h1: sleep 30 did not end within 0\.1 s"):
        h1.run(["sleep", "30"], timeout_s=0.1)


def test_packets_tables_and_links(net: gb.Network) -> None:
    h1, h2, h3 = net.hosts.values()
    table = net.switches["s1"].tables["routes"]
    table.modify({"dst_addr": h2.ip}, "forward", {"port": 3, "dst_mac": "$h3.mac"})
    h1.send(IP(dst=h2.ip) / UDP(sport=5, dport=4242))
    moved = h3.receive(timeout_us=10_000_000, where=lambda packet: UDP in packet and packet[UDP].dport == 4242)
    assert moved is not None
    assert (moved.src, moved.dst, moved[IP].ttl) == ("02:01:00:00:00:01", h3.mac, 63)
    assert not h1.ping(h2)
    table.modify({"dst_addr": h2.ip}, "forward", {"port": 2, "dst_mac": "$h2.mac"})
    assert h1.ping(h2)
    assert net.switches["s1"].counters["received"][1].packets >= 3
    net.link("s1", "h2").down()
    assert not h1.ping(h2)
    net.link("s1", "h2").up()
    assert h1.ping(h2)
    with pytest.raises(gb.UserError, match="has no action 'forwrad'"):
        table.insert({"dst_addr": "9.9.9.9"}, "forwrad")


def test_what_is_wrong_is_one_line() -> None:
    with pytest.raises(gb.UserError, match="the P4 program has no table 'rutes'"):
        gb.up(gb.star(2), gb.Program(PROGRAM / "program.p4", entries={"tables": {"rutes": [{}]}})).__enter__()


HOLDS = f"""
import os, signal, sys
import gradbed as gb
with gb.up(gb.star(2), gb.Program("{PROGRAM}/program.p4", entries="{PROGRAM}/entries.yaml")) as net:
    print(net.hosts["h1"].run("readlink /proc/self/ns/net").stdout, end="", flush=True)
    signal.pause()
"""


@pytest.mark.parametrize("ending", [pytest.param(signal.SIGINT, marks=pytest.mark.nightly), signal.SIGKILL])
def test_nothing_is_left_when_its_holder_ends(ending: signal.Signals) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDS], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    namespace = holder.stdout.readline().strip()
    assert namespace.startswith("net:[")
    assert namespace in namespaces()
    holder.send_signal(ending)
    _, said = holder.communicate(timeout=60)
    assert holder.returncode == -ending
    assert "Traceback" not in said or "KeyboardInterrupt" in said
    deadline = time.monotonic() + 60
    while namespace in namespaces() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert namespace not in namespaces()


def namespaces() -> set[str]:
    """The network namespaces that any process is in."""
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                found.add(os.readlink(entry / "ns" / "net"))
            except OSError:
                continue  # it has just ended
    return found
