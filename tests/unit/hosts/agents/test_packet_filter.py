"""The kernel's filter program, run by a small interpreter of classic BPF."""

from __future__ import annotations

import socket

import pytest
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Packet

from gradbed.hosts.agents.kernel.raw_socket import (
    DROP_ALL,
    Instruction,
    attach_filter,
    inverted,
    udp_destination_port,
)


def accepts(program: tuple[Instruction, ...], frame: bytes) -> bool:
    """As the kernel does: a load beyond the end drops the frame."""
    a = x = position = 0

    def load(offset: int, size: int) -> int:
        if offset + size > len(frame):
            raise IndexError
        return int.from_bytes(frame[offset : offset + size], "big")

    while True:
        code, if_true, if_false, k = program[position]
        position += 1
        try:
            if code == 0x28:
                a = load(k, 2)
            elif code == 0x30:
                a = load(k, 1)
            elif code == 0x48:
                a = load(x + k, 2)
            elif code == 0xB1:
                x = 4 * (load(k, 1) & 15)
            elif code == 0x15:
                position += if_true if a == k else if_false
            elif code == 0x45:
                position += if_true if a & k else if_false
            elif code == 0x06:
                return k > 0
            else:
                raise AssertionError(f"unknown instruction {code:#x}")
        except IndexError:
            return False


@pytest.mark.parametrize(
    ("packet", "wanted"),
    [
        (Ether() / IP() / UDP(dport=7), True),
        (Ether() / IP(options=b"\x01" * 8) / UDP(sport=9, dport=7), True),
        (Ether() / IP(flags="DF") / UDP(dport=7), True),
        (Ether() / IP() / UDP(sport=7, dport=8), False),
        (Ether() / IP(options=b"\0\7" * 4) / UDP(sport=8, dport=8), False),
        (Ether() / IP(flags="MF") / UDP(dport=7), False),
        (Ether() / IP(frag=100) / UDP(dport=7), False),
        (Ether() / IP() / TCP(dport=7), False),
        (Ether() / IPv6() / UDP(dport=7), False),
        (Ether() / ARP(), False),
        (Ether(), False),
    ],
)
def test_udp_destination_port(packet: Packet, wanted: bool) -> None:
    assert accepts(udp_destination_port(7), bytes(packet)) is wanted
    assert accepts(inverted(udp_destination_port(7)), bytes(packet)) is not wanted


def test_drop_all() -> None:
    assert not accepts(DROP_ALL, bytes(Ether() / IP() / UDP()))


def test_the_kernel_takes_and_obeys_a_filter() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with ours, theirs:
        attach_filter(ours, udp_destination_port(7))
        theirs.send(bytes(Ether() / IP() / UDP(dport=8)))
        theirs.send(bytes(Ether() / IP() / UDP(dport=7)))
        assert Ether(ours.recv(2048))[UDP].dport == 7
        attach_filter(ours, DROP_ALL)
        theirs.send(bytes(Ether() / IP() / UDP(dport=7)))
        with pytest.raises(BlockingIOError):
            ours.recv(2048, socket.MSG_DONTWAIT)
