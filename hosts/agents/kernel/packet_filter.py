"""Classic BPF programs: which frames a packet socket gets to see at all."""

from __future__ import annotations

import ctypes
import socket
import struct
from collections.abc import Sequence

from gradbed.formats.datagram import ETHER_TYPE_IPV4, ETHERNET_BYTES, FRAGMENT_MASK, PROTOCOL_UDP

_SO_ATTACH_FILTER = 26

# Instruction classes, sizes and modes of linux/bpf_common.h, as far as used.
_LOAD_HALF_ABSOLUTE = 0x28
_LOAD_BYTE_ABSOLUTE = 0x30
_LOAD_HALF_INDIRECT = 0x48
_LOAD_X_HEADER_LENGTH = 0xB1  # X = 4 * (byte & 15)
_JUMP_EQUAL = 0x15
_JUMP_BITS_SET = 0x45
_RETURN = 0x06

_WHOLE_FRAME = 0x40000
Instruction = tuple[int, int, int, int]  # code, jump if true, jump if false, constant

DROP_ALL: tuple[Instruction, ...] = ((_RETURN, 0, 0, 0),)


def udp_destination_port(port: int) -> tuple[Instruction, ...]:
    """Accepts Ethernet frames with an unfragmented IPv4 datagram to a UDP port."""
    return (
        (_LOAD_HALF_ABSOLUTE, 0, 0, 12),  # EtherType
        (_JUMP_EQUAL, 0, 8, ETHER_TYPE_IPV4),
        (_LOAD_BYTE_ABSOLUTE, 0, 0, 23),  # IPv4 protocol
        (_JUMP_EQUAL, 0, 6, PROTOCOL_UDP),
        (_LOAD_HALF_ABSOLUTE, 0, 0, 20),  # IPv4 flags and fragment offset
        (_JUMP_BITS_SET, 4, 0, FRAGMENT_MASK),
        (_LOAD_X_HEADER_LENGTH, 0, 0, ETHERNET_BYTES),
        (_LOAD_HALF_INDIRECT, 0, 0, 16),  # 14 bytes of Ethernet + X + 2
        (_JUMP_EQUAL, 0, 1, port),
        (_RETURN, 0, 0, _WHOLE_FRAME),
        (_RETURN, 0, 0, 0),
    )


def inverted(program: Sequence[Instruction]) -> tuple[Instruction, ...]:
    """Accepts what the other does not."""
    return tuple(
        (code, yes, no, _WHOLE_FRAME - value if code == _RETURN else value) for code, yes, no, value in program
    )


def attach_filter(sock: socket.socket, program: Sequence[Instruction]) -> None:
    """Let the kernel drop what `program` does not accept before it reaches the socket."""
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *instruction) for instruction in program))
    sock.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, struct.pack("@HP", len(program), ctypes.addressof(code)))
